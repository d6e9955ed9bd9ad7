/*
 * move.c - transposing, cutting, padding and joining, with dimensions folded until the library
 * takes them; see net.h.
 */
#include <stdlib.h>
#include <string.h>

#include "net.h"
#include "op/attr.h"

/* Joins neighbours of x that both stay neighbours, in order, of y. */
static void fold_order(const struct net_shape *s, const int *order, struct net_shape *fs, int *fo)
{
    int label[ONNX_MAX_RANK], first[ONNX_MAX_RANK], groups = 0;
    for (int k = 0; k < s->rank; k++) { /* runs of y */
        bool run = k > 0 && order[k] == order[k - 1] + 1;
        groups += run ? 0 : 1;
        if (!run)
            first[groups - 1] = order[k];
        label[order[k]] = groups - 1;
    }
    fs->rank = 0;
    for (int k = 0; k < s->rank; k++) {
        if (first[label[k]] == k) {
            fo[label[k]] = fs->rank;
            fs->dim[fs->rank++] = 1;
        }
        fs->dim[fs->rank - 1] *= s->dim[k];
    }
}

static bool move_axes(struct net *net, lksi_value x, const struct net_shape *s, const int *order,
                      lksi_value *out)
{
    struct lksi_move_attr a;
    lksi_value v;
    memset(&a, 0, sizeof a);
    a.rank = s->rank;
    for (int k = 0; k < s->rank; k++)
        a.axis[k].from = order[k];
    return net_view(net, x, s, &v) && net_apply(net, "move", &a, 1, &v, out);
}

/* One axis after the other comes to its place: each time two blocks change places. */
static bool by_steps(struct net *net, lksi_value x, const struct net_shape *s, const int *order,
                     lksi_value *out)
{
    static const int swap[4] = {0, 2, 1, 3};
    int at[ONNX_MAX_RANK];
    for (int k = 0; k < s->rank; k++)
        at[k] = k;
    for (int k = 0; k < s->rank; k++) {
        struct net_shape now = {.rank = s->rank};
        int p = k;
        while (at[p] != order[k])
            p++;
        if (p == k)
            continue;
        for (int j = 0; j < s->rank; j++)
            now.dim[j] = s->dim[at[j]];
        struct net_shape four = net_dims(4, net_product(&now, 0, k), net_product(&now, k, p),
                                         now.dim[p], net_product(&now, p + 1, s->rank));
        if (!move_axes(net, x, &four, swap, &x))
            return false;
        memmove(at + k + 1, at + k, (size_t)(p - k) * sizeof at[0]);
        at[k] = order[k];
    }
    *out = x;
    return true;
}

bool net_transpose(struct net *net, lksi_value x, const struct net_shape *s, const int *order,
                   lksi_value *out)
{
    struct net_shape folded;
    int fo[ONNX_MAX_RANK];
    *out = x;
    if (s->rank < 2)
        return x != LKSI_NONE;
    fold_order(s, order, &folded, fo);
    return folded.rank <= LKSI_MAX_RANK ? move_axes(net, x, &folded, fo, out)
                                        : by_steps(net, x, &folded, fo, out);
}

bool net_move(struct net *net, lksi_value x, const struct net_shape *s, const struct net_cut *cut,
              float value, lksi_value *out)
{
    struct lksi_move_attr a;
    struct net_shape folded = {.rank = 0};
    bool joins = false;
    memset(&a, 0, sizeof a);
    memcpy(&a.value, &value, sizeof value);
    for (int k = 0; k < s->rank; k++) {
        bool whole = cut[k].begin == 0 && cut[k].step == 1 && cut[k].size == s->dim[k];
        if (cut[k].size < 1) {
            net_beyond(net, NET_EMPTY);
            return false;
        }
        if (whole && joins) {
            folded.dim[folded.rank - 1] *= s->dim[k];
            continue;
        }
        joins = whole;
        if (a.rank == LKSI_MAX_RANK) {
            net_no(net, "a move along too many axes");
            return false;
        }
        folded.dim[folded.rank++] = s->dim[k];
        a.axis[a.rank].from = a.rank;
        if (!whole) {
            a.axis[a.rank].size = (int32_t)cut[k].size;
            a.axis[a.rank].begin = (int32_t)cut[k].begin;
            a.axis[a.rank].step = (int32_t)cut[k].step;
        }
        a.rank++;
    }
    if (a.rank == 0) {
        *out = x;
        return true;
    }
    return net_view(net, x, &folded, &x) && net_apply(net, "move", &a, 1, &x, out);
}

bool net_concat(struct net *net, int n, const lksi_value *x, const struct net_shape *s, int axis,
                lksi_value *out)
{
    struct lksi_concat_attr a = {1};
    lksi_value *v = calloc((size_t)n, sizeof *v);
    bool good = v != NULL;
    for (int i = 0; i < n && good; i++) {
        struct net_shape three = net_dims(3, net_product(&s[i], 0, axis), s[i].dim[axis],
                                          net_product(&s[i], axis + 1, s[i].rank));
        good = net_view(net, x[i], &three, &v[i]);
    }
    while (good && n > 1) { /* eight by eight */
        int made = 0;
        for (int i = 0; i < n && good; i += LKSI_MAX_IN)
            good = net_apply(net, "concat", &a, n - i < LKSI_MAX_IN ? n - i : LKSI_MAX_IN, v + i,
                             &v[made++]);
        n = made;
    }
    if (good)
        *out = v[0];
    free(v);
    return good;
}
