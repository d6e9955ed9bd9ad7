/*
 * span.h - sums over the positions of a leaf as piece.h has them, for NV vectors at a time: pieces
 * of LKS_SPAN positions, which the caller chains, meet in a counter. Behind contract/piece.h and
 * op/vec.h.
 */
struct LKS_FN(span) {
    U32 count;
    V part[LKS_TREE_LEVEL][NV];
};

/* Takes in the next piece; v starts at +0 again. */
static inline void LKS_FN(span_push)(struct LKS_FN(span) *t, V *v)
{
    U32 level = 0u;
    for (U32 bits = t->count; (bits & 1u) != 0u; bits >>= 1, level++)
        UNROLL for (int j = 0; j < NV; j++)
            v[j] = t->part[level][j] + v[j];
    UNROLL for (int j = 0; j < NV; j++) {
        t->part[level][j] = v[j];
        v[j] = (V)(0.0f);
    }
    t->count++;
}

/* v: the sum of all pieces; +0 if there is none. */
static inline void LKS_FN(span_root)(const struct LKS_FN(span) *t, V *v)
{
    int have = 0;
    U32 level = 0u;
    UNROLL for (int j = 0; j < NV; j++)
        v[j] = (V)(0.0f);
    for (U32 bits = t->count; bits != 0u; bits >>= 1, level++) {
        if ((bits & 1u) == 0u)
            continue;
        UNROLL for (int j = 0; j < NV; j++)
            v[j] = have ? t->part[level][j] + v[j] : t->part[level][j];
        have = 1;
    }
}

/* Runs STEP for each of `count` positions, END behind each piece of them. */
#define FOR_SPANS(count, STEP, END)                                                                \
    for (U32 done_ = 0u; done_ < (count);) {                                                       \
        const U32 stop_ = min(done_ + LKS_SPAN, (U32)(count));                                     \
        for (; done_ < stop_; done_++) {                                                           \
            STEP                                                                                   \
        }                                                                                          \
        END                                                                                        \
    }
