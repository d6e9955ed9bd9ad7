/*
 * net.h - one test case as a graph of this library: its tensors by name, and running it.
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

/* The shape of an ONNX tensor. The value of the graph behind it has as many elements, under any
 * shape; maps view it as they need it (net_view). */
struct net_shape {
    int rank;
    int64_t dim[ONNX_MAX_RANK];
};

/* Why a case may be out of scope. There is no other reason; what else goes wrong is a failure. */
enum net_reason {
    NET_IN_SCOPE,
    NET_OPERATOR, /* one that the project does not have */
    NET_TYPE,
    NET_EMPTY,
    NET_PLAIN, /* sequences and optionals */
    NET_RANDOM,
    NET_3D,
    NET_CUBIC,
    NET_LATE, /* a shape, axis or limit that is computed on the way */
    NET_HOST, /* nothing is left to run */
};

struct net {
    struct lks_graph *graph;
    int opset; /* the version of ONNX's operators */
    enum net_reason beyond;
    struct net_value *value;
    size_t n_value, cap_value;
    struct onnx_tensor **owned; /* constants made on the way */
    size_t n_owned, cap_owned;
    char why[256];
};

/* Why a node cannot be built: text of `net->why`, returned so that maps can `return net_no(...)`.
 * NULL means it was built. */
const char *net_no(struct net *net, const char *format, ...) LKSI_PRINTF(2, 3);

/* The same for one of the reasons to be out of scope. */
const char *net_beyond(struct net *net, enum net_reason why);

/* A new value under an ONNX name (NULL: none). */
struct net_value *net_put(struct net *net, const char *name, lksi_value v, int type, int rank,
                          const int64_t *dim);
/* A tensor known on the host; the graph's value is made at its first use by net_in. */
lks_status net_put_host(struct net *net, const char *name, const struct onnx_tensor *t);

/* From now on the net frees the tensor, and what malloc gave for it. */
void net_own(struct net *net, struct onnx_tensor *t);

/* The value of this name; NULL: none. */
const struct net_value *net_named(const struct net *net, const char *name, size_t length);
/* Input `i` of a node; NULL: absent (fewer inputs, or an empty name) or unknown. The pointer is
 * valid until the next net_put. */
const struct net_value *net_input(const struct net *net, const Onnx__NodeProto *n, size_t i);

/* The value of the graph behind input `i`, made a float input of the graph if it was known on the
 * host only. LKSI_NONE with `why` set if it holds no floats (or booleans). */
lksi_value net_in(struct net *net, const Onnx__NodeProto *n, size_t i);

/* Adds an operator with one output; *out receives it. False with `why` set on failure. */
bool net_apply(struct net *net, const char *op, const void *attr, int n_in, const lksi_value *in,
               lksi_value *out);
/* The same with all outputs. */
bool net_apply_all(struct net *net, const char *op, const void *attr, int n_in,
                   const lksi_value *in, lksi_value *out);

/* The result of a node: its output `i` is `v` in this shape. Returns NULL, so that maps can end
 * with it. */
const char *net_result(struct net *net, const Onnx__NodeProto *n, size_t i, lksi_value v,
                       const struct net_shape *s);
/* The same of another type: booleans, and integers that were taken in as floats. */
const char *net_result_as(struct net *net, const Onnx__NodeProto *n, size_t i, lksi_value v,
                          const struct net_shape *s, int type);
/* The same with a tensor known on the host, which the net then owns. */
const char *net_result_host(struct net *net, const Onnx__NodeProto *n, size_t i,
                            struct onnx_tensor *t);

int64_t net_count(int rank, const int64_t *dim);

/* Runs the graph on a device (`ref`, `cpu`, ...), schedules as given, and reads `v` into `out`. */
lks_status net_run(struct net *net, const char *device, bool plain, size_t n, const lksi_value *v,
                   float *const *out);

void net_free(struct net *net);

/* ---- build.c, move.c: what the maps share. All return false, with `why` set, on failure ---- */

