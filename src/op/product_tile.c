/*
 * product_tile.c - see product_tile.h. The estimate was fitted to an NVIDIA H200, where it came
 * within about 20 % for small and large layers (docs/performance.md).
 */
#include <stdio.h>

#include "op/product_tile.h"

/* Weight gradients need rows in fours. */
static const struct lksi_tile nvidia[] = {
    {64, 64, 8, 8, 16, 2, 0, 1}, {48, 64, 6, 8, 16, 2, 0, 1}, {48, 64, 6, 8, 16, 2, 1, 1},
    {64, 32, 8, 4, 16, 2, 0, 1}, {64, 32, 8, 4, 16, 2, 1, 1}, {48, 32, 6, 4, 32, 3, 0, 3},
    {48, 32, 6, 4, 16, 2, 0, 3}, {32, 32, 4, 4, 32, 3, 1, 3}, {32, 32, 4, 4, 16, 2, 1, 3},
    {24, 32, 3, 4, 32, 2, 1, 3}, {16, 32, 2, 4, 32, 4, 1, 3}, {8, 32, 1, 4, 32, 4, 1, 3},
    {96, 128, 6, 16, 16, 2, 0, 1},
};
static const struct lksi_tile nvidia_weight[] = {
    {64, 64, 8, 8, 16, 2, 0, 1},
    {64, 32, 8, 4, 16, 2, 0, 1},
    {32, 64, 4, 8, 16, 2, 0, 1},
    {32, 32, 4, 4, 16, 4, 0, 3},
    {128, 64, 8, 8, 16, 2, 0, 1},
    {128, 128, 8, 16, 16, 2, 0, 1},
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
/* Tiles that the estimate does not know: tuning alone tries them. */
static const struct lksi_tile nvidia_more[] = {
    {96, 64, 12, 8, 16, 2, 0, 1},  {96, 64, 12, 8, 16, 2, 1, 1}, {64, 64, 8, 8, 16, 2, 1, 1},
    {64, 128, 8, 8, 16, 2, 0, 1},  {128, 64, 8, 8, 16, 2, 0, 1}, {128, 128, 8, 16, 16, 2, 0, 1},
    {64, 64, 8, 8, 32, 2, 0, 1},   {64, 64, 8, 8, 16, 3, 0, 1},  {80, 64, 10, 8, 16, 2, 0, 1},
    {32, 64, 4, 8, 16, 2, 0, 1},   {48, 64, 6, 8, 16, 3, 0, 1},
};
static const struct lksi_tile nvidia_weight_more[] = {
    {64, 128, 8, 8, 16, 2, 0, 1}, {64, 64, 8, 8, 32, 2, 0, 1}, {64, 64, 8, 8, 16, 3, 0, 1},
    {32, 128, 4, 8, 16, 2, 0, 1}, {64, 64, 4, 8, 16, 2, 0, 1},
};

/* A list of tiles, and the further ones behind it. */
struct tiles {
    const struct lksi_tile *t, *more;
    size_t n, n_more;
};
#define TILES(a) {a, NULL, LKSI_COUNT(a), 0}
#define TILES_MORE(a, b) {a, b, LKSI_COUNT(a), LKSI_COUNT(b)}

static struct tiles tiles_of(enum lksi_product kind, bool nv)
{
    static const struct tiles all[2][2] = {
        {TILES(portable), TILES_MORE(nvidia, nvidia_more)},
        {TILES(portable_weight), TILES_MORE(nvidia_weight, nvidia_weight_more)}};
    return all[kind == LKSI_PRODUCT_WEIGHT][nv];
}

static const struct lksi_tile *tile_at(const struct tiles *z, int wanted)
{
    size_t i = (size_t)wanted - 1;
    return i < z->n ? &z->t[i] : i < z->n + z->n_more ? &z->more[i - z->n] : NULL;
}

bool lksi_tile_name(enum lksi_product kind, bool nv, int wanted, char text[LKSI_CHOICE_TEXT])
{
    struct tiles z = tiles_of(kind, nv);
    const struct lksi_tile *t = tile_at(&z, wanted);
    if (t == NULL)
        return false;
    int n = snprintf(text, LKSI_CHOICE_TEXT, "%ux%u %ux%u k%u s%u", t->bm, t->bn, t->tm, t->tn,
                     t->bk, t->s);
    if (nv)
        snprintf(text + n, (size_t)(LKSI_CHOICE_TEXT - n), " level%u%s", t->level,
                 t->turned ? " turned" : "");
    else if (t->turned)
        snprintf(text + n, (size_t)(LKSI_CHOICE_TEXT - n), " turned");
    return true;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Clocks of one fma of a work-item, where enough of them share a unit: sixteen columns a work-item
 * load less for each, and so does a group of more rows. */
static double fma_clocks(const struct lksi_tile *t)
{
    return t->tn == 16 ? (t->bm == 128 ? 1.263 : 1.305)
                       : t->bm == 128 ? 1.302 : t->tm == 6 && t->tn == 8 ? 1.35 : 1.33;
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
    U64 shared = (tiles + units - 1) / units;    /* groups a unit */
    U64 halves = lksi_tile_items(*t) / 64;       /* of the lanes, which one group fills */
    double filled = (double)((shared * halves + 1) / 2), sums = t->tm * t->tn;
    double readers = shared > 1 ? 2 * filled : (double)halves;
    double steps = (link % 4 == 0 || taps == 1)
                       ? (double)taps * ((link + t->bk - 1) / t->bk) * t->bk
                       : (double)(((U64)taps * link + t->bk - 1) / t->bk) * t->bk;
    if (kind == LKSI_PRODUCT_WEIGHT && t->tn == 16 && (shared < 8 || shared % 2 == 1))
        filled += 0.35; /* two such groups run side by side: the last one runs alone */
    double step = larger(filled * sums * fma_clocks(t), readers * (t->tm + t->tn) * 2.4);
    step = larger(step, 13 + (t->tn == 16 ? 1.2 : 1.37) * sums + (shared > 1 ? 10 : 0));
    if (t->bk == 16 && t->level == 3)
        step *= 1.1; /* more barriers */
    if (kind == LKSI_PRODUCT_FORWARD && t->turned != 0)
        step *= 1.2; /* loads of B come in bursts */
    if (kind != LKSI_PRODUCT_WEIGHT && t->tn == 16 && steps < 1024)
        step *= 1.1; /* few groups a unit, and none of them covers the start of a short chain */
    return steps * step + (kind == LKSI_PRODUCT_FORWARD && t->turned == 0 ? 5000 : 0);
}

struct lksi_tile lksi_tile_choose(enum lksi_product kind, U64 rows, U32 columns, U64 copies,
                                  U32 taps, U32 link, const struct lksi_limits *dev, bool nv,
                                  int wanted)
{
    struct tiles z = tiles_of(kind, nv);
    size_t best = 0;
    double least = 0;
    if (wanted > 0)
        return *tile_at(&z, wanted);
    if (dev->type == LKSI_DEV_CPU)
        return z.t[z.n - 1];
    for (size_t i = 0; i < z.n; i++) {
        double c = cost(&z.t[i], kind, rows, columns, copies, taps, link,
                        dev->compute_units > 0 ? dev->compute_units : 1);
        if (i == 0 || c < least) {
            least = c;
            best = i;
        }
    }
    return z.t[best];
}
