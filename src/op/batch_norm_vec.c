/*
 * batch_norm_vec.c - launches of the schedules `cpu` and `gpu` of batch normalisation: numbers of
 * the leaves, the trees over them, then every element. See cl/op/batch_norm.cl and leaf_gpu.cl.
 */
#include <stdio.h>

#include "op/batch_norm.h"
#include "op/flat.h"
#include "op/leaf_gpu.h"

static struct lksi_launch *add_launch(struct lksi_recipe *r, const char *kernel,
                                      const char *defines)
{
    struct lksi_launch *l = &r->launch[r->n_launch++];
    l->source = "op/batch_norm.cl";
    l->kernel = kernel;
    snprintf(l->defines, sizeof l->defines, "%s", defines);
    return l;
}

/* Groups of lx by ly over x by y work-items. */
static void set_grid(struct lksi_launch *l, uint64_t x, uint64_t y, size_t lx, size_t ly)
{
    l->dims = 2;
    l->local[0] = lx;
    l->local[1] = ly;
    l->global[0] = (size_t)((x + lx - 1) / lx * lx);
    l->global[1] = (size_t)((y + ly - 1) / ly * ly);
}

/* A group of `size` work-items, up to 32 of them over `width` neighbours. */
static void shape_group(const struct lksi_limits *dev, uint64_t width, size_t size, size_t *lx,
                        size_t *ly)
{
    *lx = 1;
    *ly = lksi_group(dev, size);
    while (*lx < 32 && *lx<width && * ly> 1) {
        *lx *= 2;
        *ly /= 2;
    }
}

static uint32_t leaves_of(const struct batch_norm_dims *d)
{
    return lks_leaf_make(d->n, d->h, d->w, d->leaf).leaves;
}

