/*
 * winograd.h - contracts of the 2-D convolution by Winograd's F(2x2, 3x3) and of its gradients: for
 * kernels of 3 x 3 with stride 1, dilation 1 and one group, with any padding. Dims and tensors are
 * those of conv.h. 16 multiplications make four outputs, where the direct contracts take 36; other
 * roundings, so other bits: a model chooses it (`algo: winograd`), a device never does.
 *
 * The outputs are cut into tiles of 2 x 2: tile (th, tw) holds rows 2*th, 2*th + 1 and columns
 * 2*tw, 2*tw + 1. What lies outside a picture counts as +0 where it is read, and is not written.
 *
 * winograd, y[n][oh][ow][k] from x, w and an optional bias[k]. For a tile and a k:
 *   1. For each c the patch d[i][j] = x[n][2*th + i - pad_h][2*tw + j - pad_w][c], i, j = 0..3, is
 *      transformed (LKS_WINOGRAD_PATCH):
 *        t[0][j] = d[0][j] - d[2][j]   t[1][j] = d[1][j] + d[2][j]
 *        t[2][j] = d[2][j] - d[1][j]   t[3][j] = d[1][j] - d[3][j]
 *      then the same along rows: v[i][0] = t[i][0] - t[i][2], v[i][1] = t[i][1] + t[i][2], ...
 *   2. For each c the kernel g[r][s] = w[k][r][s][c] is transformed (LKS_WINOGRAD_KERNEL):
 *        a[0][s] = g[0][s]   a[1][s] = ((g[0][s] + g[2][s]) + g[1][s]) * 0.5f
 *        a[3][s] = g[2][s]   a[2][s] = ((g[0][s] + g[2][s]) - g[1][s]) * 0.5f
 *      then the same along rows: u[i][0] = a[i][0], u[i][1] = ((a[i][0] + a[i][2]) + a[i][1]) *
 *      0.5f, ...
 *   3. At each of the 16 places the chain over c upward of fma(v, u, m), in pieces of LKS_PIECE
 *      channels (piece.h).
 *   4. The outputs (LKS_WINOGRAD_OUTPUTS):
 *        p[0][j] = (m[0][j] + m[1][j]) + m[2][j]   p[1][j] = (m[1][j] - m[2][j]) - m[3][j]
 *      then the same along rows: y[i][0] = (p[i][0] + p[i][1]) + p[i][2], y[i][1] = ...
 *   5. y = y + bias[k], if there is a bias.
 *   6. y = y + 0.0f.
 *   7. y = y <= 0 ? +0 : y, if `relu` is set.
 *
 * winograd_data_grad, dx[n][h][w][c] from dy and w: the same over dy, with tiles of dx, the patch
 *   d[i][j] = dy[n][2*th + i + pad_h - 2][2*tw + j + pad_w - 2][k], the kernel turned by half a
 *   turn, g[r][s] = w[k][2 - r][2 - s][c], and the chain over k. Step 5 with extra = 2 (bias[c]);
 *   after step 6 dx = mask <= 0 ? +0 : dx with extra = 1, as conv2d_data_grad.h has it.
 *
 * winograd_weight_grad, dw[k][r][s][c] from x and dy:
 *   1. The patch of x of each tile and c: v, by step 1 of winograd.
 *   2. The outputs' gradients e[i][j] = dy[n][2*th + i][2*tw + j][k] of each tile and k
 *      (LKS_WINOGRAD_SPREAD):
 *        t[0][j] = e[0][j]   t[1][j] = e[0][j] + e[1][j]
 *        t[3][j] = -e[1][j]  t[2][j] = e[0][j] - e[1][j]
 *      then the same along rows: f[i][0] = t[i][0], f[i][1] = t[i][0] + t[i][1], ...
 *   3. At each of the 16 places the sum over the batch by rule 8, whose positions are the tiles
 *      (rows th, columns tw): a leaf is acc = +0; for the tiles of the leaf upward: acc = fma(v, f,
 *      acc), in pieces of LKS_STRETCH tiles (piece.h). The leaves of a cut sample meet in a tree,
 *      then the samples, or groups of joined samples. Its root is q.
 *   4. The weights (LKS_WINOGRAD_WEIGHTS):
 *        b[0][j] = q[0][j] + (q[1][j] + q[2][j]) * 0.5f   b[1][j] = (q[1][j] - q[2][j]) * 0.5f
 *        b[2][j] = (q[1][j] + q[2][j]) * 0.5f + q[3][j]
 *      then the same along rows.
 *   5. dw = dw + 0.0f.
 *
 * Special values: a product with 0.5f is exact but for subnormal numbers. v reaches four times the
 * largest x of a patch and u 9/4 of the largest weight, so numbers above 2^126 may overflow here
 * and not in the direct contracts; infinities and NaNs reach all outputs of a tile. The sign of a
 * zero in m, p or q reaches no output, since additions follow up to the + 0.0f: a schedule may set
 * it either way.
 *
 * Error, with |.| taken of every operand in place of signs: at most C + 13 roundings (data
 * gradient: K + 13; above LKS_PIECE channels that and the number of pieces take their place), each
 * within half an ulp of sum over c of A'(|G||g||G'| . |B'||d||B|)A; that is up to 36 times the
 * largest product of each c in place of 9, so expect two to three times the error of the direct
 * contracts. Weight gradient: a leaf, its tree and 12 more, on the sums of |v||f|. Where a product
 * with 0.5f is subnormal, at most 2^-148 of it is lost in u. src/check/real_winograd.c holds these
 * bounds.
 */
