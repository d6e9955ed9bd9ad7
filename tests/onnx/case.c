/*
 * case.c - one test case: reading it, building its graph, running and comparing it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "case.h"

static const struct {
    const struct net_map *table;
} tables[] = {{net_map_binary}, {net_map_cell},  {net_map_conv},  {net_map_host},
              {net_map_loss},   {net_map_norm},  {net_map_pool},  {net_map_reduce},
              {net_map_resize}, {net_map_shape}, {net_map_unary}, {net_map_update}};

/* Operators that the project has or wants, and no table maps yet: their cases fail. */
static const char *const owed[] = {NULL};

const struct net_map *net_map_find(const char *op)
{
    for (size_t t = 0; t < LKSI_COUNT(tables); t++)
        for (const struct net_map *m = tables[t].table; m->op != NULL; m++)
            if (strcmp(m->op, op) == 0)
                return m;
    return NULL;
}

static bool load_tensors(const char *folder, const char *kind, struct onnx_tensor *t, size_t max,
                         size_t *n)
{
    for (*n = 0; *n < max; (*n)++) {
        char path[1024];
        struct stat s;
        snprintf(path, sizeof path, "%s/test_data_set_0/%s_%zu.pb", folder, kind, *n);
        if (stat(path, &s) != 0)
            return true;
        if (!onnx_tensor_load(&t[*n], path))
            return false;
    }
    return true;
}

/*
 * Cases whose outputs were made with another attribute than their model has. adam_multiple leaves
 * out its epsilon, which is then 1e-6, and its outputs come from 0.01: x - 0.1 * v / (sqrt(h) +
 * eps) is 0.755959 and 0.759136 for x1. They run with the attribute that their outputs have.
 */
static const struct {
    const char *test, *attribute;
    float value;
} mended[] = {{"adam_multiple", "epsilon", 0.01f}};

static void mend(Onnx__ModelProto *m, const char *test)
{
    for (size_t i = 0; i < LKSI_COUNT(mended); i++)
        if (strcmp(mended[i].test, test) == 0 &&
            onnx_attr_add(m->graph->node[0], mended[i].attribute, mended[i].value))
            printf("%s runs with %s %g, with which its outputs were made\n", test,
                   mended[i].attribute, (double)mended[i].value);
}

static bool is_owed(const char *op)
{
    for (size_t i = 0; owed[i] != NULL; i++)
        if (strcmp(owed[i], op) == 0)
            return true;
    return false;
}

static bool known_domain(const char *domain)
{
    return domain == NULL || domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0 ||
           strcmp(domain, "ai.onnx.preview.training") == 0;
}

/* Whether the tables have all operators; `why` says which one is missing. One that is owed counts
 * only if no other is foreign to the project. */
static enum outcome look(struct test *t)
{
    const Onnx__GraphProto *g = t->model->graph;
    enum outcome o = PASS;
    for (size_t i = 0; i < g->n_node && o != OUT_OF_SCOPE; i++) {
        const char *op = g->node[i]->op_type;
        bool mine = known_domain(g->node[i]->domain);
        if (mine && net_map_find(op) != NULL)
            continue;
        o = mine && is_owed(op) ? FAIL : OUT_OF_SCOPE;
        snprintf(t->why, sizeof t->why, "operator %.200s%s", op, o == FAIL ? " is not mapped" : "");
    }
    return o;
}

static bool is_initial(const Onnx__GraphProto *g, const char *name)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        if (strcmp(g->initializer[i]->name, name) == 0)
            return true;
    return false;
}

/* Weights and constants of the model, and its inputs, by name. */
static void put_known(struct test *t)
{
    const Onnx__GraphProto *g = t->model->graph;
    size_t given = 0;
    for (size_t i = 0; i < g->n_initializer; i++) {
        struct onnx_tensor *w = calloc(1, sizeof *w);
        if (w == NULL || !onnx_tensor_take(w, g->initializer[i]))
            abort();
        net_own(&t->net, w);
        net_put_host(&t->net, g->initializer[i]->name, w);
    }
    for (size_t i = 0; i < g->n_input; i++)
        if (!is_initial(g, g->input[i]->name) && given < t->n_in)
            net_put_host(&t->net, g->input[i]->name, &t->in[given++]);
}

/* Builds the graph. False: `why` says what is not there. */
static bool build(struct test *t)
{
    const Onnx__GraphProto *g = t->model->graph;
    if (lks_graph_create(&t->net.graph, NULL) != LKS_OK)
        abort();
    for (size_t i = 0; i < t->model->n_opset_import; i++)
        if (t->model->opset_import[i]->domain == NULL ||
            t->model->opset_import[i]->domain[0] == '\0')
            t->net.opset = (int)t->model->opset_import[i]->version;
    put_known(t);
    for (size_t i = 0; i < g->n_node; i++) {
        const char *no = net_map_find(g->node[i]->op_type)->build(&t->net, g->node[i]);
        if (no != NULL) {
            snprintf(t->why, sizeof t->why, "%s", no);
            return false;
        }
    }
    return true;
}

static double wanted(const struct onnx_tensor *t, int64_t e)
{
    return t->f != NULL ? (double)t->f[e] : t->i != NULL ? (double)t->i[e] : NAN;
}

static bool close_enough(double got, double want)
{
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want);
    if (isinf(got) || isinf(want))
        return got == want;
    return fabs(got - want) <= 1e-7 + 1e-3 * fabs(want);
}

