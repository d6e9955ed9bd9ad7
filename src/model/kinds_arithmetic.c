/*
 * kinds_arithmetic.c - layers of a model file that join values, or a value and a number, or have
 * one parameter a channel.
 */
#include <math.h>

#include "model/kind.h"

typedef lks_status (*join_fn)(lks_graph *g, lks_value a, lks_value b, lks_value *y);
typedef lks_status (*number_fn)(lks_graph *g, lks_value x, double number, lks_value *y);

/* Values from left to right: ((a + b) + c). */
static lks_status join(const struct lksi_layer_in *l, join_fn fn, lks_value *y)
{
    lks_value v = l->x[0];
    lks_status st = LKS_OK;
    for (int i = 1; i < l->n_x && st == LKS_OK; i++)
        st = fn(l->graph, v, l->x[i], &v);
    if (st == LKS_OK)
        *y = v;
    return st;
}

/* Several values, or one and the number `key`. */
static lks_status join_or_number(const struct lksi_layer_in *l, const char *key,
                                 const char *example, double sign, join_fn fn, number_fn with,
                                 lks_value *y)
{
    double number = NAN;
    lks_status st = LKS_OK;
    if (l->map != NULL)
        st = lksi_map_float(l->map, key, -FLT_MAX, FLT_MAX, example, &number);
    if (st != LKS_OK)
        return st;
    if (isnan(number) == (l->n_x == 1))
        return lksi_node_fail(l->item, "it takes two values, `from: [a, b]`, or one and a number, "
                                       "`%s`", example);
    if (isnan(number))
        return join(l, fn, y);
    lksi_canon_float(l->canon, key, number);
    return with(l->graph, l->x[0], sign * number, y);
}

static lks_status build_add(const struct lksi_layer_in *l, lks_value *y)
{
    return join_or_number(l, "value", "value: 1.0", 1.0, lks_graph_add, lks_graph_add_number, y);
}

static lks_status build_sub(const struct lksi_layer_in *l, lks_value *y)
{
    return join_or_number(l, "value", "value: 1.0", -1.0, lks_graph_sub, lks_graph_add_number, y);
}

static lks_status build_mul(const struct lksi_layer_in *l, lks_value *y)
{
    return join_or_number(l, "by", "by: 0.5", 1.0, lks_graph_mul, lks_graph_mul_number, y);
}

static lks_status build_div(const struct lksi_layer_in *l, lks_value *y)
{
    return join_or_number(l, "by", "by: 2.0", 1.0, lks_graph_div, lks_graph_div_number, y);
}

static lks_status build_pow(const struct lksi_layer_in *l, lks_value *y)
{
    return join_or_number(l, "exponent", "exponent: 2.5", 1.0, lks_graph_pow, lks_graph_pow_number,
                          y);
}

#define JOIN(name)                                                                                 \
    static lks_status build_##name(const struct lksi_layer_in *l, lks_value *y)                    \
    {                                                                                              \
        return join(l, lks_graph_##name, y);                                                       \
    }
JOIN(maximum)
JOIN(minimum)
JOIN(equal)
JOIN(greater)
JOIN(less)

#define CHANNEL(layer)                                                                             \
    static lks_status build_##layer(const struct lksi_layer_in *l, lks_value *y)                   \
    {                                                                                              \
        lksi_str_add(l->canon, " name=%s", l->name);                                               \
        return lks_graph_##layer(l->graph, l->x[0],                                                \
                                 lks_channel_params(.name = l->name, .share = l->share), y);       \
    }
CHANNEL(scale)
CHANNEL(bias)
CHANNEL(prelu)

static lks_status build_dropout(const struct lksi_layer_in *l, lks_value *y)
{
    double p = 0.5;
    lks_status st = LKS_OK;
    if (l->map != NULL)
        st = lksi_map_float(l->map, "p", 0.0, 0.999, "p: 0.5", &p);
    if (st != LKS_OK)
        return st;
    lksi_str_add(l->canon, " name=%s", l->name);
    lksi_canon_float(l->canon, "p", p);
    return lks_graph_dropout(l->graph, l->x[0], lks_dropout_params(.name = l->name, .p = p), y);
}

#define JOIN_ENTRY(name, most)                                                                     \
    {.word = #name,                                                                                \
     .prefix = #name,                                                                              \
     .example = #name ": {from: [a, b]}",                                                          \
     .min_in = 2,                                                                                  \
     .max_in = most,                                                                               \
     .build = build_##name}

#define CHANNEL_ENTRY(name)                                                                        \
    {.word = #name,                                                                                \
     .prefix = #name,                                                                              \
     .example = #name,                                                                             \
     .bare = true,                                                                                 \
     .shares = true,                                                                               \
     .min_in = 1,                                                                                  \
     .max_in = 1,                                                                                  \
     .build = build_##name}

const struct lksi_kind lksi_kinds_arithmetic[] = {
    {.word = "add",
     .prefix = "add",
     .example = "add: {from: [a, b]}",
     .min_in = 1,
     .max_in = 8,
     .keys = {"value"},
     .build = build_add},
    {.word = "sub",
     .prefix = "sub",
     .example = "sub: {from: [a, b]}",
     .min_in = 1,
     .max_in = 2,
     .keys = {"value"},
     .build = build_sub},
    {.word = "mul",
     .prefix = "mul",
     .example = "mul: {from: [a, b]}",
     .min_in = 1,
     .max_in = 8,
     .keys = {"by"},
     .build = build_mul},
    {.word = "div",
     .prefix = "div",
     .example = "div: {from: [a, b]}",
     .min_in = 1,
     .max_in = 2,
     .keys = {"by"},
     .build = build_div},
    {.word = "pow",
     .prefix = "pow",
     .example = "pow: {exponent: 2.5}",
     .min_in = 1,
     .max_in = 2,
     .keys = {"exponent"},
     .build = build_pow},
    JOIN_ENTRY(maximum, 8),
    JOIN_ENTRY(minimum, 8),
    JOIN_ENTRY(equal, 2),
    JOIN_ENTRY(greater, 2),
    JOIN_ENTRY(less, 2),
    CHANNEL_ENTRY(scale),
    CHANNEL_ENTRY(bias),
    CHANNEL_ENTRY(prelu),
    {.word = "dropout",
     .prefix = "dropout",
     .example = "dropout: {p: 0.5}",
     .bare = true,
     .min_in = 1,
     .max_in = 1,
     .keys = {"p"},
     .build = build_dropout},
    {0},
};
