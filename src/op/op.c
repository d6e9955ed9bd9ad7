/*
 * op.c - calls, descriptors and the registry; the schedule `plain` that every operator has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "op/op.h"

extern const struct lksi_op *const *const lksi_op_table[];

int64_t lksi_desc_count(const struct lksi_desc *d)
{
    int64_t n = 1;
    for (int i = 0; i < d->rank; i++)
        n *= d->dim[i];
    return n;
}

bool lksi_desc_fits(const struct lksi_desc *d)
{
    int64_t left = (int64_t)1 << 48;
    for (int i = 0; i < d->rank; i++)
        left = d->dim[i] > 0 ? left / d->dim[i] : left;
    return left > 0;
}

bool lksi_desc_equal(const struct lksi_desc *a, const struct lksi_desc *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

struct lksi_desc lksi_desc_make(enum lksi_dtype dtype, int rank, ...)
{
    struct lksi_desc d = {.dtype = dtype, .rank = rank};
    va_list ap;
    va_start(ap, rank);
    for (int i = 0; i < rank; i++)
        d.dim[i] = va_arg(ap, int64_t);
    va_end(ap);
    return d;
}

const char *lksi_desc_text(const struct lksi_desc *d, char *text)
{
    int used = sprintf(text, "[");
    for (int i = 0; i < d->rank; i++)
        used += sprintf(text + used, "%s%lld", i > 0 ? "," : "", (long long)d->dim[i]);
    strcpy(text + used, "]");
    return text;
}

const char *lksi_desc_place(const struct lksi_desc *d, int64_t index, char *text)
{
    struct lksi_desc at = {.rank = d->rank};
    for (int i = d->rank - 1; i >= 0; i--) {
        at.dim[i] = index % d->dim[i];
        index /= d->dim[i];
    }
    return lksi_desc_text(&at, text);
}

const struct lksi_op *lksi_op_at(size_t index)
{
    for (size_t f = 0; lksi_op_table[f] != NULL; f++)
        for (size_t i = 0; lksi_op_table[f][i] != NULL; i++)
            if (index-- == 0)
                return lksi_op_table[f][i];
    return NULL;
}

const struct lksi_op *lksi_op_find(const char *name)
{
    for (size_t f = 0; lksi_op_table[f] != NULL; f++)
        for (size_t i = 0; lksi_op_table[f][i] != NULL; i++)
            if (strcmp(lksi_op_table[f][i]->name, name) == 0)
                return lksi_op_table[f][i];
    return NULL;
}

U64 lksi_op_items(const struct lksi_call *call)
{
    return call->op->items != NULL ? call->op->items(call) : (U64)lksi_desc_count(&call->out[0]);
}

double lksi_op_flops(const struct lksi_call *call)
{
    return call->op->flops != NULL ? call->op->flops(call)
                                   : (double)lksi_desc_count(&call->out[0]);
}

lks_status lksi_call_make(struct lksi_call *call, const struct lksi_op *op, const void *attr,
                          uint32_t leaf, int n_in, const struct lksi_desc *in)
{
    memset(call, 0, sizeof *call);
    if (n_in < op->min_in || n_in > op->max_in)
        return lksi_fail(LKS_E_ARGUMENT, "%s: %d inputs given, %d to %d expected", op->name, n_in,
                         op->min_in, op->max_in);
    call->op = op;
    call->attr = attr;
    call->leaf = leaf;
    call->n_in = n_in;
    call->n_out = op->n_out;
    for (int i = 0; i < n_in; i++)
        call->in[i] = in[i];
    lks_status st = op->infer(call);
    for (int i = 0; i < call->n_out && st == LKS_OK; i++)
        if (!lksi_desc_fits(&call->out[i])) {
            char text[96];
            st = lksi_fail(LKS_E_ARGUMENT, "%s: its output would be %s, more than 2^48 elements",
                           op->name, lksi_desc_text(&call->out[i], text));
        }
    return st;
}

/* ---- the schedule `plain`: one work-item an item of the contract ---- */

static const char *plain_declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    (void)call;
    (void)dev;
    return NULL;
}

static void plain_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                         struct lksi_recipe *r)
{
    struct lksi_launch *l = &r->launch[0];
    U64 items = lksi_op_items(call);
    size_t group = dev->type == LKSI_DEV_GPU ? 64 : 16;
    while (group > dev->max_group || group > dev->max_item[0])
        group /= 2;
    r->n_launch = 1;
    l->plain = call->op;
    l->kernel = "plain";
    for (int i = 0; i < call->op->max_in; i++) /* an absent input is never read: any buffer does */
        l->arg[l->n_arg++] = LKSI_IN(i < call->n_in ? i : 0);
    for (int i = 0; i < call->n_out; i++)
        l->arg[l->n_arg++] = LKSI_OUT(i);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->arg[l->n_arg++] = LKSI_U64(items);
    l->dims = 1;
    l->local[0] = group;
    l->global[0] = (size_t)((items + group - 1) / group * group);
}

static const struct lksi_schedule plain = {"plain", plain_declines, plain_recipe};

const struct lksi_schedule *lksi_op_schedule(const struct lksi_op *op, size_t index)
{
    const struct lksi_schedule *s = op->schedules;
    size_t i = 0;
    for (; s != NULL && s[i].name != NULL; i++)
        if (i == index)
            return &s[i];
    return i == index ? &plain : NULL;
}

char *lksi_op_plain_text(const struct lksi_op *op)
{
    struct lksi_str s = {0};
    int n = op->max_in + op->n_out;
    lksi_str_add(&s, "#include \"%s\"\n__kernel void LKS_KERNEL(plain)(", op->contract);
    for (int i = 0; i < n; i++)
        lksi_str_add(&s, "__global %svoid *a%d, ", i < op->max_in ? "const " : "", i);
    lksi_str_add(&s, "struct %s d, U64 n)\n{\n    U64 i = get_global_id(0);\n    if (i < n)\n"
                     "        %s_item(", op->dims, op->name);
    for (int i = 0; i < n; i++)
        lksi_str_add(&s, "a%d, ", i);
    lksi_str_add(&s, "&d, i);\n}\n");
    if (s.failed) {
        free(s.text);
        return NULL;
    }
    return s.text;
}
