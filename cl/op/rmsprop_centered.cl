/*
 * rmsprop_centered.cl - schedule `flat` of rmsprop_centered.
 */
#include "contract/rmsprop.h"

#define STATES 3
#define ONE(g, p, s, t, w, h) rmsprop_centered_one(g, &p, &s, &t, &w, h)
#include "op/update_frame.h"
