/*
 * pool.h - the loops of the pooling kernels, and the taps of a window.
 *
 * Macros: VEC lanes, at most the channels. ROWS: a work-item goes over a whole row of windows or
 * pixels (CPU), vectors over the last channel moving back; else it is one vector of one window or
 * pixel, and VEC divides the channels.
 */
#include "contract/pool.h"
#include "op/vec.h"

#ifdef ROWS
/* Work-item (1, 1, row). */
#define FOR_ROW(row, rows)                                                                         \
    U64 row = get_global_id(2);                                                                    \
    if (row < (rows))
#define FOR_COLUMN(x, columns) for (U32 x = 0u; x < (columns); x++)
#define FOR_CHANNEL(c, d)                                                                          \
    for (U32 c_ = 0u, c = 0u; c_ < (d).c && ((c = c_ + VEC <= (d).c ? c_ : (d).c - VEC), 1);       \
         c_ += VEC)
#else
/* Work-item (vector of channels, column, row). */
#define FOR_ROW(row, rows)                                                                         \
    U64 row = get_global_id(2);                                                                    \
    if (row < (rows))
#define FOR_COLUMN(x, columns)                                                                     \
    U32 x = get_global_id(1);                                                                      \
    if (x < (columns))
#define FOR_CHANNEL(c, d)                                                                          \
    U32 c = get_global_id(0) * VEC;                                                                \
    if (c < (d).c)
#endif

/* Taps [r0, r1) x [s0, s1) of a window that lie in the image, and where its tap (0, 0) would be. */
struct LKS_FN(window) {
    U32 r0, r1, s0, s1;
    U32 top, left; /* shifted by the padding */
};

static struct LKS_FN(window) LKS_FN(window_at)(const struct maxpool_dims *d, U32 oh, U32 ow)
{
    struct LKS_FN(window) w;
    w.top = oh * d->sh;
    w.left = ow * d->sw;
    w.r0 = lks_pool_first(w.top, d->pt, d->dh);
    w.s0 = lks_pool_first(w.left, d->pl, d->dw);
    w.r1 = lks_pool_end(w.top, d->h + d->pt, d->dh, d->kh);
    w.s1 = lks_pool_end(w.left, d->w + d->pl, d->dw, d->kw);
    return w;
}

/* Windows [o0, o1) along an axis could have position `at` (shifted) at a tap. */
static void LKS_FN(windows)(U32 at, U32 stride, U32 taps, U32 dil, U32 count, U32 *o0, U32 *o1)
{
    const U32 reach = (taps - 1u) * dil + 1u;
    *o1 = at / stride < count ? at / stride + 1u : count;
    *o0 = at < reach ? 0u : (at - reach) / stride + 1u;
}
