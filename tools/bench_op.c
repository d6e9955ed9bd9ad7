/*
 * bench_op.c - times single operators: at a shape that the options give (convolution and dense
 * layers, pooling, relu, add), or at the operator's largest case of the contract harness.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "check/regime.h"
#include "op/attr.h"
#include "op/conv2d.h"
#include "plan/plan.h"

enum { MAX_SCHEDULES = 16 };

/* ---- shapes ---- */

struct shape {
    int64_t n, h, w, c; /* of --in */
    int rank;
    int64_t out, kernel, stride, pad, groups;
    uint32_t leaf;
};

static bool read_shape(const char *text, struct shape *s)
{
    int64_t dim[4] = {1, 1, 1, 1};
    const char *p = text;
    for (s->rank = 0; s->rank < 4; p++) {
        char *end;
        if (*p < '0' || *p > '9')
            return false;
        unsigned long long v = strtoull(p, &end, 10);
        if (v == 0 || v > INT32_MAX)
            return false;
        dim[s->rank++] = (int64_t)v;
        p = end;
        if (*p != ',')
            break;
    }
    s->n = dim[0];
    s->h = s->rank == 4 ? dim[1] : 1;
    s->w = s->rank == 4 ? dim[2] : 1;
    s->c = dim[s->rank - 1];
    return *p == '\0' && (s->rank == 2 || s->rank == 4);
}

static int64_t spread(int64_t size, const struct shape *s)
{
    return (size + 2 * s->pad - s->kernel) / s->stride + 1;
}

static struct lksi_desc image(const struct shape *s)
{
    return lksi_desc_make(LKSI_F32, 4, s->n, s->h, s->w, s->c);
}

static struct lksi_desc image_out(const struct shape *s, int64_t channels)
{
    return lksi_desc_make(LKSI_F32, 4, s->n, spread(s->h, s), spread(s->w, s), channels);
}

static struct lksi_conv2d_attr conv_attr(const struct shape *s)
{
    uint32_t stride = (uint32_t)s->stride, pad = (uint32_t)s->pad;
    return (struct lksi_conv2d_attr){.stride_h = stride,
                                     .stride_w = stride,
                                     .pad_top = pad,
                                     .pad_bottom = pad,
                                     .pad_left = pad,
                                     .pad_right = pad,
                                     .dilation_h = 1,
                                     .dilation_w = 1,
                                     .groups = (uint32_t)s->groups};
}

/* Each fills the inputs and attributes of an operator. */
static int make_conv(const struct shape *s, struct lksi_desc *in, void *attr)
{
    *(struct lksi_conv2d_attr *)attr = conv_attr(s);
    in[0] = image(s);
    in[1] = lksi_desc_make(LKSI_F32, 4, s->out, s->kernel, s->kernel, s->c / s->groups);
    in[2] = lksi_desc_make(LKSI_F32, 1, s->out);
    return 3;
}

static int make_conv_data(const struct shape *s, struct lksi_desc *in, void *attr)
{
    *(struct lksi_conv2d_data_grad_attr *)attr =
        (struct lksi_conv2d_data_grad_attr){conv_attr(s), (uint32_t)s->h, (uint32_t)s->w};
    in[0] = image_out(s, s->out);
    in[1] = lksi_desc_make(LKSI_F32, 4, s->out, s->kernel, s->kernel, s->c / s->groups);
    return 2;
}

static int make_conv_weight(const struct shape *s, struct lksi_desc *in, void *attr)
{
    *(struct lksi_conv2d_weight_grad_attr *)attr = (struct lksi_conv2d_weight_grad_attr){
        conv_attr(s), (uint32_t)s->kernel, (uint32_t)s->kernel};
    in[0] = image(s);
    in[1] = image_out(s, s->out);
    return 2;
}

static int make_dense(const struct shape *s, struct lksi_desc *in, void *attr)
{
    (void)attr;
    in[0] = lksi_desc_make(LKSI_F32, 2, s->n, s->h * s->w * s->c);
    in[1] = lksi_desc_make(LKSI_F32, 2, s->out, s->h * s->w * s->c);
    in[2] = lksi_desc_make(LKSI_F32, 1, s->out);
    return 3;
}

