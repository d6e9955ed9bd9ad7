/*
 * update.h - what the optimisers' descriptors share. Inputs: parameters, gradients, `states` arenas,
 * hyper, flag, group, of LAMB's last step also tensor; see contract/update.h.
 */
#ifndef LKSI_OP_UPDATE_H
#define LKSI_OP_UPDATE_H

#include "op/op.h"

/* Checks the inputs; outputs are the parameters and the states. */
lks_status lksi_update_infer(struct lksi_call *call, int states);

/* hyper, flag and group, from input `first` on. */
lks_status lksi_update_want_numbers(const struct lksi_call *call, int first);

/* Harness: shapes of a call with so many states, and inputs that an update may meet. */
bool lksi_update_case(int index, bool long_run, struct lksi_call *call, int states);
uint32_t lksi_update_input(const struct lksi_call *call, int index, uint32_t bits, int states);

#endif
