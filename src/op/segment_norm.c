/*
 * segment_norm.c - segment_norm, Euclidean norms of parts of an arena: of all gradients, or of each
 * parameter.
 */
#include <stdio.h>

#include "contract/segment_norm.h"
#include "op/flat.h"
#include "op/shape.h"

LKSI_ITEM(segment_norm, in[0], in[1], out[0])

static lks_status infer(struct lksi_call *call)
{
    lks_status st = lksi_want(call, 0, "the arena", LKSI_F32, 1, LKSI_MAX_RANK);
    char shape[96];
    if (st == LKS_OK)
        st = lksi_want(call, 1, "the parts", LKSI_I32, 2, 2);
    if (st == LKS_OK && call->in[1].dim[1] != 2)
        st = lksi_fail(LKS_E_ARGUMENT, "segment_norm: the parts are %s, [parts,2] wanted",
                       lksi_desc_text(&call->in[1], shape));
    if (st != LKS_OK)
        return st;
    call->out[0] = lksi_desc_make(LKSI_F32, 1, call->in[1].dim[0]);
    LKSI_SET_DIMS(call, segment_norm_dims, {(U64)lksi_desc_count(&call->in[0])});
    return LKS_OK;
}

/* ---- schedules ---- */

static const char *declines(const struct lksi_call *call, const struct lksi_limits *dev)
{
    (void)call;
    return dev->type == LKSI_DEV_GPU && lksi_group(dev, 256) < LKS_ROW_LANES
               ? "groups of 32 items wanted"
               : NULL;
}

static void recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r)
{
    struct lksi_launch *l = r->launch;
    U64 n = (U64)lksi_desc_count(&call->in[0]), parts = (U64)call->in[1].dim[0];
    U64 most = (n + LKS_ROW_PIECE - 1) / LKS_ROW_PIECE, share, wanted;
    bool gpu = dev->type == LKSI_DEV_GPU;
    size_t group = gpu ? lksi_group(dev, 256) : 1;
    /* Enough groups over all parts to fill the device; each takes pieces in turn. */
    wanted = gpu ? 2048u : 4u * (dev->compute_units > 0 ? dev->compute_units : 1u);
    share = (wanted + parts - 1) / parts;
    share = share < most ? share : most;
    r->n_launch = 2;
    for (int k = 0; k < 2; k++) {
        l[k].source = "op/segment_norm.cl";
        if (gpu)
            snprintf(l[k].defines, sizeof l[k].defines, "GROUP=%zu", group);
        else
            snprintf(l[k].defines, sizeof l[k].defines, "CPU");
        l[k].kernel = k == 0 ? "pieces" : "join";
        l[k].arg[l[k].n_arg++] = k == 0 ? LKSI_IN(0) : LKSI_WORK(0);
        l[k].arg[l[k].n_arg++] = LKSI_IN(1);
        l[k].arg[l[k].n_arg++] = k == 0 ? LKSI_WORK(0) : LKSI_OUT(0);
        l[k].arg[l[k].n_arg++] = LKSI_U64(n);
        l[k].arg[l[k].n_arg++] = LKSI_U32(most);
        l[k].local[0] = group;
    }
    l[0].dims = 2;
    l[0].global[0] = (size_t)share * group;
    l[0].global[1] = (size_t)parts;
    l[0].local[1] = 1;
    l[1].dims = 1;
    l[1].global[0] = (size_t)parts * group;
    r->n_work = 1;
    r->work_bytes[0] = parts * most * sizeof(F32);
}

static const struct lksi_schedule schedules[] = {{"two_stage", declines, recipe},
                                                 {NULL, NULL, NULL}};

/* ---- the C loop ---- */

static U64 ref_parts(const struct lksi_call *call)
{
    return (U64)call->in[1].dim[0];
}

LKSI_CLONES static void ref(const struct lksi_call *call, const void *const *in, void *const *out,
                            U64 p0, U64 p1)
{
    const I32 *part = in[1];
    F32 *norm = out[0];
    for (U64 t = p0; t < p1; t++) {
        const F32 *x = (const F32 *)in[0] + (U32)part[2 * t];
        U64 count = segment_norm_count(part, (U64)lksi_desc_count(&call->in[0]), t);
        struct lks_counter pieces;
        lks_counter_init(&pieces);
        for (U64 i = 0; i < count; i += LKS_ROW_PIECE) {
            U64 end = i + LKS_ROW_PIECE < count ? i + LKS_ROW_PIECE : count, e = i;
            F32 lane[LKS_ROW_LANES] = {0};
            for (; e + LKS_ROW_LANES <= end; e += LKS_ROW_LANES)
                for (U32 j = 0; j < LKS_ROW_LANES; j++)
                    lane[j] = lks_fma(x[e + j], x[e + j], lane[j]);
            for (U32 j = 0; e + j < end; j++)
                lane[j] = lks_fma(x[e + j], x[e + j], lane[j]);
            lks_counter_push(&pieces, lks_tree(lane, LKS_ROW_LANES));
        }
        norm[t] = lks_sqrt(lks_final(lks_counter_root(&pieces)));
    }
}

static double flops(const struct lksi_call *call)
{
    return 2.0 * (double)lksi_desc_count(&call->in[0]);
}

static bool test_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const int64_t size[] = {1, 31, 33, 4095, 4097, 9000, 40009, 2200017};
    (void)attr;
    if (index >= (long_run ? 8 : 7))
        return false;
    call->n_in = 2;
    call->in[0] = lksi_desc_make(LKSI_F32, 1, size[index]);
    call->in[1] = lksi_desc_make(LKSI_I32, 2, (int64_t)(1 + index % 4 * 5), (int64_t)2);
    return true;
}

/* Starts and counts come drawn below the length of the arena. */
static const struct lksi_op segment_norm = {
    .name = "segment_norm",
    .contract = "contract/segment_norm.h",
    .dims = "segment_norm_dims",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .infer = infer,
    .item = segment_norm_item_c,
    .ref_parts = ref_parts,
    .ref = ref,
    .schedules = schedules,
    .flops = flops,
    .test_case = test_case,
};

const struct lksi_op *const lksi_ops_segment_norm[] = {&segment_norm, NULL};
