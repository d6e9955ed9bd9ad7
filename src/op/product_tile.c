/*
 * product_tile.c - see product_tile.h. The estimate was fitted to an NVIDIA H200, where it came
 * within about 20 % for small and large layers (docs/performance.md).
 */
#include "op/product_tile.h"

/* All have 64 work-items. Weight gradients need rows in fours. */
static const struct lksi_tile nvidia[] = {
    {64, 64, 8, 8, 16, 2, 0, 1}, {48, 64, 6, 8, 16, 2, 0, 1}, {48, 64, 6, 8, 16, 2, 1, 1},
    {64, 32, 8, 4, 16, 2, 0, 1}, {64, 32, 8, 4, 16, 2, 1, 1}, {48, 32, 6, 4, 32, 3, 0, 3},
    {48, 32, 6, 4, 16, 2, 0, 3}, {32, 32, 4, 4, 32, 3, 1, 3}, {32, 32, 4, 4, 16, 2, 1, 3},
    {24, 32, 3, 4, 32, 2, 1, 3}, {16, 32, 2, 4, 32, 4, 1, 3}, {8, 32, 1, 4, 32, 4, 1, 3},
};
static const struct lksi_tile nvidia_weight[] = {
    {64, 64, 8, 8, 16, 2, 0, 1},
    {64, 32, 8, 4, 16, 2, 0, 1},
    {32, 64, 4, 8, 16, 2, 0, 1},
    {32, 32, 4, 4, 16, 4, 0, 3},
};
static const struct lksi_tile portable[] = {
    {64, 64, 8, 8, 16, 2, 0, 0},
    {64, 32, 8, 4, 16, 2, 0, 0},
    {32, 32, 4, 4, 16, 2, 1, 0},
    {16, 32, 2, 4, 16, 2, 1, 0},
};
static const struct lksi_tile portable_weight[] = {
    {64, 64, 8, 8, 16, 2, 0, 0},
    {64, 32, 8, 4, 16, 2, 0, 0},
    {32, 32, 4, 4, 16, 2, 0, 0},
};

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/*
 * Clocks until a compute unit of four lanes of 32 work-items has done its share. It is bound by
 * fmas, by loads from local memory (four clocks each, shared by the lanes), or by the latency of
 * one step, which nothing covers where few groups share a unit.
 */
static double cost(const struct lksi_tile *t, enum lksi_product kind, U64 rows, U32 columns,
                   U64 copies, U32 taps, U32 link, U32 units)
{
    U64 tiles = (rows + t->bm - 1) / t->bm * ((columns + t->bn - 1) / t->bn) * copies;
    U64 shared = (tiles + units - 1) / units; /* groups a unit; two fill its lanes once */
    double filled = (double)((shared + 1) / 2), sums = t->tm * t->tn;
    double readers = shared > 1 ? 2 * filled : 1;
    double steps = (link % 4 == 0 || taps == 1)
                       ? (double)taps * ((link + t->bk - 1) / t->bk) * t->bk
                       : (double)(((U64)taps * link + t->bk - 1) / t->bk) * t->bk;
    double step = larger(filled * sums * 1.33, readers * (t->tm + t->tn) * 2.4);
    step = larger(step, 13 + 1.37 * sums + (shared > 1 ? 10 : 0));
    if (t->bk == 16 && t->level == 3)
        step *= 1.1; /* more barriers */
    if (kind == LKSI_PRODUCT_FORWARD && t->turned != 0)
        step *= 1.2; /* loads of B come in bursts */
    return steps * step + (kind == LKSI_PRODUCT_FORWARD && t->turned == 0 ? 5000 : 0);
}

struct lksi_tile lksi_tile_choose(enum lksi_product kind, U64 rows, U32 columns, U64 copies,
                                  U32 taps, U32 link, const struct lksi_limits *dev, bool nv)
{
    const struct lksi_tile *t = nv ? nvidia : portable;
    size_t n = nv ? LKSI_COUNT(nvidia) : LKSI_COUNT(portable), best = 0;
    double least = 0;
    if (kind == LKSI_PRODUCT_WEIGHT) {
        t = nv ? nvidia_weight : portable_weight;
        n = nv ? LKSI_COUNT(nvidia_weight) : LKSI_COUNT(portable_weight);
    }
    if (dev->type == LKSI_DEV_CPU)
        return t[n - 1];
    for (size_t i = 0; i < n; i++) {
        double c = cost(&t[i], kind, rows, columns, copies, taps, link,
                        dev->compute_units > 0 ? dev->compute_units : 1);
        if (i == 0 || c < least) {
            least = c;
            best = i;
        }
    }
    return t[best];
}
