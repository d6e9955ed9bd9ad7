/*
 * gradient.c - gradients against central differences; see accuracy.h.
 *
 * A small builder stands in for the graph: a value holds its numbers twice, as fp32 made by item
 * functions and as doubles made by real.h, and applying an operator computes both at once.
 *
 * Operators with saved statistics among their inputs are left out: these do not move with the input
 * here. Whole networks differentiate them (tests/gradient/test_second.c).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/accuracy.h"
#include "check/oracle.h"
#include "check/real.h"
#include "contract/philox.h"

#define DIRECTIONS 24  /* elements of an input that are moved */
#define MAX_FLOPS  3e6 /* of a forward run; above, a case is left out */
#define STEP       0x1p-16
#define KINK       1e-4 /* two one-sided differences further apart stand at a kink */
#define CLOSE_F64  1e-6 /* shares of the largest gradient of an input */
#define CLOSE_F32  1e-4

struct number {
    struct lksi_desc desc;
    float *f; /* patterns of I32 where desc says so */
    double *d;
};

struct tape {
    struct lksi_builder builder; /* first: the operators get this */
    uint32_t leaf;
    struct number *value;
    size_t count, capacity;
};

static void tape_close(struct tape *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->value[i].f);
        free(t->value[i].d);
    }
    free(t->value);
}

static lks_status tape_add(struct tape *t, const struct lksi_desc *desc, lksi_value *out)
{
    size_t n = (size_t)lksi_desc_count(desc);
    struct number *v;
    if (!lksi_grow(&t->value, &t->capacity, t->count + 1, sizeof *t->value))
        return LKS_E_MEMORY;
    v = &t->value[t->count];
    v->desc = *desc;
    v->f = lksi_alloc(n, sizeof *v->f);
    v->d = lksi_alloc(n, sizeof *v->d);
    *out = (lksi_value)t->count++;
    return v->f != NULL && v->d != NULL ? LKS_OK : LKS_E_MEMORY;
}

static const struct lksi_desc *tape_desc(struct lksi_builder *b, lksi_value v)
{
    return &((struct tape *)(void *)b)->value[v].desc;
}

/* Both computations of a call whose values stand on the tape. */
static lks_status tape_compute(struct tape *t, const struct lksi_call *call, const lksi_value *in,
                               const lksi_value *out)
{
    const void *fin[LKSI_MAX_IN] = {NULL};
    const double *din[LKSI_MAX_IN] = {NULL};
    void *fout[LKSI_MAX_OUT];
    double *dout[LKSI_MAX_OUT];
    lksi_real_fn real = lksi_real_find(call->op->name);
    if (real == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "`%s` has no double-precision function", call->op->name);
    for (int i = 0; i < call->n_in; i++) {
        fin[i] = t->value[in[i]].f;
        din[i] = t->value[in[i]].d;
    }
    for (int j = 0; j < call->n_out; j++) {
        fout[j] = t->value[out[j]].f;
        dout[j] = t->value[out[j]].d;
    }
    for (U64 i = 0; i < lksi_op_items(call); i++)
        call->op->item(fin, fout, call->dims.bytes, i);
    real(&(struct lksi_real_io){call, din, dout, NULL});
    return LKS_OK;
}

static lks_status tape_apply(struct lksi_builder *b, const char *name, const void *attr, int n_in,
                             const lksi_value *in, lksi_value *out)
{
    struct tape *t = (struct tape *)(void *)b;
    const struct lksi_op *op = lksi_op_find(name);
    struct lksi_desc desc[LKSI_MAX_IN];
    struct lksi_call call;
    lks_status st = LKS_OK;
    if (op == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "no operator `%s`", name);
    for (int i = 0; i < n_in; i++)
        desc[i] = t->value[in[i]].desc;
    LKSI_TRY(lksi_call_make(&call, op, attr, t->leaf, n_in, desc));
    for (int j = 0; j < call.n_out; j++)
        LKSI_TRY(tape_add(t, &call.out[j], &out[j]));
    LKSI_TRY(tape_compute(t, &call, in, out));
fail:
    return st;
}

/* ---- one case ---- */

struct trial {
    struct tape tape;
    struct lksi_call call;
    lksi_value in[LKSI_MAX_IN], out[LKSI_MAX_OUT], dout[LKSI_MAX_OUT], din[LKSI_MAX_IN];
    double *moved[LKSI_MAX_OUT]; /* outputs while an input is moved */
};