/* Output `o` against what ONNX says. */
static bool compare(struct test *t, const struct net_value *p, const float *got, size_t o)
{
    const struct onnx_tensor *w = &t->want[o];
    bool shape = p->rank == w->rank;
    if (p->type != w->type) {
        snprintf(t->why, sizeof t->why, "output %zu has type %d, expected %d", o, p->type, w->type);
        return false;
    }
    for (int k = 0; shape && k < w->rank; k++)
        shape = p->dim[k] == w->dim[k];
    if (!shape) {
        snprintf(t->why, sizeof t->why, "output %zu has another shape", o);
        return false;
    }
    for (int64_t e = 0; e < w->count; e++) {
        double g = got != NULL ? (double)got[e] : wanted(p->host, e);
        if (!close_enough(g, wanted(w, e))) {
            snprintf(t->why, sizeof t->why, "output %zu, element %lld: %.9g, expected %.9g", o,
                     (long long)e, g, wanted(w, e));
            return false;
        }
    }
    return true;
}

static bool run(struct test *t, int n_device, const char *const *device)
{
    const Onnx__GraphProto *g = t->model->graph;
    const struct net_value *p[MAX_OUT];
    lksi_value v[MAX_OUT];
    float *first[MAX_OUT] = {0}, *got[MAX_OUT] = {0}, *ask[MAX_OUT];
    size_t n = 0, of[MAX_OUT];
    bool good = true;
    for (size_t o = 0; o < t->n_want && good; o++) {
        p[o] = net_named(&t->net, g->output[o]->name, strlen(g->output[o]->name));
        good = p[o] != NULL;
        if (!good) {
            snprintf(t->why, sizeof t->why, "output %zu (`%s`) is not made", o, g->output[o]->name);
        } else if (p[o]->value != LKSI_NONE) {
            size_t count = (size_t)net_count(p[o]->rank, p[o]->dim);
            first[o] = calloc(count + 1, sizeof(float));
            got[o] = calloc(count + 1, sizeof(float));
            v[n] = p[o]->value;
            of[n++] = o;
        }
    }
    for (int d = 0; d < n_device && good && n > 0; d++) {
        for (size_t i = 0; i < n; i++)
            ask[i] = d == 0 ? first[of[i]] : got[of[i]];
        good = net_run(&t->net, device[d], false, n, v, ask) == LKS_OK;
        if (!good)
            snprintf(t->why, sizeof t->why, "%s: %.250s", device[d], lks_error_message());
        for (size_t i = 0; d > 0 && good && i < n; i++) {
            size_t bytes = (size_t)net_count(p[of[i]]->rank, p[of[i]]->dim) * sizeof(float);
            good = memcmp(first[of[i]], got[of[i]], bytes) == 0;
            if (!good)
                snprintf(t->why, sizeof t->why, "output %zu: %s and %s give other bits", of[i],
                         device[0], device[d]);
        }
    }
    for (size_t o = 0; o < t->n_want && good; o++)
        good = compare(t, p[o], first[o], o);
    for (size_t o = 0; o < MAX_OUT; o++) {
        free(first[o]);
        free(got[o]);
    }
    return good;
}

static enum outcome beyond(struct test *t, enum net_reason why)
{
    snprintf(t->why, sizeof t->why, "%s", net_beyond(&t->net, why));
    return OUT_OF_SCOPE;
}

/* Whether any output comes out of the graph. */
static bool computes(const struct test *t)
{
    for (size_t o = 0; o < t->n_want; o++) {
        const char *name = t->model->graph->output[o]->name;
        const struct net_value *p = net_named(&t->net, name, strlen(name));
        if (p == NULL || p->host == NULL)
            return true;
    }
    return false;
}

/* Makes an expected output wrong by a little more than is allowed, in its middle. */
static void spoil(struct test *t)
{
    for (size_t o = 0; o < t->n_want; o++) {
        struct onnx_tensor *w = &t->want[o];
        int64_t e = w->count / 2;
        if (w->f != NULL && w->count > 0)
            w->f[e] = isfinite(w->f[e]) ? w->f[e] * 1.002f + 3e-7f : 0.0f;
        else if (w->i != NULL && w->count > 0)
            w->i[e] ^= 1;
    }
}

enum outcome test_try(struct test *t, const char *folder, int n_device, const char *const *device,
                      bool spoiled)
{
    char path[1024];
    enum outcome o;
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    t->model = onnx_model_load(path);
    if (t->model == NULL) {
        snprintf(t->why, sizeof t->why, "%.200s cannot be read", path);
        return FAIL;
    }
    mend(t->model, strrchr(folder, '/') + strlen("/test_"));
    o = look(t);
    if (o != PASS)
        return o;
    if (!load_tensors(folder, "input", t->in, LKSI_COUNT(t->in), &t->n_in) ||
        !load_tensors(folder, "output", t->want, MAX_OUT, &t->n_want))
        return beyond(t, NET_PLAIN);
    if (!build(t))
        return t->net.beyond != NET_IN_SCOPE ? OUT_OF_SCOPE : FAIL;
    if (!computes(t))
        return beyond(t, NET_HOST);
    if (spoiled)
        spoil(t);
    return run(t, n_device, device) ? PASS : FAIL;
}

void test_free(struct test *t)
{
    net_free(&t->net);
    for (size_t i = 0; i < LKSI_COUNT(t->in); i++)
        onnx_tensor_free(&t->in[i]);
    for (size_t i = 0; i < MAX_OUT; i++)
        onnx_tensor_free(&t->want[i]);
    if (t->model != NULL)
        onnx__model_proto__free_unpacked(t->model, NULL);
}
