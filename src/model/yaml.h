/*
 * yaml.h - a small document tree over libyaml, whose every complaint names file, line and key.
 *
 * A document is one mapping, sequence or scalar. Mappings keep their order; a key that comes twice
 * is refused. Anchors, aliases, tags and several documents in a file are refused: a model file is
 * read by people, and what stands in it is what it means. Nothing depends on the locale.
 *
 * A document belongs to its loader and may be read by several threads.
 *
 *     const struct lksi_node *conv = ...;
 *     int64_t out, pad = 0;
 *     LKSI_TRY(lksi_node_check_keys(conv, keys, LKSI_COUNT(keys)));
 *     LKSI_TRY(lksi_node_need(conv, "out", "out: 32", &node));
 *     LKSI_TRY(lksi_node_int(node, 1, INT32_MAX, "out: 32", &out));
 *     LKSI_TRY(lksi_map_int(conv, "pad", 0, INT32_MAX, "pad: 2", &pad));
 */
#ifndef LKSI_MODEL_YAML_H
#define LKSI_MODEL_YAML_H

#include <float.h>

#include "base/base.h"

enum lksi_node_kind { LKSI_NODE_SCALAR, LKSI_NODE_SEQUENCE, LKSI_NODE_MAPPING };

struct lksi_node {
    enum lksi_node_kind kind;
    const char *file; /* as given to the loader */
    int line, column; /* from 1 */
    const char *key;  /* the key it stands under, "layers[3]" in a sequence, "" for the root */
    const char *text; /* scalar: its characters, without a zero byte inside; else NULL */
    bool quoted;      /* scalar: written with quotes or as a block, so never a number */
    size_t count;     /* items of a sequence, pairs of a mapping */
    struct lksi_node **items; /* items; the values of a mapping, items[i]->key is its key */
    int *key_lines;           /* mapping: where each key stands */
};

struct lksi_yaml; /* a document, with all its nodes */

enum {
    LKSI_YAML_MAX_BYTES = 1 << 20, /* a file */
    LKSI_YAML_MAX_KEYS = 1024,     /* in one mapping; each new one is compared with all */
    LKSI_YAML_MAX_DEPTH = 32,      /* mappings and sequences inside each other */
};

/* Reads a file. LKS_E_IO, LKS_E_INPUT ("FILE:LINE:COLUMN: what"), LKS_E_MEMORY. */
lks_status lksi_yaml_load(const char *path, struct lksi_yaml **out);

/* The same from memory; `name` stands for the file in messages. */
lks_status lksi_yaml_parse(const char *name, const char *text, size_t length,
                           struct lksi_yaml **out);
const struct lksi_node *lksi_yaml_root(const struct lksi_yaml *doc);
void lksi_yaml_destroy(struct lksi_yaml **doc);

/* "FILE:LINE: key `KEY`: " and the formatted text, as LKS_E_INPUT. */
lks_status lksi_node_fail(const struct lksi_node *node, const char *format, ...) LKSI_PRINTF(2, 3);

/* "FILE:LINE: key `KEY`: expected WHAT, found ...; write e.g. `EXAMPLE`", as LKS_E_INPUT. */
lks_status lksi_node_expected(const struct lksi_node *node, const char *what, const char *example);

/* What a user would call the node: "`abc`", "the string \"5\"", "a mapping", "nothing". `room`
 * of about 80 bytes; long scalars are cut. */
const char *lksi_node_describe(const struct lksi_node *node, char *text, size_t room);

/* An empty plain scalar, `~` or `null`: what stands behind "key:" when nothing does. */
bool lksi_node_is_null(const struct lksi_node *node);

/*
 * The value of a node. Each fails with lksi_node_expected and leaves *out alone. `example` is
 * text that would be right, for instance "batch: 64".
 * Integers are decimal without leading zeros, or hexadecimal with 0x. Floats are finite decimal
 * numbers, rounded to nearest in double. A quoted number is a string, not a number.
 */
lks_status lksi_node_int(const struct lksi_node *node, int64_t low, int64_t high,
                         const char *example, int64_t *out);
lks_status lksi_node_u64(const struct lksi_node *node, const char *example, uint64_t *out);
#define LKSI_POSITIVE DBL_TRUE_MIN /* as `low`: any number above 0 */
lks_status lksi_node_float(const struct lksi_node *node, double low, double high,
                           const char *example, double *out);
lks_status lksi_node_bool(const struct lksi_node *node, const char *example, bool *out);
/* A scalar that is not nothing, as text (a plain number counts); owned by the document. */
lks_status lksi_node_string(const struct lksi_node *node, const char *example, const char **out);
/* One of `count` words; gives its index. The text lists them and guesses which was meant. */
lks_status lksi_node_choice(const struct lksi_node *node, const char *const *words, size_t count,
                            size_t *out);
/* The kind; `example` as above. */
lks_status lksi_node_is(const struct lksi_node *node, enum lksi_node_kind kind,
                        const char *example);

/* The value of a key of a mapping, or NULL. */
const struct lksi_node *lksi_node_get(const struct lksi_node *map, const char *key);

/* The same, but a missing key is an error: "key `k` is missing in `map`; write e.g. ...". */
lks_status lksi_node_need(const struct lksi_node *map, const char *key, const char *example,
                          const struct lksi_node **out);

/* Refuses a key that is not among `allowed`, and guesses which was meant. */
lks_status lksi_node_check_keys(const struct lksi_node *map, const char *const *allowed,
                                size_t count);

/* An optional key: *out keeps what the caller put there if the key is missing. */
lks_status lksi_map_int(const struct lksi_node *map, const char *key, int64_t low, int64_t high,
                        const char *example, int64_t *out);
lks_status lksi_map_u64(const struct lksi_node *map, const char *key, const char *example,
                        uint64_t *out);
lks_status lksi_map_float(const struct lksi_node *map, const char *key, double low, double high,
                          const char *example, double *out);
lks_status lksi_map_bool(const struct lksi_node *map, const char *key, const char *example,
                         bool *out);
lks_status lksi_map_string(const struct lksi_node *map, const char *key, const char *example,
                           const char **out);
#endif
