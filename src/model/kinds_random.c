/*
 * kinds_random.c - layers of a model file that take nothing: random numbers.
 */
#include "model/kind.h"

#define EXAMPLE "random: {shape: [100], kind: normal}"

static lks_status build_random(const struct lksi_layer_in *l, lks_value *y)
{
    static const char *const words[] = {"normal", "uniform"};
    const struct lksi_node *list, *node = lksi_node_get(l->map, "kind");
    int64_t dims[4] = {0};
    size_t word = 0;
    lks_status st;
    LKSI_TRY(lksi_node_need(l->map, "shape", EXAMPLE, &list));
    LKSI_TRY(lksi_node_is(list, LKSI_NODE_SEQUENCE, EXAMPLE));
    if (list->count < 1 || list->count > LKSI_COUNT(dims))
        return lksi_node_expected(list, "1 to 4 sizes", "shape: [100]");
    for (size_t i = 0; i < list->count; i++)
        LKSI_TRY(lksi_node_int(list->items[i], 1, INT32_MAX, "shape: [100]", &dims[i]));
    if (node != NULL)
        LKSI_TRY(lksi_node_choice(node, words, LKSI_COUNT(words), &word));
    LKSI_TRY(lks_graph_random(l->graph, l->name, word == 0, (int)list->count, dims, y));
    lksi_str_add(l->canon, " kind=%s shape=", words[word]);
    for (size_t i = 0; i < list->count; i++)
        lksi_str_add(l->canon, "%lld,", (long long)dims[i]);
    lksi_str_add(l->canon, " name=%s", l->name); /* the stream of its numbers */
fail:
    return st;
}

const struct lksi_kind lksi_kinds_random[] = {
    {.word = "random",
     .prefix = "random",
     .example = EXAMPLE,
     .keys = {"shape", "kind"},
     .build = build_random},
    {0},
};