static int make_dense_data(const struct shape *s, struct lksi_desc *in, void *attr)
{
    make_dense(s, in, attr);
    in[0] = lksi_desc_make(LKSI_F32, 2, s->n, s->out);
    return 2;
}

static int make_dense_weight(const struct shape *s, struct lksi_desc *in, void *attr)
{
    make_dense(s, in, attr);
    in[1] = lksi_desc_make(LKSI_F32, 2, s->n, s->out);
    return 2;
}

static int make_pool(const struct shape *s, struct lksi_desc *in, void *attr)
{
    int k = (int)s->kernel, stride = (int)s->stride, pad = (int)s->pad;
    *(struct lksi_maxpool_attr *)attr =
        (struct lksi_maxpool_attr){k, k, stride, stride, pad, pad, pad, pad, 0, 1, 1, 0};
    in[0] = image(s);
    return 1;
}

static int make_mean(const struct shape *s, struct lksi_desc *in, void *attr)
{
    struct lksi_avgpool_attr *a = attr;
    a->count_pad = 0;
    a->height = a->width = 0;
    return make_pool(s, in, &a->window);
}

static int make_one(const struct shape *s, struct lksi_desc *in, void *attr)
{
    (void)attr;
    in[0] = s->rank == 4 ? image(s) : lksi_desc_make(LKSI_F32, 2, s->n, s->c);
    return 1;
}

static int make_two(const struct shape *s, struct lksi_desc *in, void *attr)
{
    make_one(s, in, attr);
    in[1] = in[0];
    return 2;
}

/* NHWC to NCHW. */
static int make_move(const struct shape *s, struct lksi_desc *in, void *attr)
{
    *(struct lksi_move_attr *)attr = (struct lksi_move_attr){4, 0, {{0}, {3}, {1}, {2}}};
    in[0] = image(s);
    return 1;
}

static int make_concat(const struct shape *s, struct lksi_desc *in, void *attr)
{
    ((struct lksi_concat_attr *)attr)->axis = s->rank - 1;
    return make_two(s, in, attr);
}

/* Twice the size, bilinear, half pixels. */
static struct lksi_resample_axis twice(int64_t in)
{
    return (struct lksi_resample_axis){(int32_t)in, (int32_t)(2 * in), 2, -1, 4};
}

static int make_resample(const struct shape *s, struct lksi_desc *in, void *attr)
{
    *(struct lksi_resample_attr *)attr = (struct lksi_resample_attr){1, twice(s->h), twice(s->w)};
    in[0] = image(s);
    return 1;
}

static int make_resample_grad(const struct shape *s, struct lksi_desc *in, void *attr)
{
    make_resample(s, in, attr);
    in[0].dim[1] *= 2;
    in[0].dim[2] *= 2;
    return 1;
}

static const struct maker {
    const char *op;
    bool image, out, kernel; /* --in has four dimensions; --out, --kernel are needed */
    int (*make)(const struct shape *s, struct lksi_desc *in, void *attr);
} makers[] = {
    {"conv2d", true, true, true, make_conv},
    {"conv2d_data_grad", true, true, true, make_conv_data},
    {"conv2d_weight_grad", true, true, true, make_conv_weight},
    {"winograd", true, true, true, make_conv},
    {"winograd_data_grad", true, true, true, make_conv_data},
    {"winograd_weight_grad", true, true, true, make_conv_weight},
    {"dense", false, true, false, make_dense},
    {"dense_data_grad", false, true, false, make_dense_data},
    {"dense_weight_grad", false, true, false, make_dense_weight},
    {"maxpool", true, false, true, make_pool},
    {"avgpool", true, false, true, make_mean},
    {"relu", false, false, false, make_one},
    {"relu_grad", false, false, false, make_two},
    {"add", false, false, false, make_two},
    {"bias_grad", false, false, false, make_one},
    {"concat", false, false, false, make_concat},
    {"move", true, false, false, make_move},
    {"resample", true, false, false, make_resample},
    {"resample_grad", true, false, false, make_resample_grad},
};

