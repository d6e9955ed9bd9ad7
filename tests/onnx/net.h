/*
 * net.h - one node test as a graph of this library: its tensors by name, and running it.
 *
 * Values of a graph have at most LKSI_MAX_RANK dimensions of at least 1; an ONNX tensor may have
 * none or more, so each carries its own shape. Tensors known before the run (initial values,
 * constants, integer inputs such as axes) also have `host`.
 */
#ifndef LKS_TESTS_ONNX_NET_H
#define LKS_TESTS_ONNX_NET_H

#include "file.h"
#include "graph/graph.h"

struct net_value {
    char *name;
    lksi_value value; /* LKSI_NONE: known on the host only */
    bool is_bool;     /* 0.0 and 1.0 stand for booleans */
    int type;         /* of ONNX */
    int rank;
    int64_t dim[ONNX_MAX_RANK];
    const struct onnx_tensor *host; /* NULL: computed */
};

struct net {
    struct lks_graph *graph;
    struct net_value *value;
    size_t n_value, cap_value;
    struct onnx_tensor **owned; /* constants made on the way */
    size_t n_owned, cap_owned;
    char why[256];
};

/* Why a node cannot be built: text of `net->why`, returned so that maps can `return net_no(...)`.
 * NULL means it was built. */
const char *net_no(struct net *net, const char *format, ...) LKSI_PRINTF(2, 3);

/* A new value under an ONNX name (NULL: none). */
struct net_value *net_put(struct net *net, const char *name, lksi_value v, int type, int rank,
                          const int64_t *dim);
/* A tensor known on the host; the graph's value is made at its first use by net_in. */
lks_status net_put_host(struct net *net, const char *name, const struct onnx_tensor *t);

/* Input `i` of a node; NULL: absent (fewer inputs, or an empty name) or unknown. The pointer is
 * valid until the next net_put. */
const struct net_value *net_input(const struct net *net, const Onnx__NodeProto *n, size_t i);

/* The value of the graph behind input `i`, made a float input of the graph if it was known on the
 * host only. LKSI_NONE with `why` set if it holds no floats (or booleans). */
lksi_value net_in(struct net *net, const Onnx__NodeProto *n, size_t i);

/* Adds an operator with one output; *out receives it. False with `why` set on failure. */
bool net_apply(struct net *net, const char *op, const void *attr, int n_in, const lksi_value *in,
               lksi_value *out);
/* The same values in another shape. */
bool net_reshape(struct net *net, lksi_value x, int rank, const int64_t *dim, lksi_value *out);
/* Output dimension k is input dimension order[k]. */
bool net_transpose(struct net *net, lksi_value x, const int *order, lksi_value *out);

/* The result of a node: its output `i` is `v` in this shape. Returns NULL, so that maps can end
 * with it. */
const char *net_result(struct net *net, const Onnx__NodeProto *n, size_t i, lksi_value v, int rank,
                       const int64_t *dim);
/* The same with a tensor known on the host, which the net then owns. */
const char *net_result_host(struct net *net, const Onnx__NodeProto *n, size_t i,
                            struct onnx_tensor *t);

int64_t net_count(int rank, const int64_t *dim);

/* Runs the graph on a device (`ref`, `cpu`, ...), schedules as given, and reads `v` into `out`. */
lks_status net_run(struct net *net, const char *device, bool plain, size_t n,
                   const lksi_value *v, float *const *out);

void net_free(struct net *net);

/* ---- operators ---- */

struct net_map {
    const char *op; /* ONNX's op_type */
    const char *(*build)(struct net *net, const Onnx__NodeProto *n);
};
/* Each file map_FAMILY.c has a table, ended by NULL. */
extern const struct net_map net_map_basic[];
const struct net_map *net_map_find(const char *op);

#endif