#ifndef LKS_CONTRACT_WINOGRAD_H
#define LKS_CONTRACT_WINOGRAD_H

#include "contract/conv.h"

/* Tiles over `size` rows or columns. */
LKS_INLINE U32 lks_winograd_tiles(U32 size)
{
    return (size + 1u) / 2u;
}

/* ---- the transforms, on private arrays [row][column] of T: F32, or vectors in kernels ---- */

/* Step 1: d[16] becomes v in place. */
#define LKS_WINOGRAD_PATCH_LINE(T, d0, d1, d2, d3)                                                 \
    {                                                                                              \
        const T p1_ = d1, p2_ = d2;                                                                \
        d0 = d0 - p2_;                                                                             \
        d1 = p1_ + p2_;                                                                            \
        d2 = p2_ - p1_;                                                                            \
        d3 = p1_ - d3;                                                                             \
    }
#define LKS_WINOGRAD_PATCH(T, d)                                                                   \
    {                                                                                              \
        LKS_WINOGRAD_PATCH_LINE(T, d[0], d[4], d[8], d[12])                                        \
        LKS_WINOGRAD_PATCH_LINE(T, d[1], d[5], d[9], d[13])                                        \
        LKS_WINOGRAD_PATCH_LINE(T, d[2], d[6], d[10], d[14])                                       \
        LKS_WINOGRAD_PATCH_LINE(T, d[3], d[7], d[11], d[15])                                       \
        LKS_WINOGRAD_PATCH_LINE(T, d[0], d[1], d[2], d[3])                                         \
        LKS_WINOGRAD_PATCH_LINE(T, d[4], d[5], d[6], d[7])                                         \
        LKS_WINOGRAD_PATCH_LINE(T, d[8], d[9], d[10], d[11])                                       \
        LKS_WINOGRAD_PATCH_LINE(T, d[12], d[13], d[14], d[15])                                     \
    }

/* Step 2: u[16] from g[9]. */
#define LKS_WINOGRAD_KERNEL_LINE(T, g0, g1, g2, u0, u1, u2, u3)                                    \
    {                                                                                              \
        const T g0_ = g0, g1_ = g1, g2_ = g2, ends_ = g0_ + g2_;                                   \
        u0 = g0_;                                                                                  \
        u1 = (ends_ + g1_) * 0.5f;                                                                 \
        u2 = (ends_ - g1_) * 0.5f;                                                                 \
        u3 = g2_;                                                                                  \
    }