static const struct maker *maker_of(const char *op)
{
    for (size_t i = 0; i < LKSI_COUNT(makers); i++)
        if (strcmp(makers[i].op, op) == 0)
            return &makers[i];
    return NULL;
}

static int get_shape(const struct bench_options *o, const struct maker *m, struct shape *s)
{
    *s = (struct shape){
        .kernel = 1, .stride = 1, .leaf = o->leaf.given ? (uint32_t)o->leaf.value : 8};
    if (!read_shape(o->in, s) || (m->image && s->rank != 4))
        return fail_usage("--in: `%s` is no shape of %s, e.g. 64,28,28,1", o->in,
                          m->image ? "four numbers N,H,W,C" : "N,H,W,C or N,F");
    if (m->out != o->out.given)
        return fail_usage(m->out ? "--op %s needs --out K" : "--op %s takes no --out", m->op);
    if (m->kernel != o->kernel.given)
        return fail_usage(m->kernel ? "--op %s needs --kernel R" : "--op %s takes no --kernel",
                          m->op);
    if (!m->kernel && (o->stride.given || o->pad.given))
        return fail_usage("--op %s takes no --stride and no --pad", m->op);
    s->out = (int64_t)o->out.value;
    s->kernel = o->kernel.given ? (int64_t)o->kernel.value : 1;
    s->stride = o->stride.given ? (int64_t)o->stride.value : 1;
    s->pad = (int64_t)o->pad.value;
    s->groups = o->groups.given ? (int64_t)o->groups.value : 1;
    if (o->groups.given && strncmp(m->op, "conv2d", 6) != 0)
        return fail_usage("--op %s takes no --groups", m->op);
    if (s->c % s->groups != 0 || s->out % s->groups != 0)
        return fail_usage("--groups %" PRId64 " does not divide the channels", s->groups);
    if (s->h + 2 * s->pad < s->kernel || s->w + 2 * s->pad < s->kernel)
        return fail_usage("--kernel %" PRId64 " is larger than the padded input", s->kernel);
    return EXIT_OK;
}

int bench_check_op(const struct bench_options *o)
{
    struct shape s;
    const struct maker *m = o->op != NULL ? maker_of(o->op) : NULL;
    bool all = o->schedule != NULL && strcmp(o->schedule, "all") == 0;
    int status = check_op_words(o->op, all ? NULL : o->schedule);
    if (status != EXIT_OK)
        return status;
    if (o->op != NULL && lksi_op_find(o->op)->view)
        return fail_usage("--op %s: it launches nothing, so there is nothing to time", o->op);
    if (o->plain && o->schedule != NULL)
        return fail_usage("--plain is short for --schedule plain; give one of them");
    if (o->in != NULL && m == NULL)
        return fail_usage("--in: %s%s%s takes no shape from here; without --in it is timed at its "
                          "largest case",
                          o->op != NULL ? "`" : "", o->op != NULL ? o->op : "every operator",
                          o->op != NULL ? "`" : "");
    if (o->in == NULL && (o->out.given || o->kernel.given || o->stride.given || o->pad.given ||
                          o->groups.given))
        return fail_usage("--out, --kernel, --stride, --pad and --groups say nothing without --in");
    return o->in != NULL ? get_shape(o, m, &s) : EXIT_OK;
}

/* ---- a call ---- */

/* The case of the harness with the most to do: operations, then bytes. */
static bool largest_case(const struct lksi_op *op, void *attr, void *scratch,
                         struct lksi_call *best)
{
    double most = -1;
    for (int i = 0; op->test_case != NULL; i++) {
        struct lksi_call drawn = {.leaf = 8}, call;
        memset(scratch, 0, op->attr_size);
        if (!op->test_case(i, true, &drawn, scratch))
            break;
        if (lksi_call_make(&call, op, scratch, drawn.leaf, drawn.n_in, drawn.in) != LKS_OK)
            continue;
        double work = lksi_op_flops(&call) + bench_bytes(&call);
        if (work > most) {
            most = work;
            *best = call;
            memcpy(attr, scratch, op->attr_size);
            best->attr = attr;
        }
    }
    return most >= 0;
}