/* The value behind input `i` and its shape. */
bool net_tensor(struct net *net, const Onnx__NodeProto *n, size_t i, lksi_value *v,
                struct net_shape *s);
/* Input `i` if it is known on the host, else NULL; net_whole: and holds integers or booleans. */
const struct onnx_tensor *net_known(const struct net *net, const Onnx__NodeProto *n, size_t i);
const struct onnx_tensor *net_whole(const struct net *net, const Onnx__NodeProto *n, size_t i);
/* The integers of input `i`, or of attribute `name` where it is absent; *count -1: both are. */
bool net_list(struct net *net, const Onnx__NodeProto *n, size_t i, const char *name, int64_t *out,
              int *count);

/* A tensor on the host, which holds floats or integers, zero. */
struct onnx_tensor *net_host(int type, const struct net_shape *s);
/* Such a tensor as an input of the graph; the net then owns it. */
bool net_feed(struct net *net, struct onnx_tensor *t, lksi_value *v);
bool net_number(struct net *net, float number, lksi_value *v);
/* [count], all of this number, made on the device. */
bool net_fill(struct net *net, float number, int64_t count, lksi_value *v);

struct net_shape net_dims(int rank, ...); /* int64_t dims */
struct net_shape net_shape_of(const struct onnx_tensor *t);
int64_t net_size(const struct net_shape *s);
/* The product of dimensions [from, to). */
int64_t net_product(const struct net_shape *s, int from, int to);
bool net_axis(struct net *net, int64_t axis, int rank, int *out);

/* The same values in another shape. Neighbours are joined where it has too many dimensions. */
bool net_view(struct net *net, lksi_value x, const struct net_shape *s, lksi_value *out);
/* Output dimension k is input dimension order[k]. */
bool net_transpose(struct net *net, lksi_value x, const struct net_shape *s, const int *order,
                   lksi_value *out);
/* Element o of axis k is element begin + o*step of x, or the pattern of `value` outside. */
struct net_cut {
    int64_t begin, step, size;
};
bool net_move(struct net *net, lksi_value x, const struct net_shape *s, const struct net_cut *cut,
              float value, lksi_value *out);
bool net_concat(struct net *net, int n, const lksi_value *x, const struct net_shape *s, int axis,
                lksi_value *out);
/* x repeated to shape `to`, as NumPy broadcasts. */
bool net_expand(struct net *net, lksi_value x, const struct net_shape *s,
                const struct net_shape *to, lksi_value *out);
/* An operator of two inputs that broadcast. */
bool net_binary(struct net *net, const char *op, lksi_value a, const struct net_shape *sa,
                lksi_value b, const struct net_shape *sb, lksi_value *out, struct net_shape *s);
/* A function of one element (contract/unary.h). */
bool net_unary(struct net *net, const char *op, float a, float b, lksi_value x, lksi_value *out);
/* `sum`, `mean`, `max` or `min` over the axes of `mask`; s, where it is not NULL, becomes the shape
 * of the result. */
bool net_reduce(struct net *net, const char *op, lksi_value x, const struct net_shape *from,
                unsigned mask, bool keep, lksi_value *out, struct net_shape *s);
/* condition ? a : b */
bool net_where(struct net *net, const lksi_value *three, const struct net_shape *s, lksi_value *out,
               struct net_shape *to);

/* ---- operators ---- */

struct net_map {
    const char *op; /* ONNX's op_type */
    const char *(*build)(struct net *net, const Onnx__NodeProto *n);
};
/* Each file map_FAMILY.c has a table, ended by NULL. */
extern const struct net_map net_map_binary[], net_map_cell[], net_map_conv[], net_map_host[],
    net_map_loss[], net_map_norm[], net_map_pool[], net_map_reduce[], net_map_resize[],
    net_map_shape[], net_map_unary[], net_map_update[];
const struct net_map *net_map_find(const char *op);

#endif
