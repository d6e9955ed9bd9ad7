/*
 * plan_table.c - see plan_table.h. One record an operator, which is printed as text or as JSON.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "bench.h"
#include "plan_table.h"
#include "train/train.h"

struct totals {
    size_t launches, host;
    double flops, bytes; /* every input and output of an operator once */
};

/* Of the columns whose words vary in length. */
struct widths {
    int layer, op, schedule;
};

static uint64_t work_of(const struct lksi_stage *s)
{
    uint64_t bytes = 0;
    for (int w = 0; w < s->recipe.n_work; w++)
        bytes += s->recipe.work_bytes[w];
    return bytes;
}

/* On `ref` an operator is one call of a C loop. */
static size_t launches_of(const struct lksi_stage *s, struct totals *sum)
{
    size_t n = 0;
    for (int l = 0; l < s->recipe.n_launch; l++) {
        const struct lksi_launch *launch = &s->recipe.launch[l];
        if (launch->host != NULL)
            sum->host++;
        else if (!bench_is_empty(launch))
            n++;
    }
    sum->launches += n;
    return n;
}

/* What the operator does beside its own work: the bias, followers that it absorbed, and all
 * parameters at once in the update. free(); NULL: no memory. */
static char *fused_of(const struct lksi_plan *plan, const struct lksi_stage *stage, size_t index)
{
    struct lksi_str s = {0};
    const char *op = stage->call.op->name, *fused = lksi_plan_stage_fused(plan, index);
    if ((strcmp(op, "conv2d") == 0 || strcmp(op, "dense") == 0) && stage->call.n_in > 2)
        lksi_str_add(&s, "bias%s", fused != NULL ? ", " : "");
    if (strcmp(lksi_plan_stage_name(plan, index), "update") == 0)
        lksi_str_add(&s, "all parameters%s", fused != NULL ? ", " : "");
    lksi_str_add(&s, "%s", fused != NULL ? fused : "");
    if (!s.failed)
        return s.text;
    free(s.text);
    return NULL;
}

/* Why schedule `index`, which stands before the chosen one, is not used; NULL: this is it, or there
 * is no choice. */
static const char *passed_over(const struct lksi_stage *stage, const struct lksi_store *store,
                               size_t index, const char **name)
{
    const struct lksi_schedule *s = lksi_op_schedule(stage->call.op, index);
    if (stage->schedule == NULL || s == NULL || s == stage->schedule)
        return NULL;
    *name = s->name;
    const char *why = s->declines(&stage->call, lksi_dev_limits(stage->dev));
    if (why == NULL && lksi_store_struck(store, stage->call.op, s))
        why = "gives other bits than the contract on this device";
    return why != NULL ? why : "another one is faster here";
}

/* ---- text ---- */

static void shapes_text(const struct lksi_call *call, char *text, size_t size)
{
    char shape[96];
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < call->n_in && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? " " : "",
                                 lksi_desc_text(&call->in[i], shape));
    for (int j = 0; j < call->n_out && used < size; j++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", j == 0 ? " -> " : " ",
                                 lksi_desc_text(&call->out[j], shape));
}

static void print_launch(const struct lksi_launch *l)
{
    printf("%6s%s ", "", color_dim(1));
    if (l->host != NULL) {
        printf("SGEMM of CLBlast%s\n", color_off(1));
        return;
    }
    printf("%s in %s", l->kernel, l->plain != NULL ? "the contract's header" : l->source);
    if (l->defines[0] != '\0')
        printf(" [%s]", l->defines);
    if (l->options != NULL)
        printf(" %s", l->options);
    for (int i = 0; i < l->dims; i++)
        printf("%s%zu", i == 0 ? ", items " : "x", l->global[i]);
    for (int i = 0; i < l->dims && l->local[0] != 0; i++)
        printf("%s%zu", i == 0 ? ", groups of " : "x", l->local[i]);
    printf("%s%s\n", bench_is_empty(l) ? ", nothing to do: not launched" : "", color_off(1));
}

/* "tile 64x64 8x8, ..." of a stage that tuning chose; NULL: it did not, or no memory. free(). */
static char *tuned_of(const struct lksi_stage *stage)
{
    const struct lksi_tunable *t = stage->schedule != NULL ? stage->schedule->tunables : NULL;
    struct lksi_str s = {0};
    if (stage->pick.schedule == NULL)
        return NULL;
    lksi_str_add(&s, "%s", "");
    for (int i = 0; t != NULL && t[i].name != NULL; i++) {
        char text[LKSI_CHOICE_TEXT];
        if (stage->pick.tuned[i] > 0 &&
            t[i].choice(&stage->call, lksi_dev_limits(stage->dev), stage->pick.tuned[i], text))
            lksi_str_add(&s, "%s%s %s", s.length > 0 ? ", " : "", t[i].name, text);
    }
    return s.text;
}