lks_status bench_make_call(const struct bench *b, const struct lksi_op *op, void *attr,
                           void *scratch, struct lksi_call *call)
{
    struct lksi_desc in[LKSI_MAX_IN];
    struct shape s;
    if (b->o->in == NULL)
        return largest_case(op, attr, scratch, call)
                   ? LKS_OK
                   : lksi_fail(LKS_E_ARGUMENT, "operator `%s` has no case to time", op->name);
    get_shape(b->o, maker_of(op->name), &s);
    int n = maker_of(op->name)->make(&s, in, attr);
    return lksi_call_make(call, op, attr, s.leaf, n, in);
}

void bench_call_text(const struct lksi_call *call, char *text, size_t size)
{
    char shape[96];
    size_t used = (size_t)snprintf(text, size, "%s", call->op->name);
    for (int i = 0; i < call->n_in && used < size; i++)
        used +=
            (size_t)snprintf(text + used, size - used, " %s", lksi_desc_text(&call->in[i], shape));
    for (int j = 0; j < call->n_out && used < size; j++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", j == 0 ? " -> " : " ",
                                 lksi_desc_text(&call->out[j], shape));
}

/* ---- buffers ---- */

void bench_buffers_free(struct bench_buffers *x)
{
    for (int i = 0; i < LKSI_MAX_IN; i++)
        lksi_buf_destroy(&x->in[i]);
    for (int j = 0; j < LKSI_MAX_OUT; j++)
        lksi_buf_destroy(&x->out[j]);
    for (int w = 0; w < LKSI_MAX_WORK; w++)
        lksi_buf_destroy(&x->work[w]);
}

/* Seeded numbers; a lone integer is a flag and stays down. */
static lks_status make_input(const struct bench *b, const struct lksi_call *call, int i,
                             struct lksi_buf **buf)
{
    uint64_t bytes = 4u * (uint64_t)lksi_desc_count(&call->in[i]);
    uint32_t *data = lksi_alloc((size_t)bytes, 1);
    lks_status st = data != NULL ? LKS_OK : LKS_E_MEMORY;
    if (st == LKS_OK && !(call->in[i].dtype == LKSI_I32 && bytes == 4))
        lksi_regime_fill(LKSI_REGIME_UNIFORM, b->o->seed.given ? b->o->seed.value : 1, call, i,
                         data);
    if (st == LKS_OK)
        st = lksi_buf_create(buf, b->dev, bytes);
    if (st == LKS_OK)
        st = lksi_buf_write(*buf, 0, data, bytes, true);
    free(data);
    return st;
}

lks_status bench_bind(const struct bench *b, struct bench_buffers *x, struct lksi_stage *stage)
{
    const struct lksi_call *call = &stage->call;
    lks_status st = LKS_OK;
    for (int i = 0; i < call->n_in; i++) {
        if (x->in[i] == NULL)
            LKSI_TRY(make_input(b, call, i, &x->in[i]));
        stage->in[i] = x->in[i];
    }
    for (int j = 0; j < call->n_out; j++) {
        int alias = call->op->alias[j];
        if (alias == 0 && x->out[j] == NULL)
            LKSI_TRY(
                lksi_buf_create(&x->out[j], b->dev, 4u * (uint64_t)lksi_desc_count(&call->out[j])));
        stage->out[j] = alias != 0 ? stage->in[alias - 1] : x->out[j];
    }
    for (int w = 0; w < stage->recipe.n_work; w++) {
        if (x->work[w] != NULL && lksi_buf_bytes(x->work[w]) < stage->recipe.work_bytes[w])
            lksi_buf_destroy(&x->work[w]);
        if (x->work[w] == NULL)
            LKSI_TRY(lksi_buf_create(&x->work[w], b->dev, stage->recipe.work_bytes[w]));
        stage->work[w] = x->work[w];
    }
    LKSI_TRY(lksi_stage_bind(stage));
fail:
    return st;
}

/* ---- timing ---- */