/* Random numbers in both precisions; away from 0, where relu has its kink. */
static void draw(struct number *v, const struct lksi_call *call, int index, uint64_t seed)
{
    int64_t n = lksi_desc_count(&v->desc);
    lksi_regime_fill(LKSI_REGIME_UNIFORM, seed, call, index, v->f);
    for (int64_t e = 0; e < n; e++) {
        int32_t whole;
        if (v->desc.dtype == LKSI_I32) {
            memcpy(&whole, &v->f[e], sizeof whole);
            v->d[e] = whole;
        } else {
            v->f[e] += v->f[e] < 0.0f ? -0.015625f : 0.015625f;
            v->d[e] = (double)v->f[e];
        }
    }
}

static lks_status forward(struct trial *t, const struct lksi_oracle *o, uint64_t seed)
{
    lks_status st = LKS_OK;
    t->tape.builder = (struct lksi_builder){tape_apply, tape_desc};
    t->tape.leaf = o->call.leaf;
    t->call = o->call;
    for (int i = 0; i < t->call.n_in; i++) {
        LKSI_TRY(tape_add(&t->tape, &t->call.in[i], &t->in[i]));
        draw(&t->tape.value[t->in[i]], &t->call, i, seed);
    }
    for (int j = 0; j < t->call.n_out; j++) {
        size_t n = (size_t)lksi_desc_count(&t->call.out[j]);
        t->dout[j] = LKSI_NONE;
        LKSI_TRY(tape_add(&t->tape, &t->call.out[j], &t->out[j]));
        t->moved[j] = lksi_alloc(n, sizeof(double));
        if (t->moved[j] == NULL)
            return LKS_E_MEMORY;
    }
    LKSI_TRY(tape_compute(&t->tape, &t->call, t->in, t->out));
fail:
    return st;
}

static lks_status backward(struct trial *t, uint64_t seed)
{
    bool need[LKSI_MAX_IN];
    struct number *g;
    lks_status st = LKS_OK;
    for (int i = 0; i < LKSI_MAX_IN; i++) {
        need[i] = i < t->call.n_in && t->call.in[i].dtype == LKSI_F32;
        t->din[i] = LKSI_NONE;
    }
    LKSI_TRY(tape_add(&t->tape, &t->call.out[0], &t->dout[0]));
    g = &t->tape.value[t->dout[0]];
    for (int64_t e = 0; e < lksi_desc_count(&g->desc); e++) {
        g->f[e] = lks_float(lksi_regime_bits(LKSI_REGIME_UNIFORM, seed, 77u, (uint64_t)e));
        g->d[e] = (double)g->f[e];
    }
    LKSI_TRY(t->call.op->grad(&(struct lksi_backward){&t->tape.builder, &t->call, t->in, t->out,
                                                      t->dout, need, t->din}));
fail:
    return st;
}

/* The change of sum(dout * output 0) when one element of an input moves by `step`. */
static double change(struct trial *t, int input, int64_t e, double step)
{
    const double *in[LKSI_MAX_IN];
    double *x = &t->tape.value[t->in[input]].d[e], kept = *x, sum = 0.0;
    const double *at = t->tape.value[t->out[0]].d, *g = t->tape.value[t->dout[0]].d;
    for (int i = 0; i < t->call.n_in; i++)
        in[i] = t->tape.value[t->in[i]].d;
    *x = kept + step;
    lksi_real_find(t->call.op->name)(&(struct lksi_real_io){&t->call, in, t->moved, NULL});
    *x = kept;
    for (int64_t k = 0; k < lksi_desc_count(&t->call.out[0]); k++)
        sum += g[k] * (t->moved[0][k] - at[k]);
    return sum;
}

struct slope {
    int64_t element;
    double value;
};

/* Differences along some elements of an input; returns how many, leaving kinks out. */
static int slopes(struct trial *t, int input, uint64_t seed, struct slope s[DIRECTIONS],
                  struct lksi_accuracy_row *row)
{
    int64_t n = lksi_desc_count(&t->call.in[input]);
    int kept = 0, wanted = n < DIRECTIONS ? (int)n : DIRECTIONS;
    for (int k = 0; k < wanted; k++) {
        int64_t e = n <= DIRECTIONS
                        ? k
                        : (int64_t)(lks_random_word(seed, 99u, (U32)input, (U64)k) % (uint64_t)n);
        double up = change(t, input, e, STEP) / STEP, down = change(t, input, e, -STEP) / -STEP;
        if (fabs(up - down) > KINK * (1.0 + fabs(up) + fabs(down)))
            row->skipped++;
        else
            s[kept++] = (struct slope){e, (up + down) / 2.0};
    }
    return kept;
}

