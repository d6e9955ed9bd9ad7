/*
 * lamb_direction.cl - schedule `flat` of lamb_direction.
 */
#include "contract/lamb.h"

#define STATES 2
#define DIRECTION
#define ONE(g, p, s, t, w, h) lamb_direction_one(g, &p, &s, &t, h)
#include "op/update_frame.h"