static void print_details(const struct lksi_stage *stage, const struct lksi_store *store)
{
    char shapes[512];
    char *tuned = tuned_of(stage);
    const char *name, *why;
    shapes_text(&stage->call, shapes, sizeof shapes);
    printf("%6s%s %s%s\n", "", color_dim(1), shapes, color_off(1));
    for (int l = 0; l < stage->recipe.n_launch; l++)
        print_launch(&stage->recipe.launch[l]);
    if (tuned != NULL)
        printf("%6s%s by %s%s%s%s\n", "", color_dim(1), stage->pick.source,
               tuned[0] != '\0' ? ": " : "", tuned, color_off(1));
    free(tuned);
    for (size_t i = 0; (why = passed_over(stage, store, i, &name)) != NULL; i++)
        printf("%6s%s not `%s`: %s%s\n", "", color_dim(1), name, why, color_off(1));
}

static const char *schedule_text(const struct lksi_stage *s, char text[64])
{
    snprintf(text, 64, "%s%s", bench_schedule(s), s->pick.schedule != NULL ? " tuned" : "");
    return text;
}

static void widen(int *width, const char *text)
{
    int length = (int)strlen(text);
    *width = length > *width ? length : *width;
}

static struct widths widths_of(struct lksi_plan *plan)
{
    struct widths w = {(int)strlen("layer"), (int)strlen("operator"), (int)strlen("schedule")};
    char schedule[64];
    for (size_t i = 0; i < lksi_plan_stages(plan); i++) {
        const struct lksi_stage *s = lksi_plan_stage(plan, i);
        widen(&w.layer, lksi_plan_stage_name(plan, i));
        widen(&w.op, s->call.op->name);
        widen(&w.schedule, schedule_text(s, schedule));
    }
    return w;
}

static lks_status print_row(struct lksi_plan *plan, size_t i, const struct widths *w,
                            struct totals *sum)
{
    const struct lksi_stage *s = lksi_plan_stage(plan, i);
    char *fused = fused_of(plan, s, i);
    size_t host = sum->host, n = launches_of(s, sum);
    double flops = lksi_op_flops(&s->call), moved = bench_bytes(&s->call);
    char schedule[64], work[32];
    if (fused == NULL)
        return LKS_E_MEMORY;
    sum->flops += flops;
    sum->bytes += moved;
    printf("%5zu %-*s %-*s %-*s %8zu %11.3f %10.3f %12s%s%s\n", i, w->layer,
           lksi_plan_stage_name(plan, i), w->op, s->call.op->name, w->schedule,
           schedule_text(s, schedule), n + sum->host - host, flops * 1e-6, moved * 1e-6,
           work_of(s) > 0 ? human_bytes(work_of(s), work, sizeof work) : "-",
           fused[0] != '\0' ? "  " : "", fused);
    free(fused);
    return LKS_OK;
}

static lks_status print_text(struct lks_trainer *t, struct lksi_plan *plan, bool verbose,
                             struct totals *sum)
{
    struct widths w = widths_of(plan);
    lks_status st = LKS_OK;
    printf("%s%5s %-*s %-*s %-*s %8s %11s %10s %12s  %s%s\n", color_bold(1), "", w.layer, "layer",
           w.op, "operator", w.schedule, "schedule", "launches", "MFLOP", "MB", "workspace",
           "fused", color_off(1));
    for (size_t i = 0; i < lksi_plan_stages(plan) && st == LKS_OK; i++) {
        st = print_row(plan, i, &w, sum);
        if (st == LKS_OK && verbose)
            print_details(lksi_plan_stage(plan, i), t->store);
    }
    return st;
}

static void print_sums(const lks_trainer *t, const struct lksi_step_plan *step,
                       const struct totals *sum)
{
    const struct lksi_memory *m = lksi_plan_memory(step->plan);
    char text[5][32];
    printf("\na step at batch %u: %zu operators, %zu launches", step->batch,
           lksi_plan_stages(step->plan), sum->launches);
    if (sum->host > 0)
        printf(" and %zu calls of CLBlast", sum->host);
    printf(", 1 upload, %.3f GFLOP; the inputs and outputs of all operators %.3f GB\n",
           sum->flops * 1e-9, sum->bytes * 1e-9);
    printf("memory: parameters and optimiser %s, inputs %s, values %s in %zu buffer%s (the largest "
           "workspace %s), in all %s\n",
           human_bytes(m->state, text[0], sizeof text[0]),
           human_bytes(m->input, text[1], sizeof text[1]),
           human_bytes(m->values, text[2], sizeof text[2]), m->chunks,
           m->chunks == 1 ? "" : "s", human_bytes(m->work, text[3], sizeof text[3]),
           human_bytes(m->total, text[4], sizeof text[4]));
    if (step->form.resident)
        printf("the training data lie on the device, %s more; a step sends the numbers of its "
               "samples\n",
               human_bytes(t->to_reside, text[0], sizeof text[0]));
}

