/*
 * kind.h - kinds of layers in a model file. Each file kinds_FAMILY.c has a table of them;
 * model_layers.c reads a layer's word, keys, name and inputs, and calls `build`.
 */
#ifndef LKSI_MODEL_KIND_H
#define LKSI_MODEL_KIND_H

#include <lockstep/lockstep.h>

#include "model/model.h"

enum {
    LKSI_MAX_CHANNELS = 1 << 24, /* channels or features */
    LKSI_MAX_WINDOW = 1 << 15    /* kernel, stride, pad, dilation */
};

/* A layer being built. */
struct lksi_layer_in {
    lks_graph *graph;
    const struct lksi_node *item; /* the layer's place in the file, for messages */
    const struct lksi_node *map;  /* its keys; NULL: a bare word */
    const char *name, *share;     /* `share`: the layer whose parameters it takes, or NULL */
    const lks_value *x;
    int n_x;
    struct lksi_str *canon;       /* append every key that the bits depend on, defaults filled in,
                                     as " key=value"; floats by lksi_canon_float */
};

struct lksi_kind {
    const char *word, *prefix; /* "conv2d"; default names are "conv1", "conv2", ... */
    const char *example;       /* "conv2d: {out: 32, kernel: 5}" */
    bool bare;                 /* may stand without keys */
    bool shares;               /* has parameters and takes `share` */
    int min_in, max_in;        /* values it takes; 1 and 1 for most */
    const char *inputs[3];     /* in place of `from`, a key for each value it takes; ends with NULL */
    const char *keys[14];      /* beside name, from and share; ends with NULL */
    lks_status (*build)(const struct lksi_layer_in *l, lks_value *y);
};

/* The tables, each ended by an entry without a word. */
extern const struct lksi_kind lksi_kinds_arithmetic[];
extern const struct lksi_kind lksi_kinds_activation[], lksi_kinds_conv[], lksi_kinds_norm[],
    lksi_kinds_pool[], lksi_kinds_shape[];
extern const struct lksi_kind lksi_kinds_reduce[];
extern const struct lksi_kind lksi_kinds_random[];
extern const struct lksi_kind lksi_kinds_embedding[];

/* Finds a kind by number over all tables; NULL past the last. */
const struct lksi_kind *lksi_kind_at(size_t index);

/* A complaint of the graph without "add_wide: " and the like in front, which the user never wrote. */
const char *lksi_behind_names(const char *text);

/* Appends " key=BITS": exact and the same in every locale. */
void lksi_canon_float(struct lksi_str *canon, const char *key, double value);

/* As lksi_map_int, and the key must be there. */
lks_status lksi_need_int(const struct lksi_node *map, const char *key, int64_t min, int64_t max,
                         const char *example, int64_t *out);

/* The keys `kernel`, `stride`, `dilation`, `pad` of a layer: height and width, or, for a sequence,
 * length and a width that says nothing. */
struct lksi_window {
    int64_t kernel[2], stride[2], dilation[2];
    int64_t pad[4]; /* top, bottom, left, right; of a sequence begin, end */
};
#define LKSI_WINDOW_KEYS "kernel", "stride", "pad", "dilation"
lks_status lksi_window_read(const struct lksi_layer_in *l, bool stride_is_kernel,
                            struct lksi_window *w);
/* Another optional key of a number or two, `low` or more. */
lks_status lksi_window_pair(const struct lksi_layer_in *l, const char *key, const char *example,
                            int64_t low, int64_t v[2]);
/* Appends kernel, stride and pad; and " key=3", or " key=3,1" if the two differ. */
void lksi_window_canon(struct lksi_str *canon, const struct lksi_window *w);
void lksi_canon_pair(struct lksi_str *canon, const char *key, const int64_t v[2]);
/* The fields of lks_conv2d_params and lks_pool_params. */
#define LKSI_WINDOW_FIELDS(w)                                                                      \
    .kernel = (int32_t)(w).kernel[0], .kernel_w = (int32_t)(w).kernel[1],                          \
    .stride = (int32_t)(w).stride[0], .stride_w = (int32_t)(w).stride[1],                          \
    .dilation = (int32_t)(w).dilation[0], .dilation_w = (int32_t)(w).dilation[1], .pads = {        \
        (int32_t)(w).pad[0], (int32_t)(w).pad[1], (int32_t)(w).pad[2], (int32_t)(w).pad[3]         \
    }

#endif
