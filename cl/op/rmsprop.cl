/*
 * rmsprop.cl - schedule `flat` of rmsprop.
 */
#include "contract/rmsprop.h"

#define STATES 2
#define ONE(g, p, s, t, w, h) rmsprop_one(g, &p, &s, &t, h)
#include "op/update_frame.h"
