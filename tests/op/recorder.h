/*
 * recorder.h - a builder that writes down what the gradient of an operator asks for, as
 * "relu_grad(4,5)=20 dense_data_grad(20,2)=21 ".
 */
#ifndef TESTS_OP_RECORDER_H
#define TESTS_OP_RECORDER_H

#include <stdio.h>
#include <string.h>

#include "op/op.h"

struct recorder {
    struct lksi_builder b;
    char text[256];
    lksi_value next;
};

static lks_status record(struct lksi_builder *b, const char *op, const void *attr, int n_in,
                         const lksi_value *in, lksi_value *out)
{
    struct recorder *r = (struct recorder *)b;
    size_t used = strlen(r->text);
    (void)attr;
    used += (size_t)sprintf(r->text + used, "%s(", op);
    for (int i = 0; i < n_in; i++)
        used += (size_t)sprintf(r->text + used, "%s%d", i > 0 ? "," : "", in[i]);
    *out = r->next++;
    sprintf(r->text + used, ")=%d ", *out);
    return LKS_OK;
}

/* Asks for the gradient of `call`, whose inputs are values 1, 2, ..., its outputs the next ones;
 * new values count from r->next. din[] starts absent. */
static lks_status ask(struct recorder *r, const struct lksi_call *call, const lksi_value *dout,
                      const bool *need, lksi_value *din)
{
    lksi_value in[LKSI_MAX_IN], out[LKSI_MAX_OUT];
    r->b.apply = record;
    r->text[0] = '\0';
    for (int k = 0; k < call->n_in; k++) {
        in[k] = 1 + k;
        din[k] = LKSI_NONE;
    }
    for (int k = 0; k < call->n_out; k++)
        out[k] = 1 + call->n_in + k;
    return call->op->grad(&(struct lksi_backward){&r->b, call, in, out, dout, need, din});
}

#endif
