/*
 * net.c - values of a node test and its run, see net.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"
#include "op/attr.h"
#include "plan/plan.h"

const char *net_no(struct net *net, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(net->why, sizeof net->why, format, args);
    va_end(args);
    return net->why;
}

const char *net_beyond(struct net *net, enum net_reason why)
{
    static const char *const text[] = {
        [NET_TYPE] = "an element type other than 32-bit float",
        [NET_EMPTY] = "an empty tensor",
        [NET_PLAIN] = "a sequence or an optional in place of a tensor",
        [NET_RANDOM] = "random numbers",
        [NET_3D] = "windows over three dimensions",
        [NET_CUBIC] = "cubic interpolation",
        [NET_LATE] = "a shape or limit that is computed on the way",
        [NET_HOST] = "shapes, constants and integers only: nothing to run on a device",
    };
    net->beyond = why;
    return net_no(net, "%s", text[why]);
}

int64_t net_count(int rank, const int64_t *dim)
{
    int64_t n = 1;
    for (int k = 0; k < rank; k++)
        n *= dim[k];
    return n;
}

struct net_value *net_put(struct net *net, const char *name, lksi_value v, int type, int rank,
                          const int64_t *dim)
{
    struct net_value *p;
    if (!lksi_grow(&net->value, &net->cap_value, net->n_value + 1, sizeof *net->value))
        abort();
    p = &net->value[net->n_value++];
    memset(p, 0, sizeof *p);
    p->name = strdup(name != NULL ? name : "");
    p->value = v;
    p->type = type;
    p->rank = rank;
    for (int k = 0; k < rank; k++)
        p->dim[k] = dim[k];
    return p;
}

lks_status net_put_host(struct net *net, const char *name, const struct onnx_tensor *t)
{
    net_put(net, name, LKSI_NONE, t->type, t->rank, t->dim)->host = t;
    return LKS_OK;
}

static struct net_value *find(const struct net *net, const char *name, size_t length)
{
    for (size_t i = net->n_value; i-- > 0;)
        if (strlen(net->value[i].name) == length && memcmp(net->value[i].name, name, length) == 0)
            return &net->value[i];
    return NULL;
}

const struct net_value *net_named(const struct net *net, const char *name, size_t length)
{
    return find(net, name, length);
}

const struct net_value *net_input(const struct net *net, const Onnx__NodeProto *n, size_t i)
{
    if (i >= n->n_input || n->input[i][0] == '\0')
        return NULL;
    return find(net, n->input[i], strlen(n->input[i]));
}

/* A shape that a graph can hold: the first dimensions are joined where they are too many. */
static struct lksi_desc graph_shape(int rank, const int64_t *dim)
{
    struct lksi_desc d;
    int extra = rank > LKSI_MAX_RANK ? rank - LKSI_MAX_RANK : 0;
    memset(&d, 0, sizeof d);
    d.dtype = LKSI_F32;
    d.rank = rank > 0 ? rank - extra : 1;
    d.dim[0] = net_count(rank < extra + 1 ? rank : extra + 1, dim);
    for (int k = 1; k < d.rank; k++)
        d.dim[k] = dim[k + extra];
    return d;
}

void net_own(struct net *net, struct onnx_tensor *t)
{
    if (!lksi_grow(&net->owned, &net->cap_owned, net->n_owned + 1, sizeof *net->owned))
        abort();
    net->owned[net->n_owned++] = t;
}

