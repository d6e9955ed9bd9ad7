/*
 * embedding.h - contracts of embedding and embedding_grad (numerics.md, rules 4 and 8).
 *
 * embedding:  y[n,s,d] = table[token[n,s]][d], the bits copied. A token outside [0, V) reads
 *   nothing and gives a NaN, so that the guard of rule 12 stops the step.
 *
 * embedding_grad:  dtable[v][d] = sum of dy[n,s,d] over the positions (n,s) with token[n,s] = v
 *   1. The batch is cut by leaf.h with S rows and one column. A leaf: acc = +0; acc = acc + dy for
 *      those of its positions (n,s) upward whose token is v.
 *   2. The leaves meet in the tree; one without such a position is +0.
 *   3. + 0.0f. A row that is not hit at all is +0. Tokens outside [0, V) count nowhere.
 *
 * Special values follow IEEE-754; a zero sum is +0. Error bound: embedding 0; embedding_grad the
 * positions of a leaf that hit (at most 1024) and log2 of the leaves, in units of 2^-24 of the sum
 * of magnitudes.
 */
#ifndef LKS_CONTRACT_EMBEDDING_H
#define LKS_CONTRACT_EMBEDDING_H

#include "contract/leaf.h"
#include "contract/num.h"

struct embedding_dims {
    U32 v, d;    /* rows of the table, their length */
    U32 n, s;    /* samples, positions a sample */
    U32 leaf;    /* embedding_grad: samples a block */
};

LKS_INLINE void embedding_item(LKS_GLOBAL LKS_CONST F32 *table, LKS_GLOBAL LKS_CONST I32 *token,
                               LKS_GLOBAL F32 *y, LKS_CONST struct embedding_dims *d, U64 i)
{
    U32 row = (U32)token[i / d->d];
    y[i] = row < d->v ? table[(U64)row * d->d + i % d->d] : lks_nan();
}

LKS_INLINE void embedding_grad_item(LKS_GLOBAL LKS_CONST F32 *dy, LKS_GLOBAL LKS_CONST I32 *token,
                                    LKS_GLOBAL F32 *dtable, LKS_CONST struct embedding_dims *d,
                                    U64 i)
{
    struct lks_leaf f = lks_leaf_make(d->n, d->s, 1u, d->leaf);
    struct lks_leaf_tree tree;
    I32 row = (I32)(i / d->d);
    U32 j, n0, n1, r0, r1;
    U64 p, end;
    lks_leaf_tree_init(&tree);
    for (j = 0u; j < f.leaves; j += 1u) {
        F32 acc = 0.0f;
        lks_leaf_range(&f, j, &n0, &n1, &r0, &r1);
        end = (U64)(n1 - 1u) * d->s + r1;
        for (p = (U64)n0 * d->s + r0; p < end; p += 1u)
            if (token[p] == row)
                acc = lks_chain(acc, dy[p * d->d + i % d->d]);
        lks_leaf_tree_push(&tree, &f, acc);
    }
    dtable[i] = lks_leaf_tree_root(&tree) + 0.0f;
}

#endif
