/*
 * accuracy.c - item functions against double precision; see accuracy.h.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/accuracy.h"
#include "check/oracle.h"
#include "check/real.h"

#define HEAVY_FLOPS 2e7

/* The doubles of one case. */
struct doubles {
    double *in[LKSI_MAX_IN], *out[LKSI_MAX_OUT], *err[LKSI_MAX_OUT];
};

static void doubles_close(struct doubles *d)
{
    for (int i = 0; i < LKSI_MAX_IN; i++)
        free(d->in[i]);
    for (int j = 0; j < LKSI_MAX_OUT; j++) {
        free(d->out[j]);
        free(d->err[j]);
    }
}

static bool doubles_open(struct doubles *d, const struct lksi_oracle *o)
{
    bool ok = true;
    memset(d, 0, sizeof *d);
    for (int i = 0; i < o->call.n_in && ok; i++) {
        uint64_t n = o->in_bytes[i] / 4u;
        d->in[i] = lksi_alloc((size_t)n, sizeof(double));
        ok = d->in[i] != NULL;
        for (uint64_t e = 0; e < n && ok; e++)
            d->in[i][e] = o->call.in[i].dtype == LKSI_F32 ? (double)((const float *)o->in[i])[e]
                                                          : (double)((const int32_t *)o->in[i])[e];
    }
    for (int j = 0; j < o->call.n_out && ok; j++) {
        d->out[j] = lksi_alloc((size_t)o->out_bytes[j] / 4u, sizeof(double));
        d->err[j] = lksi_alloc((size_t)o->out_bytes[j] / 4u, sizeof(double));
        ok = d->out[j] != NULL && d->err[j] != NULL;
    }
    if (!ok)
        doubles_close(d);
    return ok;
}

/* Error of `got` as a share of what is allowed; infinite if nothing is and it is wrong. */
static double share(double got, double want, double allowed)
{
    if (got == want || (isnan(got) && isnan(want)))
        return 0.0;
    if (fabs(want) > 3.4e38 && isinf(got) && (got > 0.0) == (want > 0.0))
        return 0.0;
    if (!isfinite(got) || !isfinite(want))
        return INFINITY;
    return allowed > 0.0 ? fabs(got - want) / allowed : INFINITY;
}

static void compare(struct lksi_accuracy_row *row, const struct lksi_oracle *o,
                    const struct doubles *d, enum lksi_regime regime)
{
    char shapes[512];
    for (int j = 0; j < o->call.n_out; j++) {
        bool real = o->call.out[j].dtype == LKSI_F32;
        for (uint64_t e = 0; e < o->out_bytes[j] / 4u; e++) {
            double got = real ? (double)((const float *)o->out[j])[e]
                              : (double)((const int32_t *)o->out[j])[e];
            double s = share(got, d->out[j][e], d->err[j][e]);
            row->values++;
            row->worst = fmax(row->worst, s);
            if (s <= 1.0 || row->failed)
                continue;
            row->failed = true;
            lksi_oracle_shapes(o, shapes, sizeof shapes);
            snprintf(row->text, sizeof row->text,
                     "%s, case %d, regime %s: output %d, element %llu is %.9g, in double %.17g, "
                     "allowed error %.3g",
                     shapes, o->index, lksi_regime_name(regime), j, (unsigned long long)e, got,
                     d->out[j][e], d->err[j][e]);
        }
    }
}

static lks_status run_regime(struct lksi_accuracy_row *row, struct lksi_oracle *o,
                             struct lksi_dev *ref, enum lksi_regime regime, uint64_t seed,
                             lksi_real_fn fn)
{
    struct lksi_check_failure contract = {0};
    struct doubles d;
    lks_status st = lksi_oracle_compute(o, ref, regime, seed, &contract);
    if (st != LKS_OK)
        return st;
    if (contract.fault != LKSI_FAULT_NONE && !row->failed) {
        row->failed = true;
        snprintf(row->text, sizeof row->text, "case %d, regime %s: %s", o->index,
                 lksi_regime_name(regime), contract.text);
    }
    if (!doubles_open(&d, o))
        return LKS_E_MEMORY;
    fn(&(struct lksi_real_io){&o->call, (const double *const *)d.in, d.out, d.err});
    compare(row, o, &d, regime);
    row->cases++;
    doubles_close(&d);
    return LKS_OK;
}

static void fail_row(struct lksi_accuracy_row *row, const char *text)
{
    row->failed = true;
    snprintf(row->text, sizeof row->text, "%s", text);
}

/* Heavy cases run in one regime. */
static bool regime_wanted(const struct lksi_check_options *options, const struct lksi_call *call,
                          enum lksi_regime regime)
{
    if (options->regime != NULL)
        return strcmp(options->regime, lksi_regime_name(regime)) == 0;
    return regime == LKSI_REGIME_WIDE || lksi_op_flops(call) <= HEAVY_FLOPS;
}

static lks_status run_op(struct lksi_accuracy_row *row, const struct lksi_check_options *options,
                         struct lksi_dev *ref)
{
    lksi_real_fn fn = lksi_real_find(row->op->name);
    lks_status st = LKS_OK;
    bool found = true;
    if (fn == NULL) {
        fail_row(row, "no double-precision function in src/check/real.c");
        return LKS_OK;
    }
    for (int c = 0; found && st == LKS_OK; c++) {
        struct lksi_oracle o;
        if (options->only_case > 0 && c != options->only_case - 1)
            continue;
        st = lksi_oracle_open(&o, row->op, c, options->long_run, &found);
        for (int r = 0; r < LKSI_REGIMES && st == LKS_OK && found; r++)
            if (regime_wanted(options, &o.call, (enum lksi_regime)r))
                st = run_regime(row, &o, ref, (enum lksi_regime)r, options->seed, fn);
        lksi_oracle_close(&o);
        found = found && options->only_case == 0;
    }
    if (st == LKS_OK && row->cases == 0)
        fail_row(row, "no case: the operator has no test_case");
    return st;
}

lks_status lksi_accuracy_run(const struct lksi_check_options *options, lksi_accuracy_fn fn,
                             void *user, size_t *failed)
{
    const struct lksi_check_options none = {0};
    const struct lksi_dev_params as_ref = {.select = "ref", .cache_dir = ""};
    const struct lksi_check_options *o = options != NULL ? options : &none;
    const struct lksi_op *op;
    struct lksi_dev *ref = NULL;
    size_t bad = 0;
    lks_status st = lksi_dev_open(&ref, &as_ref);
    for (size_t i = 0; st == LKS_OK && (op = o->ops ? o->ops[i] : lksi_op_at(i)) != NULL; i++) {
        struct lksi_accuracy_row row = {.op = op};
        if (o->op != NULL && strcmp(o->op, op->name) != 0)
            continue;
        st = run_op(&row, o, ref);
        if (st == LKS_OK) {
            bad += row.failed;
            fn(user, &row);
        }
    }
    if (st == LKS_OK && failed != NULL)
        *failed = bad;
    lksi_dev_close(&ref);
    return st;
}
