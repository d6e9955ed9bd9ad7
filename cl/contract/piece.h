/*
 * piece.h - how long sums are cut into pieces (numerics.md, rules 4, 7 and 8), so that their error
 * grows with the length of a piece and the number of pieces and not with their product.
 *
 * Chains of products take their pieces one after the other:
 *     sum = +0; for each piece in order: acc = +0; acc = fma(a, b, acc) ...; sum = sum + acc
 *   - Over channels (rule 7): a tap's channels are cut at multiples of LKS_PIECE; where several
 *     taps fit into LKS_PIECE, lks_piece_taps of them, counted from tap 0 on whether they are met
 *     or not, are one piece.
 *   - Over the positions of a leaf (rule 8): pieces of LKS_STRETCH positions, counted from the
 *     leaf's first, padding included.
 *   Where there is one piece, a schedule may take acc for the sum: only the sign of a zero differs,
 *   which the last + 0.0f of the contract settles.
 * Sums over the positions of a leaf that are bound by memory and not by arithmetic (biases, means,
 * variances) are finer: pieces of LKS_SPAN positions, each a chain from +0, meet in a tree.
 */
#ifndef LKS_CONTRACT_PIECE_H
#define LKS_CONTRACT_PIECE_H

#include "contract/num.h"
#include "contract/sum.h"

#ifndef LKS_PIECE
#define LKS_PIECE 1280u
#endif
#ifndef LKS_STRETCH
#define LKS_STRETCH 512u
#endif
#ifndef LKS_SPAN
#define LKS_SPAN 16u
#endif

/* Taps of `channels` products that are one piece. */
LKS_INLINE U32 lks_piece_taps(U32 channels)
{
    return channels < LKS_PIECE ? LKS_PIECE / channels : 1u;
}

/* Are chains over `taps` taps of `channels` more than one piece? */
LKS_INLINE I32 lks_piece_many(U32 taps, U32 channels)
{
    return channels > LKS_PIECE || taps > lks_piece_taps(channels);
}

/* Does a piece begin at channel c of tap number t? */
LKS_INLINE I32 lks_piece_begins(U32 t, U32 c, U32 piece_taps)
{
    return c % LKS_PIECE == 0u && (c != 0u || t % piece_taps == 0u);
}

/* A leaf of products under way; `fill` positions of the piece so far. */
struct lks_stretch {
    F32 sum, acc;
    U32 fill;
};

LKS_INLINE void lks_stretch_init(struct lks_stretch *s)
{
    s->sum = 0.0f;
    s->acc = 0.0f;
    s->fill = 0u;
}

/* Goes to the next position, at which acc is to be chained, or not. */
LKS_INLINE void lks_stretch_next(struct lks_stretch *s)
{
    if (s->fill == LKS_STRETCH) {
        s->sum = s->sum + s->acc;
        s->acc = 0.0f;
        s->fill = 0u;
    }
    s->fill += 1u;
}

LKS_INLINE F32 lks_stretch_end(const struct lks_stretch *s)
{
    return s->sum + s->acc;
}

/* A leaf of a finer sum under way. */
struct lks_span {
    struct lks_counter pieces;
    F32 acc;
    U32 fill;
};

LKS_INLINE void lks_span_init(struct lks_span *s)
{
    lks_counter_init(&s->pieces);
    s->acc = 0.0f;
    s->fill = 0u;
}

/* acc = fma(a, b, acc) at the next position. */
LKS_INLINE void lks_span_fma(struct lks_span *s, F32 a, F32 b)
{
    if (s->fill == LKS_SPAN) {
        lks_counter_push(&s->pieces, s->acc);
        s->acc = 0.0f;
        s->fill = 0u;
    }
    s->acc = lks_fma(a, b, s->acc);
    s->fill += 1u;
}

/* acc = acc + x. */
LKS_INLINE void lks_span_add(struct lks_span *s, F32 x)
{
    lks_span_fma(s, x, 1.0f);
}

/* The sum; +0 if there was no position. Nothing may be added behind it. */
LKS_INLINE F32 lks_span_end(struct lks_span *s)
{
    if (s->fill != 0u)
        lks_counter_push(&s->pieces, s->acc);
    return lks_counter_root(&s->pieces);
}

#endif