#define LKS_WINOGRAD_KERNEL(T, g, u)                                                               \
    {                                                                                              \
        LKS_WINOGRAD_KERNEL_LINE(T, g[0], g[3], g[6], u[0], u[4], u[8], u[12])                     \
        LKS_WINOGRAD_KERNEL_LINE(T, g[1], g[4], g[7], u[1], u[5], u[9], u[13])                     \
        LKS_WINOGRAD_KERNEL_LINE(T, g[2], g[5], g[8], u[2], u[6], u[10], u[14])                    \
        LKS_WINOGRAD_KERNEL_LINE(T, u[0], u[1], u[2], u[0], u[1], u[2], u[3])                      \
        LKS_WINOGRAD_KERNEL_LINE(T, u[4], u[5], u[6], u[4], u[5], u[6], u[7])                      \
        LKS_WINOGRAD_KERNEL_LINE(T, u[8], u[9], u[10], u[8], u[9], u[10], u[11])                   \
        LKS_WINOGRAD_KERNEL_LINE(T, u[12], u[13], u[14], u[12], u[13], u[14], u[15])               \
    }

/* Step 4: y[4] from m[16], which it overwrites. */
#define LKS_WINOGRAD_OUTPUT_LINE(T, m0, m1, m2, m3, y0, y1)                                        \
    {                                                                                              \
        const T m1_ = m1, m2_ = m2, m3_ = m3;                                                      \
        y0 = (m0 + m1_) + m2_;                                                                     \
        y1 = (m1_ - m2_) - m3_;                                                                    \
    }
#define LKS_WINOGRAD_OUTPUTS(T, m, y)                                                              \
    {                                                                                              \
        LKS_WINOGRAD_OUTPUT_LINE(T, m[0], m[4], m[8], m[12], m[0], m[4])                           \
        LKS_WINOGRAD_OUTPUT_LINE(T, m[1], m[5], m[9], m[13], m[1], m[5])                           \
        LKS_WINOGRAD_OUTPUT_LINE(T, m[2], m[6], m[10], m[14], m[2], m[6])                          \
        LKS_WINOGRAD_OUTPUT_LINE(T, m[3], m[7], m[11], m[15], m[3], m[7])                          \
        LKS_WINOGRAD_OUTPUT_LINE(T, m[0], m[1], m[2], m[3], y[0], y[1])                            \
        LKS_WINOGRAD_OUTPUT_LINE(T, m[4], m[5], m[6], m[7], y[2], y[3])                            \
    }

/* Weight gradient, step 2: f[16] from e[4]. */
#define LKS_WINOGRAD_SPREAD_LINE(T, e0, e1, f0, f1, f2, f3)                                        \
    {                                                                                              \
        const T e0_ = e0, e1_ = e1;                                                                \
        f0 = e0_;                                                                                  \
        f1 = e0_ + e1_;                                                                            \
        f2 = e0_ - e1_;                                                                            \
        f3 = -e1_;                                                                                 \
    }
#define LKS_WINOGRAD_SPREAD(T, e, f)                                                               \
    {                                                                                              \
        LKS_WINOGRAD_SPREAD_LINE(T, e[0], e[2], f[0], f[4], f[8], f[12])                           \
        LKS_WINOGRAD_SPREAD_LINE(T, e[1], e[3], f[1], f[5], f[9], f[13])                           \
        LKS_WINOGRAD_SPREAD_LINE(T, f[0], f[1], f[0], f[1], f[2], f[3])                            \
        LKS_WINOGRAD_SPREAD_LINE(T, f[4], f[5], f[4], f[5], f[6], f[7])                            \
        LKS_WINOGRAD_SPREAD_LINE(T, f[8], f[9], f[8], f[9], f[10], f[11])                          \
        LKS_WINOGRAD_SPREAD_LINE(T, f[12], f[13], f[12], f[13], f[14], f[15])                      \
    }

/* Weight gradient, step 4: dw[9] from q[16], which it overwrites. */
#define LKS_WINOGRAD_WEIGHT_LINE(T, q0, q1, q2, q3, b0, b1, b2)                                    \
    {                                                                                              \
        const T q0_ = q0, q1_ = q1, q2_ = q2, half_ = (q1_ + q2_) * 0.5f;                          \
        b2 = half_ + q3;                                                                           \
        b0 = q0_ + half_;                                                                          \
        b1 = (q1_ - q2_) * 0.5f;                                                                   \
    }
