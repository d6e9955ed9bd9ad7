/*
 * guard.c - raises the step's flag if a gradient or the loss is not finite.
 */
#include <stdio.h>
#include <string.h>

#include "contract/guard.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(guard, in[0], in[1], in[2], in[3], out[0])

static lks_status infer(struct lksi_call *call)
{
    struct lksi_desc one = lksi_desc_make(LKSI_I32, 1, (int64_t)1);
    lks_status st = lksi_want(call, 0, "the gradient", LKSI_F32, 1, LKSI_MAX_RANK);
    if (st == LKS_OK)
        st = lksi_want_desc(call, 1, "the loss", lksi_desc_make(LKSI_F32, 1, (int64_t)1));
    if (st == LKS_OK)
        st = lksi_want(call, 2, "the step", LKSI_I32, 1, 1); /* more may stand behind it */
    if (st == LKS_OK)
        st = lksi_want_desc(call, 3, "the flag", one);
    if (st != LKS_OK)
        return st;
    call->out[0] = one;
    LKSI_SET_DIMS(call, guard_dims, {(U64)lksi_desc_count(&call->in[0])});
    return LKS_OK;
}

/* ---- schedules ---- */

static const char *declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    (void)call;
    (void)dev;
    return NULL;
}

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    struct lksi_launch *scan = &r->launch[0], *join = &r->launch[1];
    U64 n = (U64)lksi_desc_count(&call->in[0]), parts, chunk = 0;
    size_t group = 1;
    r->n_launch = 2;
    scan->source = join->source = "op/guard.cl";
    scan->kernel = "scan";
    join->kernel = "join";
    if (dev->type == LKSI_DEV_GPU) {
        group = lksi_group(dev, 256);
        parts = (n + group * 16 - 1) / (group * 16);
        parts = parts > 1024 ? 1024 : parts;
        join->defines[0] = scan->defines[0] = '\0';
    } else {
        chunk = n / (4u * (dev->compute_units > 0 ? dev->compute_units : 1u));
        chunk = (chunk < 4096 ? 4096 : chunk) / 64 * 64;
        parts = (n + chunk - 1) / chunk;
        snprintf(scan->defines, sizeof scan->defines, "CHUNK");
        snprintf(join->defines, sizeof join->defines, "CHUNK");
    }
    scan->arg[scan->n_arg++] = LKSI_IN(0);
    scan->arg[scan->n_arg++] = LKSI_WORK(0);
    scan->arg[scan->n_arg++] = LKSI_U64(n);
    scan->arg[scan->n_arg++] = LKSI_U64(chunk);
    scan->dims = join->dims = 1;
    scan->global[0] = (size_t)parts * group;
    scan->local[0] = group;
    join->arg[join->n_arg++] = LKSI_WORK(0);
    join->arg[join->n_arg++] = LKSI_IN(1);
    join->arg[join->n_arg++] = LKSI_IN(2);
    join->arg[join->n_arg++] = LKSI_OUT(0);
    join->arg[join->n_arg++] = LKSI_U32(parts);
    join->global[0] = join->local[0] = group;
    r->n_work = 1;
    r->work_bytes[0] = parts * sizeof(U32);
}

static const struct lksi_schedule schedules[] = {{"two_stage", declines, recipe},
                                                 {NULL, NULL, NULL}};

/* ---- the C loop: one part, for the flag is one element ---- */

LKSI_CLONES static void ref(const struct lksi_call *call, const void *const *in, void *const *out,
                            U64 p0, U64 p1)
{
    U64 n = (U64)lksi_desc_count(&call->in[0]);
    const U32 *grad = in[0];
    const I32 *step = in[2], *flag = in[3];
    I32 *to = out[0];
    U32 bad = !lks_isfinite(*(const F32 *)in[1]);
    (void)p0;
    (void)p1;
    for (U64 i = 0; i < n; i++)
        bad |= (grad[i] & 0x7fffffffu) >= 0x7f800000u;
    to[0] = flag[0] == 0 && bad != 0 ? step[0] + 1 : flag[0];
}

static double flops(const struct lksi_call *call)
{
    return (double)lksi_desc_count(&call->in[0]);
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    (void)attr;
    if (!lksi_flat_case(index, long_run, &call->in[0]))
        return false;
    call->n_in = 4;
    call->in[1] = lksi_desc_make(LKSI_F32, 1, (int64_t)1);
    call->in[2] = call->in[3] = lksi_desc_make(LKSI_I32, 1, (int64_t)1);
    return true;
}

/* Now and then a gradient or a loss that is not finite, and a flag that is raised already. */
static uint32_t test_input(const struct lksi_call *call, int index, uint32_t bits)
{
    static const uint32_t bad[] = {0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00001u};
    (void)call;
    if (index == 3)
        return bits % 3u == 0u ? 7u : 0u;
    if (index == 0 && bits % 1024u < 4u)
        return bad[bits % 4u];
    return index == 1 && bits % 8u == 0u ? bad[bits / 8u % 4u] : bits;
}

static const struct lksi_op guard = {
    .name = "guard",
    .contract = "contract/guard.h",
    .dims = "guard_dims",
    .min_in = 4,
    .max_in = 4,
    .n_out = 1,
    .alias = {4},
    .infer = infer,
    .item = guard_item_c,
    .ref = ref,
    .schedules = schedules,
    .flops = flops,
    .test_case = test_case,
    .test_input = test_input,
};

const struct lksi_op *const lksi_ops_guard[] = {&guard, NULL};
