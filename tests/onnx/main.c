/*
 * main.c - the ONNX project's node tests on this library.
 *
 * Usage: onnx-nodes [--device DEVICE]... [--list] [--verbose] [--only PREFIX] FOLDER
 *
 * FOLDER holds test_NAME/model.onnx and test_NAME/test_data_set_0. A case is in scope if every
 * operator of its model is one that this project has (net_map_find), all its tensors hold 32-bit
 * floats (or integers and booleans where the operator takes them), and it draws no random numbers.
 * Tolerances are ONNX's own: rtol 1e-3, atol 1e-7. Cases out of scope are counted by reason;
 * --list names them. Devices after the first must give the bits of the first. The last line is
 * "N of M in scope pass"; status 1 unless all do.
 */
#include <dirent.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "net.h"

#define MAX_OUT 8
#define MAX_DEVICES 4

static const struct {
    const struct net_map *table;
} tables[] = {{net_map_basic}};

const struct net_map *net_map_find(const char *op)
{
    for (size_t t = 0; t < LKSI_COUNT(tables); t++)
        for (const struct net_map *m = tables[t].table; m->op != NULL; m++)
            if (strcmp(m->op, op) == 0)
                return m;
    return NULL;
}

enum outcome { PASS, FAIL, OUT_OF_SCOPE };

struct options {
    const char *device[MAX_DEVICES];
    int n_device;
    bool list, verbose;
    const char *only;
};

/* One case. */
struct test {
    Onnx__ModelProto *model;
    struct onnx_tensor in[32], want[MAX_OUT];
    size_t n_in, n_want;
    struct net net;
    char why[320];
};

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

/* NULL if the model uses only operators of the tables. */
static const char *unknown_operator(const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_node; i++)
        if ((g->node[i]->domain != NULL && g->node[i]->domain[0] != '\0' &&
             strcmp(g->node[i]->domain, "ai.onnx") != 0 &&
             strcmp(g->node[i]->domain, "ai.onnx.preview.training") != 0) ||
            net_map_find(g->node[i]->op_type) == NULL)
            return g->node[i]->op_type;
    return NULL;
}

/* Builds the graph. False: `why` says what is not there. */
static bool build(struct test *t)
{
    const Onnx__GraphProto *g = t->model->graph;
    size_t given = 0;
    if (lks_graph_create(&t->net.graph, NULL) != LKS_OK)
        abort();
    for (size_t i = 0; i < g->n_input; i++)
        if (given < t->n_in)
            net_put_host(&t->net, g->input[i]->name, &t->in[given++]);
    for (size_t i = 0; i < g->n_node; i++) {
        const char *no = net_map_find(g->node[i]->op_type)->build(&t->net, g->node[i]);
        if (no != NULL) {
            snprintf(t->why, sizeof t->why, "%s", no);
            return false;
        }
    }
    return true;
}