lksi_value net_in(struct net *net, const Onnx__NodeProto *n, size_t i)
{
    struct net_value *p = i < n->n_input && n->input[i][0] != '\0'
                              ? find(net, n->input[i], strlen(n->input[i]))
                              : NULL;
    struct lksi_desc d;
    char name[96];
    if (p == NULL) {
        net_no(net, "%s: input %zu is missing", n->op_type, i);
        return LKSI_NONE;
    }
    if (p->value != LKSI_NONE)
        return p->value;
    if (p->type != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT &&
        p->type != ONNX__TENSOR_PROTO__DATA_TYPE__BOOL) {
        net_beyond(net, NET_TYPE);
        return LKSI_NONE;
    }
    if (net_count(p->rank, p->dim) == 0) {
        net_beyond(net, NET_EMPTY);
        return LKSI_NONE;
    }
    d = graph_shape(p->rank, p->dim);
    snprintf(name, sizeof name, "in%d", (int)(p - net->value));
    if (lksi_graph_add_input(net->graph, name, &d, false, &p->value) != LKS_OK) {
        net_no(net, "%s", lks_error_message());
        p->value = LKSI_NONE;
    }
    return p->value;
}

bool net_feed(struct net *net, struct onnx_tensor *t, lksi_value *v)
{
    struct lksi_desc d = graph_shape(t->rank, t->dim);
    struct net_value *p;
    char name[96];
    d.dtype = t->f != NULL ? LKSI_F32 : LKSI_I32;
    net_own(net, t);
    snprintf(name, sizeof name, "in%zu", net->n_value);
    if (lksi_graph_add_input(net->graph, name, &d, false, v) != LKS_OK) {
        net_no(net, "%s", lks_error_message());
        return false;
    }
    p = net_put(net, NULL, *v, t->type, t->rank, t->dim);
    p->host = t;
    return true;
}

bool net_apply_all(struct net *net, const char *op, const void *attr, int n_in,
                   const lksi_value *in, lksi_value *out)
{
    for (int i = 0; i < n_in; i++)
        if (in[i] == LKSI_NONE)
            return false;
    if (lksi_graph_add_node(net->graph, NULL, op, attr, n_in, in, out) != LKS_OK) {
        net_no(net, "%s", lks_error_message());
        return false;
    }
    return true;
}

bool net_apply(struct net *net, const char *op, const void *attr, int n_in, const lksi_value *in,
               lksi_value *out)
{
    lksi_value made[LKSI_MAX_OUT];
    if (!net_apply_all(net, op, attr, n_in, in, made))
        return false;
    *out = made[0];
    return true;
}

bool net_view(struct net *net, lksi_value x, const struct net_shape *s, lksi_value *out)
{
    struct lksi_reshape_attr attr;
    struct lksi_desc d = graph_shape(s->rank, s->dim);
    memset(&attr, 0, sizeof attr);
    attr.rank = d.rank;
    memcpy(attr.dim, d.dim, sizeof attr.dim);
    if (x != LKSI_NONE && lksi_desc_equal(&net->graph->value[x].desc, &d)) {
        *out = x;
        return true;
    }
    return net_apply(net, "reshape", &attr, 1, &x, out);
}

const char *net_result_as(struct net *net, const Onnx__NodeProto *n, size_t i, lksi_value v,
                          const struct net_shape *s, int type)
{
    if (i < n->n_output && n->output[i][0] != '\0')
        net_put(net, n->output[i], v, type, s->rank, s->dim);
    return NULL;
}