static void add_leaves(const struct lksi_call *call, const struct lksi_limits *dev,
                       struct lksi_recipe *r, const char *sums)
{
    const struct batch_norm_dims *d = lksi_batch_norm_dims(call);
    bool gpu = dev->type == LKSI_DEV_GPU;
    unsigned vec = gpu ? 1 : lksi_lanes(d->c), vectors = (d->c + vec - 1) / vec;
    unsigned nv = gpu ? 1 : vectors > 4 ? 4 : vectors;
    size_t lx = 1, ly = 1;
    enum lksi_leaf_numbers numbers = *sums != '\0' ? LKSI_LEAF_SUMS : LKSI_LEAF_MOMENTS;
    const struct lksi_leaf_shape shape = {d->n, d->h, d->w, d->c, d->leaf};
    char defines[96];
    struct lksi_launch *l;
    if (gpu && lksi_leaf_serves(numbers, &shape, dev)) {
        lksi_leaf_launch(numbers, &shape, r);
        return;
    }
    snprintf(defines, sizeof defines, "LEAVES VEC=%u NV=%u%s", vec, nv, sums);
    l = add_launch(r, "leaves", defines);
    l->arg[l->n_arg++] = LKSI_IN(0);
    for (int i = 1; i < 4 && *sums != '\0'; i++) /* dy, mean, invstd */
        l->arg[l->n_arg++] = LKSI_IN(i);
    l->arg[l->n_arg++] = LKSI_WORK(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
    if (gpu)
        shape_group(dev, d->c, 64, &lx, &ly);
    set_grid(l, (vectors + nv - 1) / nv, leaves_of(d), lx, ly);
    r->n_work = 1;
    r->work_bytes[0] = (uint64_t)leaves_of(d) * 2 * d->c * sizeof(F32);
}

static void add_tree(const struct lksi_call *call, const struct lksi_limits *dev,
                     struct lksi_recipe *r, const char *sums)
{
    const struct batch_norm_dims *d = lksi_batch_norm_dims(call);
    bool gpu = dev->type == LKSI_DEV_GPU;
    unsigned vec = gpu ? 1 : lksi_lanes(d->c), vectors = (d->c + vec - 1) / vec;
    uint64_t bytes = (uint64_t)leaves_of(d) * 2 * sizeof(F32), kx = 8;
    size_t lx = 1, ly = 1;
    char defines[96];
    struct lksi_launch *l;
    while (kx > 1 && kx * bytes > dev->local_memory / 2)
        kx /= 2;
    gpu = gpu && kx * bytes <= dev->local_memory / 2;
    snprintf(defines, sizeof defines, "%s VEC=%u%s", gpu ? "SPREAD" : "TREE", vec, sums);
    l = add_launch(r, gpu ? "spread" : "tree", defines);
    l->arg[l->n_arg++] = LKSI_WORK(0);
    for (int j = 1; j < call->n_out; j++)
        l->arg[l->n_arg++] = LKSI_OUT(j);
    l->arg[l->n_arg++] = LKSI_DIMS;
    if (gpu) {
        l->arg[l->n_arg++] = LKSI_LOCAL(kx * bytes);
        l->arg[l->n_arg++] = LKSI_U32(kx);
        lx = lksi_group(dev, 128);
        set_grid(l, (d->c + kx - 1) / kx * lx, 1, lx, 1);
        return;
    }
    if (dev->type == LKSI_DEV_GPU)
        shape_group(dev, d->c, 32, &lx, &ly);
    set_grid(l, vectors, 1, lx, 1);
}

static void add_apply(const struct lksi_call *call, const struct lksi_limits *dev,
                      struct lksi_recipe *r, const char *sums, const struct lksi_arg *in, int n_in)
{
    const struct batch_norm_dims *d = lksi_batch_norm_dims(call);
    bool rest = d->rest != 0;
    bool gpu = dev->type == LKSI_DEV_GPU;
    unsigned vec = !gpu ? lksi_lanes(d->c) : d->c % 4 == 0 ? 4 : 1;
    uint64_t vectors = (d->c + vec - 1) / vec, positions = (uint64_t)d->n * d->h * d->w;
    uint64_t chunk = gpu ? 4 : 16384 / d->c + 1, span = gpu ? 1 : vectors;
    size_t lx = 1, ly = 1;
    char defines[96];
    struct lksi_launch *l;
    snprintf(defines, sizeof defines, "APPLY VEC=%u%s%s%s%s", vec, gpu ? " AHEAD=4" : "", sums,
             rest ? " REST" : "", d->relu != 0 ? " RELU" : "");
    l = add_launch(r, "apply", defines);
    if (gpu)
        shape_group(dev, vectors, 128, &lx, &ly);
    set_grid(l, (vectors + span - 1) / span, (positions + chunk - 1) / chunk, lx, ly);
    for (int i = 0; i < n_in; i++)
        l->arg[l->n_arg++] = in[i];
    if (rest)
        l->arg[l->n_arg++] = LKSI_IN(call->n_in - 1);
    l->arg[l->n_arg++] = LKSI_OUT(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
    l->arg[l->n_arg++] = LKSI_U32(span);
    l->arg[l->n_arg++] = LKSI_U32(chunk);
}

/* x, gamma, beta, mean and invstd. */
void lksi_batch_norm_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                            struct lksi_recipe *r)
{
    const struct lksi_arg in[] = {LKSI_IN(0), LKSI_IN(1), LKSI_IN(2), LKSI_OUT(1), LKSI_OUT(3)};
    add_leaves(call, dev, r, "");
    add_tree(call, dev, r, "");
    add_apply(call, dev, r, "", in, 5);
}

/* x, dy, mean, invstd, gamma, dgamma and dbeta. */
void lksi_batch_norm_grad_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                                 struct lksi_recipe *r)
{
    const struct lksi_arg in[] = {LKSI_IN(0), LKSI_IN(1),  LKSI_IN(2), LKSI_IN(3),
                                  LKSI_IN(4), LKSI_OUT(1), LKSI_OUT(2)};
    add_leaves(call, dev, r, " SUMS");
    add_tree(call, dev, r, " SUMS");
    add_apply(call, dev, r, " SUMS", in, 7);
}

/* x, gamma, beta, mean and invstd, which is made first. */
static void recipe_infer(const struct lksi_call *call, const struct lksi_limits *dev,
                         struct lksi_recipe *r)
{
    const struct lksi_arg in[] = {LKSI_IN(0), LKSI_IN(1), LKSI_IN(2), LKSI_IN(3), LKSI_WORK(0)};
    const struct batch_norm_dims *d = lksi_batch_norm_dims(call);
    bool gpu = dev->type == LKSI_DEV_GPU;
    unsigned vec = gpu ? 1 : lksi_lanes(d->c);
    char defines[32];
    struct lksi_launch *l;
    snprintf(defines, sizeof defines, "FACTOR VEC=%u", vec);
    l = add_launch(r, "factor", defines);
    l->arg[l->n_arg++] = LKSI_IN(4);
    l->arg[l->n_arg++] = LKSI_WORK(0);
    l->arg[l->n_arg++] = LKSI_DIMS;
    set_grid(l, (d->c + vec - 1) / vec, 1, gpu ? lksi_group(dev, 64) : 1, 1);
    r->n_work = 1;
    r->work_bytes[0] = d->c * sizeof(F32);
    add_apply(call, dev, r, "", in, 5);
}

const struct lksi_schedule lksi_batch_norm_infer_schedules[] = {
    {"cpu", lksi_cpu_declines, recipe_infer},
    {"gpu", lksi_gpu_declines, recipe_infer},
    {NULL, NULL, NULL}};