static lks_status time_stage(struct bench *b, struct lksi_stage *stage, const char *schedule)
{
    enum { WARM = 2 };
    struct bench_case c = {.op = stage->call.op->name,
                           .schedule = schedule,
                           .share = -1,
                           .flops = lksi_op_flops(&stage->call),
                           .bytes = bench_bytes(&stage->call)};
    struct bench_times t = {0};
    double ms;
    lks_status st = LKS_OK;
    bench_call_text(&stage->call, c.name, sizeof c.name);
    for (int i = 0; i < WARM; i++)
        LKSI_TRY(bench_stage(stage, &ms, &c.timer));
    while (bench_go_on(b, &t)) {
        LKSI_TRY(bench_stage(stage, &ms, &c.timer));
        LKSI_TRY(bench_times_add(&t, ms));
    }
    LKSI_TRY(bench_print(b, &c, &t));
fail:
    bench_times_free(&t);
    return st;
}

/* A wrong schedule is not worth a time. */
static lks_status admit(const struct lksi_stage *stage, struct lksi_program *program)
{
    bool right = true;
    lks_status st = LKS_OK;
    if (!lksi_dev_is_ref(stage->dev))
        st = lksi_admit(stage, program, &right);
    if (st == LKS_OK && !right)
        st =
            lksi_fail(LKS_E_MISMATCH,
                      "schedule `%s` of operator `%s` gives other bits than its contract, so it is "
                      "not timed; `lockstep check --op %s` tells more",
                      stage->schedule->name, stage->call.op->name, stage->call.op->name);
    return st;
}

static lks_status time_schedule(struct bench *b, const struct lksi_call *call, const char *wanted)
{
    const struct lksi_build_progress quiet = {NULL, NULL};
    struct lksi_stage *stage = lksi_alloc(1, sizeof *stage);
    struct lksi_program *program = NULL;
    struct bench_buffers x = {0};
    lks_status st = stage != NULL ? LKS_OK : LKS_E_MEMORY;
    const char *name;
    if (st != LKS_OK)
        return st;
    LKSI_TRY(lksi_stage_choose(stage, b->dev, call, wanted, NULL, NULL));
    LKSI_TRY(lksi_stages_build(&program, b->dev, stage, 1, quiet));
    LKSI_TRY(admit(stage, program));
    LKSI_TRY(bench_bind(b, &x, stage));
    name = stage->schedule != NULL ? stage->schedule->name : stage->items_only ? "plain" : "ref";
    LKSI_TRY(time_stage(b, stage, name));
fail:
    lksi_stage_close(stage);
    lksi_program_destroy(&program);
    bench_buffers_free(&x);
    free(stage);
    return st;
}

static lks_status time_all(struct bench *b, const struct lksi_call *call)
{
    const struct lksi_schedule *s;
    lks_status st = LKS_OK;
    if (lksi_dev_is_ref(b->dev)) {
        if (call->op->ref != NULL)
            LKSI_TRY(time_schedule(b, call, NULL));
        return time_schedule(b, call, "plain");
    }
    for (size_t i = 0; (s = lksi_op_schedule(call->op, i)) != NULL; i++)
        if (s->declines(call, lksi_dev_limits(b->dev)) == NULL)
            LKSI_TRY(time_schedule(b, call, s->name));
fail:
    return st;
}

static lks_status time_op(struct bench *b, const struct lksi_op *op)
{
    const char *wanted = b->o->plain ? "plain" : b->o->schedule;
    void *attr = lksi_alloc(1, op->attr_size + 1), *scratch = lksi_alloc(1, op->attr_size + 1);
    struct lksi_call call;
    lks_status st = attr != NULL && scratch != NULL ? LKS_OK : LKS_E_MEMORY;
    if (st == LKS_OK)
        st = bench_make_call(b, op, attr, scratch, &call);
    if (st == LKS_OK)
        st = wanted != NULL && strcmp(wanted, "all") == 0 ? time_all(b, &call)
                                                          : time_schedule(b, &call, wanted);
    free(attr);
    free(scratch);
    return st;
}

int bench_ops(struct bench *b)
{
    const struct lksi_op *op;
    for (size_t i = 0; (op = lksi_op_at(i)) != NULL; i++) {
        if (b->o->op != NULL ? strcmp(b->o->op, op->name) != 0 : op->view)
            continue;
        lks_status st = time_op(b, op);
        if (st != LKS_OK)
            return fail_library(st);
    }
    return EXIT_OK;
}