const char *net_result(struct net *net, const Onnx__NodeProto *n, size_t i, lksi_value v,
                       const struct net_shape *s)
{
    return net_result_as(net, n, i, v, s, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
}

const char *net_result_host(struct net *net, const Onnx__NodeProto *n, size_t i,
                            struct onnx_tensor *t)
{
    net_own(net, t);
    if (i < n->n_output && n->output[i][0] != '\0')
        net_put_host(net, n->output[i], t);
    return NULL;
}

/* The bytes of an input as the graph wants them; the caller frees. */
static void *input_bytes(const struct net_value *p)
{
    float *data = calloc((size_t)net_count(p->rank, p->dim) + 1, sizeof *data);
    for (int64_t e = 0; data != NULL && e < net_count(p->rank, p->dim); e++) {
        if (p->type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT) {
            data[e] = p->host->f[e];
        } else if (p->type == ONNX__TENSOR_PROTO__DATA_TYPE__BOOL) {
            data[e] = p->host->i[e] != 0 ? 1.0f : 0.0f;
        } else { /* a graph input of integers, made by a map */
            int32_t v = (int32_t)p->host->i[e];
            memcpy(&data[e], &v, sizeof v);
        }
    }
    return data;
}

/* A copy of the graph, since a plan takes it over. */
static lks_status copy_graph(const struct net *net, size_t n, const lksi_value *v,
                             struct lks_graph **copy)
{
    lks_status st = lksi_graph_at_batch(copy, net->graph, 1, net->graph->leaf);
    for (size_t i = 0; st == LKS_OK && i < n; i++)
        (*copy)->value[v[i]].keep = true;
    return st;
}

/* The state behind gradients inside a network holds 1. */
static lks_status set_one(const struct net *net, struct lksi_store *store)
{
    const float one = 1.0f;
    struct lksi_buf *buf;
    lks_status st = LKS_OK;
    if (lksi_graph_find(net->graph, "one") == LKSI_NONE)
        return LKS_OK;
    st = lksi_store_state(store, "one", sizeof one, &buf);
    return st == LKS_OK ? lksi_buf_write(buf, 0, &one, sizeof one, true) : st;
}

lks_status net_run(struct net *net, const char *device, bool plain, size_t n, const lksi_value *v,
                   float *const *out)
{
    struct lksi_dev_params where = {.select = device, .cache_dir = ""};
    struct lksi_dev *dev = NULL;
    struct lksi_store *store = NULL;
    struct lksi_plan *plan = NULL;
    struct lks_graph *g = NULL;
    struct lksi_buf **buf = calloc(net->n_value + 1, sizeof *buf);
    lks_status st = buf != NULL ? LKS_OK : LKS_E_MEMORY;
    LKSI_TRY(st);
    LKSI_TRY(lksi_dev_open(&dev, &where));
    LKSI_TRY(lksi_store_create(&store, dev));
    LKSI_TRY(copy_graph(net, n, v, &g));
    struct lksi_plan_params how = {.store = store, .plain = plain, .no_admission = true};
    LKSI_TRY(lksi_plan_create(&plan, &g, &how));
    for (size_t i = 0; i < net->n_value; i++) {
        const struct net_value *p = &net->value[i];
        if (p->host == NULL || p->value == LKSI_NONE)
            continue;
        uint64_t bytes = (uint64_t)net_count(p->rank, p->dim) * 4;
        void *data = input_bytes(p);
        LKSI_TRY(lksi_buf_create(&buf[i], dev, bytes));
        st = data != NULL ? lksi_buf_write(buf[i], 0, data, bytes, true) : LKS_E_MEMORY;
        free(data);
        LKSI_TRY(st);
        LKSI_TRY(lksi_plan_set_input(plan, p->value, buf[i]));
    }
    LKSI_TRY(set_one(net, store));
    LKSI_TRY(lksi_plan_run(plan));
    for (size_t i = 0; i < n; i++)
        LKSI_TRY(lksi_plan_read(plan, v[i], out[i]));
fail:
    lksi_plan_destroy(&plan);
    lks_graph_destroy(&g);
    for (size_t i = 0; buf != NULL && i < net->n_value; i++)
        lksi_buf_destroy(&buf[i]);
    free(buf);
    lksi_store_destroy(&store);
    lksi_dev_close(&dev);
    return st;
}

void net_free(struct net *net)
{
    for (size_t i = 0; i < net->n_value; i++)
        free(net->value[i].name);
    for (size_t i = 0; i < net->n_owned; i++) {
        onnx_tensor_free(net->owned[i]);
        free(net->owned[i]);
    }
    free(net->value);
    free(net->owned);
    lks_graph_destroy(&net->graph);
    memset(net, 0, sizeof *net);
}
