/*
 * adagrad.cl - schedule `flat` of adagrad.
 */
#include "contract/adagrad.h"

#define STATES 1
#define ONE(g, p, s, t, w, h) adagrad_one(g, &p, &s, h)
#include "op/update_frame.h"
