/*
 * kind_window.c - the keys of a window, shared by convolution and pooling: `kernel`, `stride`,
 * `dilation` and `pad`, each one number for both axes or a list of them.
 */
#include <string.h>

#include "base/words.h"
#include "model/kind.h"

/* `key: 3` or `key: [3, 1]`; keeps what stands in v[0] if the key is missing. */
static lks_status read_pair(const struct lksi_layer_in *l, const char *key, const char *example,
                            int64_t low, bool sequence, int64_t v[2])
{
    const struct lksi_node *node = lksi_node_get(l->map, key);
    lks_status st = LKS_OK;
    if (node == NULL)
        return LKS_OK;
    if (node->kind != LKSI_NODE_SEQUENCE || sequence) {
        st = lksi_node_int(node, low, LKSI_MAX_WINDOW, example, &v[0]);
        v[1] = v[0];
        return st;
    }
    if (node->count != 2)
        return lksi_node_fail(node,
                              "a list of %zu; one number without a list, or a list of two for "
                              "height and width, is expected",
                              node->count);
    for (int i = 0; i < 2 && st == LKS_OK; i++)
        st = lksi_node_int(node->items[i], low, LKSI_MAX_WINDOW, example, &v[i]);
    return st;
}

lks_status lksi_window_pair(const struct lksi_layer_in *l, const char *key, const char *example,
                            int64_t low, int64_t v[2])
{
    return read_pair(l, key, example, low, false, v);
}

/* `pad: same`: as many outputs as inputs / stride, rounded up; an odd one goes to the end. */
static void pad_same(const struct lksi_window *w, const int64_t size[2], int64_t pad[4])
{
    for (int i = 0; i < 2; i++) {
        int64_t out = (size[i] + w->stride[i] - 1) / w->stride[i];
        int64_t all = (out - 1) * w->stride[i] + w->dilation[i] * (w->kernel[i] - 1) + 1 - size[i];
        all = all > 0 ? all : 0;
        pad[2 * i] = all / 2;
        pad[2 * i + 1] = all - all / 2;
    }
}

/* `pad: 1`, [1, 2] for both ends of height and width (of a sequence: begin, end), or [top, bottom,
 * left, right]. */
static lks_status read_pad(const struct lksi_layer_in *l, bool sequence, const int64_t size[2],
                           struct lksi_window *w)
{
    const struct lksi_node *node = lksi_node_get(l->map, "pad");
    static const char *const same[] = {"same"};
    int64_t v[4] = {0};
    lks_status st = LKS_OK;
    if (node == NULL)
        return LKS_OK;
    if (node->kind == LKSI_NODE_SCALAR && strcmp(node->text, "same") == 0) {
        pad_same(w, size, w->pad);
        return LKS_OK;
    }
    if (node->kind == LKSI_NODE_SCALAR && strspn(node->text, "+-.0123456789eExX") == 0 &&
        !lksi_node_is_null(node))
        return lksi_node_fail(node, "found `%s`%s number, %s, or `same`; write e.g. `pad: same`",
                              node->text,
                              lksi_nearest_word(node->text, same, 1) != NULL
                                  ? "; did you mean `same`? Expected a"
                              : strcmp(node->text, "valid") == 0
                                  ? "; without padding leave `pad` out. Expected a"
                                  : "; expected a",
                              sequence ? "two of them in a list" : "two or four of them in a list");
    if (node->kind != LKSI_NODE_SEQUENCE) {
        st = lksi_node_int(node, 0, LKSI_MAX_WINDOW, "pad: 1", &v[0]);
        for (int i = 0; i < 4; i++)
            w->pad[i] = sequence && i > 1 ? 0 : v[0];
        return st;
    }
    if (node->count != 2 && (sequence || node->count != 4))
        return lksi_node_fail(node, "a list of %zu; one number without a list, or a list of %s, is "
                                    "expected", node->count,
                              sequence ? "two for the beginning and the end"
                                       : "two (height, width) or four (top, bottom, left, right)");
    for (size_t i = 0; i < node->count && st == LKS_OK; i++)
        st = lksi_node_int(node->items[i], 0, LKSI_MAX_WINDOW, "pad: 1", &v[i]);
    for (int i = 0; i < 4; i++)
        w->pad[i] = node->count == 4 || sequence ? v[i] : v[i / 2];
    return st;
}

lks_status lksi_window_read(const struct lksi_layer_in *l, bool stride_is_kernel,
                            struct lksi_window *w)
{
    const struct lksi_node *need;
    int64_t dim[4] = {0}, size[2];
    int rank;
    lks_status st;
    memset(w, 0, sizeof *w);
    LKSI_TRY(lks_graph_shape(l->graph, l->x[0], &rank, dim));
    bool sequence = rank == 2;
    size[0] = dim[0];
    size[1] = sequence ? 1 : dim[1];
    LKSI_TRY(lksi_node_need(l->map, "kernel", "kernel: 3", &need));
    LKSI_TRY(read_pair(l, "kernel", "kernel: 3", 1, sequence, w->kernel));
    for (int i = 0; i < 2; i++) {
        w->stride[i] = stride_is_kernel ? w->kernel[i] : 1;
        w->dilation[i] = 1;
    }
    LKSI_TRY(read_pair(l, "stride", "stride: 2", 1, sequence, w->stride));
    LKSI_TRY(read_pair(l, "dilation", "dilation: 1", 1, sequence, w->dilation));
    LKSI_TRY(read_pad(l, sequence, size, w));
fail:
    return st;
}

void lksi_canon_pair(struct lksi_str *canon, const char *key, const int64_t v[2])
{
    lksi_str_add(canon, " %s=%d", key, (int)v[0]);
    if (v[1] != v[0])
        lksi_str_add(canon, ",%d", (int)v[1]);
}

void lksi_window_canon(struct lksi_str *canon, const struct lksi_window *w)
{
    const int64_t *p = w->pad; /* one number where all are equal */
    lksi_canon_pair(canon, "kernel", w->kernel);
    lksi_canon_pair(canon, "stride", w->stride);
    lksi_str_add(canon, " pad=%d", (int)p[0]);
    if (p[1] != p[0] || p[2] != p[0] || p[3] != p[0])
        lksi_str_add(canon, ",%d,%d,%d", (int)p[1], (int)p[2], (int)p[3]);
}