static void compare_input(struct trial *t, const struct lksi_oracle *o, int input, uint64_t seed,
                          struct lksi_accuracy_row *row)
{
    struct slope s[DIRECTIONS];
    int n = slopes(t, input, seed, s, row);
    double scale = 1e-3;
    const struct number *v = t->din[input] != LKSI_NONE ? &t->tape.value[t->din[input]] : NULL;
    char shapes[512];
    for (int k = 0; k < n; k++)
        scale = fmax(scale, fabs(s[k].value));
    for (int k = 0; k < n; k++) {
        double f = v != NULL ? (double)v->f[s[k].element] : 0.0;
        double d = v != NULL ? v->d[s[k].element] : 0.0;
        double off = fmax(fabs(f - s[k].value) / CLOSE_F32, fabs(d - s[k].value) / CLOSE_F64);
        row->values++;
        row->worst = fmax(row->worst, off / scale);
        if (off <= scale || row->failed)
            continue;
        row->failed = true;
        lksi_oracle_shapes(o, shapes, sizeof shapes);
        snprintf(row->text, sizeof row->text,
                 "%s, case %d: gradient of input %d, element %lld is %.9g (in double %.12g), "
                 "by differences %.12g",
                 shapes, o->index, input, (long long)s[k].element, f, d, s[k].value);
    }
}

static void close_trial(struct trial *t)
{
    tape_close(&t->tape);
    for (int j = 0; j < LKSI_MAX_OUT; j++)
        free(t->moved[j]);
}

static lks_status run_case(struct lksi_accuracy_row *row, const struct lksi_oracle *o,
                           uint64_t seed)
{
    struct trial t = {0};
    lks_status st = LKS_OK;
    LKSI_TRY(forward(&t, o, seed));
    LKSI_TRY(backward(&t, seed));
    for (int i = 0; i < t.call.n_in; i++) {
        if (t.call.in[i].dtype != LKSI_F32)
            continue;
        if (t.din[i] != LKSI_NONE &&
            !lksi_desc_equal(&t.tape.value[t.din[i]].desc, &t.call.in[i])) {
            row->failed = true;
            snprintf(row->text, sizeof row->text,
                     "case %d: the gradient of input %d has another "
                     "shape than the input",
                     o->index, i);
            break;
        }
        compare_input(&t, o, i, seed, row);
    }
    row->cases++;
fail:
    close_trial(&t);
    return st;
}

static lks_status run_op(struct lksi_accuracy_row *row, const struct lksi_check_options *options)
{
    lks_status st = LKS_OK;
    bool found = true;
    for (int c = 0; found; c++) {
        struct lksi_oracle o;
        LKSI_TRY(lksi_oracle_open(&o, row->op, c, false, &found));
        if (found && lksi_op_flops(&o.call) <= MAX_FLOPS &&
            (options->only_case == 0 || c == options->only_case - 1))
            st = run_case(row, &o, options->seed + (uint64_t)c);
        lksi_oracle_close(&o);
        if (st != LKS_OK && st != LKS_E_MEMORY) { /* the operator's own failure */
            row->failed = true;
            snprintf(row->text, sizeof row->text, "case %d: %s", c, lks_error_message());
            return LKS_OK;
        }
        LKSI_TRY(st);
    }
    if (!row->failed && (row->values == 0 || row->skipped * 20 > row->values)) {
        row->failed = true;
        snprintf(row->text, sizeof row->text, "%llu values compared, %llu on kinks: too few",
                 (unsigned long long)row->values, (unsigned long long)row->skipped);
    }
fail:
    return st;
}

lks_status lksi_gradient_run(const struct lksi_check_options *options, lksi_accuracy_fn fn,
                             void *user, size_t *failed)
{
    const struct lksi_check_options none = {0};
    const struct lksi_check_options *o = options != NULL ? options : &none;
    const struct lksi_op *op;
    size_t bad = 0;
    for (size_t i = 0; (op = o->ops ? o->ops[i] : lksi_op_at(i)) != NULL; i++) {
        struct lksi_accuracy_row row = {.op = op};
        lks_status st;
        if (op->grad == NULL || op->saved != 0 || (o->op != NULL && strcmp(o->op, op->name) != 0))
            continue;
        st = run_op(&row, o);
        if (st != LKS_OK)
            return st;
        bad += row.failed;
        fn(user, &row);
    }
    if (failed != NULL)
        *failed = bad;
    return LKS_OK;
}