#define LKS_WINOGRAD_WEIGHTS(T, q, dw)                                                             \
    {                                                                                              \
        LKS_WINOGRAD_WEIGHT_LINE(T, q[0], q[4], q[8], q[12], q[0], q[4], q[8])                     \
        LKS_WINOGRAD_WEIGHT_LINE(T, q[1], q[5], q[9], q[13], q[1], q[5], q[9])                     \
        LKS_WINOGRAD_WEIGHT_LINE(T, q[2], q[6], q[10], q[14], q[2], q[6], q[10])                   \
        LKS_WINOGRAD_WEIGHT_LINE(T, q[3], q[7], q[11], q[15], q[3], q[7], q[11])                   \
        LKS_WINOGRAD_WEIGHT_LINE(T, q[0], q[1], q[2], q[3], dw[0], dw[1], dw[2])                   \
        LKS_WINOGRAD_WEIGHT_LINE(T, q[4], q[5], q[6], q[7], dw[3], dw[4], dw[5])                   \
        LKS_WINOGRAD_WEIGHT_LINE(T, q[8], q[9], q[10], q[11], dw[6], dw[7], dw[8])                 \
    }

/* ---- items ---- */

/* d[side * side]: the square of image n of x[n][h][w][c] at (row, col); they wrap if negative. */
LKS_INLINE void lks_winograd_load(LKS_GLOBAL LKS_CONST F32 *x, U64 n, U32 h, U32 w, U32 channels,
                                  U32 row, U32 col, U32 side, U32 c, F32 *d)
{
    for (U32 i = 0u; i < side; i++) {
        for (U32 j = 0u; j < side; j++) {
            U32 y = row + i, z = col + j; /* of 32 bits, so that they wrap back */
            d[i * side + j] =
                y < h && z < w ? x[((n * h + y) * w + z) * channels + c] : 0.0f;
        }
    }
}

/* Ends a piece of 16 sums. */
LKS_INLINE void lks_winograd_piece(F32 *sum, F32 *acc)
{
    for (U32 i = 0u; i < 16u; i++) {
        sum[i] = sum[i] + acc[i];
        acc[i] = 0.0f;
    }
}

/* Output (row, col) of a tile after steps 1 to 4; kernels g[r][s] stand at
 * g[first + c * step + (turned: 8 - (3*r + s), else 3*r + s) * tap]. */
LKS_INLINE F32 lks_winograd_sum(LKS_GLOBAL LKS_CONST F32 *x, U64 n, U32 h, U32 w, U32 channels,
                                U32 row, U32 col, LKS_GLOBAL LKS_CONST F32 *g, U64 first, U64 step,
                                U32 tap, I32 turned, U32 output)
{
    F32 m[16], acc[16], v[16], u[16], k[9], y[4];
    for (U32 i = 0u; i < 16u; i++)
        m[i] = acc[i] = 0.0f;
    for (U32 c = 0u; c < channels; c++) {
        if (c % LKS_PIECE == 0u)
            lks_winograd_piece(m, acc);
        lks_winograd_load(x, n, h, w, channels, row, col, 4u, c, v);
        LKS_WINOGRAD_PATCH(F32, v)
        for (U32 i = 0u; i < 9u; i++)
            k[i] = g[first + c * step + (turned ? 8u - i : i) * tap];
        LKS_WINOGRAD_KERNEL(F32, k, u)
        for (U32 i = 0u; i < 16u; i++)
            acc[i] = lks_fma(v[i], u[i], acc[i]);
    }
    lks_winograd_piece(m, acc);
    LKS_WINOGRAD_OUTPUTS(F32, m, y)
    return y[output];
}

LKS_INLINE void winograd_item(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST F32 *w,
                              LKS_GLOBAL LKS_CONST F32 *bias, LKS_GLOBAL F32 *y,
                              const struct lks_conv_dims *d, U64 i)
{
    U32 k = (U32)(i % d->k);
    U64 p = i / d->k;
    U32 ow = (U32)(p % d->ow);
    U32 oh = (U32)(p / d->ow % d->oh);
    U64 n = p / d->ow / d->oh;
    F32 v = lks_winograd_sum(x, n, d->h, d->w, d->c, oh / 2u * 2u - d->pad_h,
                             ow / 2u * 2u - d->pad_w, w, (U64)k * 9u * d->c, 1u, d->c, 0,
                             oh % 2u * 2u + ow % 2u);
    if (d->extra != 0u)
        v = v + bias[k];
    v = v + 0.0f;
    if (d->relu != 0u)
        v = lks_conv_relu(v);
    y[i] = v;
}

