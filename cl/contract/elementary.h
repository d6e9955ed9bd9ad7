/*
 * elementary.h - all elementary functions, and the largest errors that tests/math/math_sweep.c
 * measured against double, in ulp of the exact result.
 *
 *     over all 2^32 inputs                       over every 101st input
 *     exp      0.7713      sigmoid  0.7713      cospi     0.6535
 *     log      0.8661      silu     0.8283      softplus  0.8994
 *     log1p    0.9209      erf      0.9851
 *     tanh     0.7369      gelu     1.4081
 *     sinpi    0.9644      sin      0.7185
 *     pow      0.8064      cos      0.7176   expm1    0.9588
 *
 * pow is asked with one exponent an input, drawn (tests/math/functions.h). exp, sigmoid, pow and
 * sinpi have theirs where the result is subnormal or next to it.
 */
#ifndef LKS_CONTRACT_ELEMENTARY_H
#define LKS_CONTRACT_ELEMENTARY_H

#include "contract/num.h"
#include "contract/exp.h"
#include "contract/log.h"
#include "contract/sigmoid.h"
#include "contract/erf.h"
#include "contract/trig.h"
#include "contract/pow.h"

#endif
