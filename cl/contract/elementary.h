/* elementary.h - all elementary functions. */
#ifndef LKS_CONTRACT_ELEMENTARY_H
#define LKS_CONTRACT_ELEMENTARY_H

#include "num.h"
#include "exp.h"
#include "log.h"
#include "sigmoid.h"
#include "erf.h"
#include "trig.h"

#endif
