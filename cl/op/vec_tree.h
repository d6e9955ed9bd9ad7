/*
 * vec_tree.h - the tree of sum.h over vectors that arrive one by one, lane by lane. Behind vec.h;
 * macro LEVELS: of the counter (LKS_TREE_LEVEL).
 */
#ifndef LEVELS
#define LEVELS LKS_TREE_LEVEL
#endif

struct LKS_FN(counter) {
    U32 count;
    V part[LEVELS];
};

static void LKS_FN(push)(struct LKS_FN(counter) *t, V v)
{
    U32 level = 0u;
    for (U32 bits = t->count; (bits & 1u) != 0u; bits >>= 1)
        v = t->part[level++] + v;
    t->part[level] = v;
    t->count++;
}

static V LKS_FN(root)(const struct LKS_FN(counter) *t)
{
    V v = (V)(0.0f);
    int have = 0;
    U32 level = 0u;
    for (U32 bits = t->count; bits != 0u; bits >>= 1, level++) {
        if ((bits & 1u) == 0u)
            continue;
        v = have ? t->part[level] + v : t->part[level];
        have = 1;
    }
    return v;
}