static const struct net_value *value_called(const struct net *net, const char *name)
{
    for (size_t i = net->n_value; i-- > 0;)
        if (strcmp(net->value[i].name, name) == 0)
            return &net->value[i];
    return NULL;
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

static bool run(struct test *t, const struct options *opt)
{
    const Onnx__GraphProto *g = t->model->graph;
    const struct net_value *p[MAX_OUT];
    lksi_value v[MAX_OUT];
    float *first[MAX_OUT] = {0}, *got[MAX_OUT] = {0}, *ask[MAX_OUT];
    size_t n = 0, of[MAX_OUT];
    bool good = true;
    for (size_t o = 0; o < t->n_want && good; o++) {
        p[o] = value_called(&t->net, g->output[o]->name);
        good = p[o] != NULL;
        if (!good) {
            snprintf(t->why, sizeof t->why, "output %zu (`%s`) is not made", o,
                     g->output[o]->name);
        } else if (p[o]->value != LKSI_NONE) {
            size_t count = (size_t)net_count(p[o]->rank, p[o]->dim);
            first[o] = calloc(count + 1, sizeof(float));
            got[o] = calloc(count + 1, sizeof(float));
            v[n] = p[o]->value;
            of[n++] = o;
        }
    }
    for (int d = 0; d < opt->n_device && good && n > 0; d++) {
        for (size_t i = 0; i < n; i++)
            ask[i] = d == 0 ? first[of[i]] : got[of[i]];
        good = net_run(&t->net, opt->device[d], false, n, v, ask) == LKS_OK;
        if (!good)
            snprintf(t->why, sizeof t->why, "%s: %.250s", opt->device[d], lks_error_message());
        for (size_t i = 0; d > 0 && good && i < n; i++) {
            size_t bytes = (size_t)net_count(p[of[i]]->rank, p[of[i]]->dim) * sizeof(float);
            good = memcmp(first[of[i]], got[of[i]], bytes) == 0;
            if (!good)
                snprintf(t->why, sizeof t->why, "output %zu: %s and %s give other bits", of[i],
                         opt->device[0], opt->device[d]);
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

static enum outcome try_case(struct test *t, const char *folder, const struct options *opt)
{
    char path[1024];
    const char *unknown;
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    t->model = onnx_model_load(path);
    if (t->model == NULL) {
        snprintf(t->why, sizeof t->why, "%.200s cannot be read", path);
        return FAIL;
    }
    unknown = unknown_operator(t->model->graph);
    if (unknown != NULL) {
        snprintf(t->why, sizeof t->why, "operator %.200s", unknown);
        return OUT_OF_SCOPE;
    }
    if (!load_tensors(folder, "input", t->in, LKSI_COUNT(t->in), &t->n_in) ||
        !load_tensors(folder, "output", t->want, MAX_OUT, &t->n_want)) {
        snprintf(t->why, sizeof t->why, "inputs or outputs that are no plain tensors");
        return OUT_OF_SCOPE;
    }
    if (!build(t))
        return OUT_OF_SCOPE;
    return run(t, opt) ? PASS : FAIL;
}

static void free_test(struct test *t)
{
    net_free(&t->net);
    for (size_t i = 0; i < LKSI_COUNT(t->in); i++)
        onnx_tensor_free(&t->in[i]);
    for (size_t i = 0; i < MAX_OUT; i++)
        onnx_tensor_free(&t->want[i]);
    if (t->model != NULL)
        onnx__model_proto__free_unpacked(t->model, NULL);
}

/* Reasons and how often. */
static struct {
    char why[320];
    int count;
} reason[512];
static size_t n_reason;

static void count_reason(const char *why)
{
    size_t i = 0;
    while (i < n_reason && strcmp(reason[i].why, why) != 0)
        i++;
    if (i == n_reason && i < LKSI_COUNT(reason))
        snprintf(reason[n_reason++].why, sizeof reason[0].why, "%s", why);
    if (i < n_reason)
        reason[i].count++;
}

static int by_count(const void *a, const void *b)
{
    const int x = *(const int *)((const char *)a + sizeof reason[0].why);
    const int y = *(const int *)((const char *)b + sizeof reason[0].why);
    return x != y ? y - x : strcmp(a, b);
}

static int go_through(const char *folder, const struct options *opt)
{
    struct dirent **entry = NULL;
    int n = scandir(folder, &entry, NULL, alphasort), count[3] = {0};
    if (n < 0) {
        perror(folder);
        return 2;
    }
    for (int i = 0; i < n; i++) {
        char path[600];
        struct test *t = calloc(1, sizeof *t);
        snprintf(path, sizeof path, "%.300s/%.255s", folder, entry[i]->d_name);
        const char *name = strncmp(entry[i]->d_name, "test_", 5) == 0 ? entry[i]->d_name + 5 : NULL;
        if (t != NULL && name != NULL &&
            (opt->only == NULL || strncmp(name, opt->only, strlen(opt->only)) == 0)) {
            enum outcome o = try_case(t, path, opt);
            count[o]++;
            if (o == OUT_OF_SCOPE)
                count_reason(t->why);
            if (o == FAIL || (o == OUT_OF_SCOPE && opt->list) || opt->verbose)
                printf("%-12s %s%s%s\n", o == PASS ? "pass" : o == FAIL ? "FAIL" : "out of scope",
                       name, t->why[0] != '\0' ? ": " : "", t->why);
            free_test(t);
        }
        free(t);
        free(entry[i]);
    }
    free(entry);
    qsort(reason, n_reason, sizeof reason[0], by_count);
    printf("out of scope, %d cases:\n", count[OUT_OF_SCOPE]);
    for (size_t i = 0; i < n_reason; i++)
        printf("  %4d  %s\n", reason[i].count, reason[i].why);
    printf("%d of %d in scope pass\n", count[PASS], count[PASS] + count[FAIL]);
    return count[FAIL] == 0 && count[PASS] > 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"device", required_argument, NULL, 'd'},
                                          {"list", no_argument, NULL, 'l'},
                                          {"verbose", no_argument, NULL, 'v'},
                                          {"only", required_argument, NULL, 'o'},
                                          {0}};
    struct options opt = {0};
    int c;
    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (c == 'd' && opt.n_device < MAX_DEVICES)
            opt.device[opt.n_device++] = optarg;
        else if (c == 'l')
            opt.list = true;
        else if (c == 'v')
            opt.verbose = true;
        else if (c == 'o')
            opt.only = optarg;
        else
            return 2;
    }
    if (optind != argc - 1) {
        fprintf(stderr, "usage: onnx-nodes [--device DEVICE]... [--list] [--verbose] "
                        "[--only PREFIX] FOLDER\n");
        return 2;
    }
    if (opt.n_device == 0)
        opt.device[opt.n_device++] = "ref";
    return go_through(argv[optind], &opt);
}
