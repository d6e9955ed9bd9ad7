/*
 * adam.cl - schedule `flat` of adam.
 */
#include "contract/adam.h"

#define STATES 2
#define ONE(g, p, s, t, w, h) adam_one(g, &p, &s, &t, h)
#include "op/update_frame.h"