/* ---- JSON; jansson remembers a lack of memory by NULL, which the last call tells ---- */

static json_t *sizes_json(const size_t *size, int n)
{
    json_t *a = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(a, json_integer((json_int_t)size[i]));
    return a;
}

static json_t *launch_json(const struct lksi_launch *l)
{
    if (l->host != NULL)
        return json_pack("{s:s}", "host", "CLBlast");
    json_t *j = json_pack("{s:s, s:s, s:s, s:o}", "kernel", l->kernel, "source",
                          l->plain != NULL ? "contract" : l->source, "defines", l->defines,
                          "items", sizes_json(l->global, l->dims));
    if (l->options != NULL)
        json_object_set_new(j, "options", json_string(l->options));
    if (l->local[0] != 0)
        json_object_set_new(j, "group", sizes_json(l->local, l->dims));
    return j;
}

static json_t *descs_json(const struct lksi_desc *d, int n)
{
    json_t *a = json_array();
    for (int i = 0; i < n; i++) {
        json_t *dims = json_array();
        for (int k = 0; k < d[i].rank; k++)
            json_array_append_new(dims, json_integer(d[i].dim[k]));
        json_array_append_new(a, dims);
    }
    return a;
}

static json_t *stage_json(const struct lks_trainer *t, struct lksi_plan *plan, size_t index,
                          struct totals *sum)
{
    const struct lksi_stage *s = lksi_plan_stage(plan, index);
    const char *name, *why;
    char *fused = fused_of(plan, s, index);
    json_t *launches = json_array(), *declined = json_object(), *j;
    launches_of(s, sum);
    for (int l = 0; l < s->recipe.n_launch; l++)
        if (s->recipe.launch[l].host != NULL || !bench_is_empty(&s->recipe.launch[l]))
            json_array_append_new(launches, launch_json(&s->recipe.launch[l]));
    for (size_t i = 0; (why = passed_over(s, t->store, i, &name)) != NULL; i++)
        json_object_set_new(declined, name, json_string(why));
    j = json_pack("{s:s, s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:s, s:o, s:o}", "layer",
                     lksi_plan_stage_name(plan, index), "operator", s->call.op->name, "schedule",
                     bench_schedule(s), "launches", launches, "declined", declined, "operations",
                     (json_int_t)lksi_op_flops(&s->call), "bytes",
                     (json_int_t)bench_bytes(&s->call), "workspace", (json_int_t)work_of(s), "fused",
                     fused != NULL ? fused : "", "in",
                     descs_json(s->call.in, s->call.n_in), "out",
                     descs_json(s->call.out, s->call.n_out));
    free(fused);
    char *tuned = tuned_of(s);
    if (tuned != NULL) {
        json_object_set_new(j, "tuned", json_string(tuned));
        json_object_set_new(j, "tuned_by", json_string(s->pick.source));
    }
    free(tuned);
    return j;
}

static lks_status print_json(const struct lks_trainer *t, const struct lksi_step_plan *step)
{
    const struct lksi_memory *m = lksi_plan_memory(step->plan);
    json_t *stages = json_array(), *j;
    struct totals sum = {0};
    int bad = -1;
    for (size_t i = 0; i < lksi_plan_stages(step->plan); i++)
        json_array_append_new(stages, stage_json(t, step->plan, i, &sum));
    j = json_pack("{s:s, s:s, s:i, s:I, s:I, s:o, s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I}}", "device",
                  lksi_dev_limits(t->dev)->name, "driver", lksi_dev_limits(t->dev)->driver, "batch",
                  (int)step->batch, "launches", (json_int_t)sum.launches, "clblast_calls",
                  (json_int_t)sum.host, "stages", stages, "memory", "parameters",
                  (json_int_t)m->state, "inputs", (json_int_t)m->input, "values",
                  (json_int_t)m->values, "largest_workspace", (json_int_t)m->work, "buffers",
                  (json_int_t)m->chunks, "total", (json_int_t)m->total, "resident_data",
                  (json_int_t)(step->form.resident ? t->to_reside : 0));
    if (j != NULL && json_array_size(stages) == lksi_plan_stages(step->plan))
        bad = json_dumpf(j, stdout, JSON_COMPACT);
    json_decref(j);
    if (bad != 0)
        return lksi_fail(LKS_E_MEMORY, "no memory for the plan as JSON");
    printf("\n");
    return LKS_OK;
}

lks_status print_plan(lks_trainer *t, bool verbose, bool json)
{
    const struct lksi_step_plan *step = &t->plan[0]; /* for the data that it was made with */
    struct totals sum = {0};
    lks_status st;
    if (json)
        return print_json(t, step);
    printf("the plan of a training step on %s:\n", lksi_dev_limits(t->dev)->name);
    st = print_text(t, step->plan, verbose, &sum);
    if (st != LKS_OK)
        return st;
    print_sums(t, step, &sum);
    return LKS_OK;
}