LKS_INLINE void winograd_data_grad_item(LKS_GLOBAL LKS_CONST F32 *dy, LKS_GLOBAL LKS_CONST F32 *w,
                                        LKS_GLOBAL LKS_CONST F32 *extra, LKS_GLOBAL F32 *dx,
                                        const struct lks_conv_dims *d, U64 i)
{
    U32 c = (U32)(i % d->c);
    U64 p = i / d->c;
    U32 iw = (U32)(p % d->w);
    U32 ih = (U32)(p / d->w % d->h);
    U64 n = p / d->w / d->h;
    F32 v = lks_winograd_sum(dy, n, d->oh, d->ow, d->k, ih / 2u * 2u + d->pad_h - 2u,
                             iw / 2u * 2u + d->pad_w - 2u, w, c, 9u * (U64)d->c, d->c, 1,
                             ih % 2u * 2u + iw % 2u);
    if (d->extra == 2u)
        v = v + extra[c];
    v = v + 0.0f;
    if (d->extra == 1u)
        v = lks_select(extra[i] <= 0.0f, 0.0f, v);
    dx[i] = v;
}

/* sum[16]: the sums of leaf `leaf` for the weights (k, c). */
LKS_INLINE void lks_winograd_leaf(LKS_GLOBAL LKS_CONST F32 *x, LKS_GLOBAL LKS_CONST F32 *dy,
                                  const struct lks_conv_dims *d, U32 k, U32 c, U32 leaf, F32 *sum)
{
    U32 n0, n1, r0, r1, place = 0u;
    F32 acc[16], v[16], e[4], f[16];
    for (U32 i = 0u; i < 16u; i++)
        sum[i] = acc[i] = 0.0f;
    lks_leaf_range(&d->leaf, leaf, &n0, &n1, &r0, &r1);
    for (U32 n = n0; n < n1; n++) {
        for (U32 th = r0; th < r1; th++) {
            for (U32 tw = 0u; tw < d->leaf.cols; tw++, place++) {
                if (place % LKS_STRETCH == 0u)
                    lks_winograd_piece(sum, acc);
                lks_winograd_load(x, n, d->h, d->w, d->c, 2u * th - d->pad_h, 2u * tw - d->pad_w,
                                  4u, c, v);
                LKS_WINOGRAD_PATCH(F32, v)
                lks_winograd_load(dy, n, d->oh, d->ow, d->k, 2u * th, 2u * tw, 2u, k, e);
                LKS_WINOGRAD_SPREAD(F32, e, f)
                for (U32 i = 0u; i < 16u; i++)
                    acc[i] = lks_fma(v[i], f[i], acc[i]);
            }
        }
    }
    lks_winograd_piece(sum, acc);
}

LKS_INLINE void winograd_weight_grad_item(LKS_GLOBAL LKS_CONST F32 *x,
                                          LKS_GLOBAL LKS_CONST F32 *dy, LKS_GLOBAL F32 *dw,
                                          const struct lks_conv_dims *d, U64 i)
{
    U32 c = (U32)(i % d->c);
    U32 tap = (U32)(i / d->c % 9u);
    U32 k = (U32)(i / d->c / 9u);
    struct lks_leaf_tree t[16];
    F32 acc[16], out[9];
    for (U32 j = 0u; j < 16u; j++)
        lks_leaf_tree_init(&t[j]);
    for (U32 leaf = 0u; leaf < d->leaf.leaves; leaf++) {
        lks_winograd_leaf(x, dy, d, k, c, leaf, acc);
        for (U32 j = 0u; j < 16u; j++)
            lks_leaf_tree_push(&t[j], &d->leaf, acc[j]);
    }
    for (U32 j = 0u; j < 16u; j++)
        acc[j] = lks_leaf_tree_root(&t[j]);
    LKS_WINOGRAD_WEIGHTS(F32, acc, out)
    dw[i] = out[tap] + 0.0f;
}

#endif
