/*
 * test_sabotage.c - the harness must catch what it exists for. Schedules and C loops of the dense
 * layer with one fault each; honest ones beside them must pass.
 */
#include <criterion/criterion.h>

#include "check/check.h"
#include "contract/dense.h"
#include "helpers.h"

/* What a run must say of each schedule, in order of the rows. */
struct expected {
    const char *schedule;
    enum lksi_check_verdict verdict;
    enum lksi_check_fault fault;
};

struct rows {
    size_t count;
    struct lksi_check_row row[24];
};

static void collect(void *user, const struct lksi_check_row *row)
{
    struct rows *r = user;
    cr_assert(r->count < LKSI_COUNT(r->row));
    r->row[r->count++] = *row;
}

static void expect_rows(const struct rows *r, const struct expected *e, size_t count)
{
    cr_assert(r->count == count, "%zu rows, %zu expected", r->count, count);
    for (size_t i = 0; i < count; i++) {
        struct lksi_str text = {0};
        const struct lksi_check_row *row = &r->row[i];
        if (row->verdict == LKSI_CHECK_FAILED)
            lksi_check_failure_text(&row->failure, &text);
        cr_expect(strcmp(row->schedule, e[i].schedule) == 0, "%s", row->schedule);
        cr_expect(row->verdict == e[i].verdict && row->failure.fault == e[i].fault,
                  "`%s`: verdict %d, fault %d; expected %d, %d\n%s", e[i].schedule,
                  (int)row->verdict, (int)row->failure.fault, (int)e[i].verdict, (int)e[i].fault,
                  text.text != NULL ? text.text : "");
        free(text.text);
    }
}

/* Some cases of the dense layer are enough. */
static bool few_cases(int index, bool long_run, struct lksi_call *call, void *attr)
{
    static const int some[] = {1, 2, 6, 8, 12, 15};
    return index < (int)LKSI_COUNT(some) &&
           lksi_op_find("dense")->test_case(some[index], long_run, call, attr);
}

/* A copy of the library's dense layer, to which a test gives other functions. */
static struct lksi_op dense_copy(void)
{
    const struct lksi_op *dense = lksi_op_find("dense");
    struct lksi_op copy;
    cr_assert(dense != NULL);
    copy = *dense;
    copy.test_case = few_cases;
    return copy;
}

static struct lksi_dev *open_device(const char *select, const char *kernels)
{
    struct lksi_dev_params params = {.select = select, .cache_dir = "", .kernel_dir = kernels};
    struct lksi_dev *dev = NULL;
    lks_status st = lksi_dev_open(&dev, &params);
    if (st == LKS_E_DEVICE && strcmp(select, "cpu") == 0)
        cr_skip_test("no CPU device: %s", lks_error_message());
    cr_assert(st == LKS_OK, "%s", lks_error_message());
    return dev;
}

static struct rows run(struct lksi_dev *dev, const struct lksi_op *op,
                       const struct lksi_check_options *filters, size_t *failed)
{
    const struct lksi_op *const ops[] = {op, NULL};
    struct lksi_check_options options = *filters;
    struct rows rows = {0};
    options.ops = ops;
    EXPECT_OK(lksi_check_run(dev, &options, collect, &rows, failed));
    return rows;
}

/* ---- C loops of `ref` ---- */

enum { HONEST, SWAPPED, UNFUSED, TAIL, OUTSIDE, INPUT, UNWRITTEN };

static void loop(const struct lksi_call *call, const void *const *in, void *const *out, U64 p0,
                 U64 p1, int fault)
{
    const struct dense_dims *d = (const void *)call->dims.bytes;
    const F32 *x = in[0], *w = in[1], *bias = in[2];
    F32 *y = out[0];
    U64 count = (U64)lksi_desc_count(&call->out[0]);
    for (U64 i = p0; i < p1; i++) {
        U64 n = i / d->o, o = i % d->o;
        U32 terms = fault == TAIL ? d->i / 4 * 4 : d->i;
        F32 acc = 0.0f;
        for (U32 t = 0; t < terms; t++) {
            U32 k = fault == SWAPPED ? terms - 1 - t : t;
            F32 a = x[n * d->i + k], b = w[o * d->i + k];
            acc = fault == UNFUSED ? a * b + acc : lks_fma(a, b, acc);
        }
        if (d->extra != 0)
            acc = acc + bias[o];
        acc = acc + 0.0f;
        if (fault != UNWRITTEN || i + 1 < count)
            y[i] = d->relu != 0 && acc <= 0.0f ? 0.0f : acc;
        if (fault == OUTSIDE && i + 1 == count)
            y[count] = acc;
        if (fault == INPUT && i == 0)
            ((F32 *)(uintptr_t)(const void *)w)[0] += 1.0f;
    }
}

#define LOOP(name, fault)                                                                          \
    static void name(const struct lksi_call *call, const void *const *in, void *const *out,        \
                     U64 p0, U64 p1)                                                               \
    {                                                                                              \
        loop(call, in, out, p0, p1, fault);                                                        \
    }
LOOP(honest, HONEST)
LOOP(swapped, SWAPPED)
LOOP(unfused, UNFUSED)
LOOP(tail, TAIL)
LOOP(outside, OUTSIDE)
LOOP(input, INPUT)
LOOP(unwritten, UNWRITTEN)

Test(sabotage, loops_of_ref)
{
    static const struct {
        lksi_ref_fn fn;
        enum lksi_check_fault fault;
    } loops[] = {
        {honest, LKSI_FAULT_NONE},         {swapped, LKSI_FAULT_BITS},  {unfused, LKSI_FAULT_BITS},
        {tail, LKSI_FAULT_BITS},           {outside, LKSI_FAULT_GUARD}, {input, LKSI_FAULT_INPUT},
        {unwritten, LKSI_FAULT_UNWRITTEN},
    };
    /* One thread: the loops that write outside would race. */
    struct lksi_dev_params params = {.select = "ref", .threads = 1, .cache_dir = ""};
    struct lksi_dev *dev;
    EXPECT_OK(lksi_dev_open(&dev, &params));
    for (size_t i = 0; i < LKSI_COUNT(loops); i++) {
        struct lksi_op op = dense_copy();
        struct lksi_check_options filters = {.seed = 1};
        bool bad = loops[i].fault != LKSI_FAULT_NONE;
        size_t failed;
        op.ref = loops[i].fn;
        op.ref_parts = NULL;
        struct rows rows = run(dev, &op, &filters, &failed);
        struct expected e[] = {{"ref", bad ? LKSI_CHECK_FAILED : LKSI_CHECK_PASSED, loops[i].fault},
                               {"plain", LKSI_CHECK_PASSED, LKSI_FAULT_NONE}};
        expect_rows(&rows, e, 2);
        cr_expect(failed == bad, "loop %zu: %zu rows failed", i, failed);
    }
    lksi_dev_close(&dev);
}

/* ---- kernels ---- */

static const char *never(const struct lksi_call *call, const struct lksi_limits *dev)
{
    (void)call, (void)dev;
    return NULL;
}

static const char *always(const struct lksi_call *call, const struct lksi_limits *dev)
{
    (void)call, (void)dev;
    return "declines always";
}

static const char *unless_nvidia(const struct lksi_call *call, const struct lksi_limits *dev)
{
    (void)call;
    return dev->vendor_id == 0x10de ? NULL : "wants NVIDIA";
}

static const char *odd_rows(const struct lksi_call *call, const struct lksi_limits *dev)
{
    (void)dev;
    return call->in[0].dim[0] % 2 != 0 ? NULL : "wants an odd batch";
}

static void sabotage_recipe(const struct lksi_call *call, struct lksi_recipe *r,
                            const char *defines)
{
    struct lksi_launch *l = &r->launch[0];
    U64 count = (U64)lksi_desc_count(&call->out[0]);
    const struct lksi_arg arg[] = {LKSI_IN(0),   LKSI_IN(1), LKSI_IN(2),     LKSI_OUT(0),
                                   LKSI_WORK(0), LKSI_DIMS,  LKSI_U64(count)};
    r->n_launch = r->n_work = 1;
    r->work_bytes[0] = 16;
    l->source = "op/sabotage.cl";
    l->kernel = "sabotage";
    snprintf(l->defines, sizeof l->defines, "%s", defines);
    memcpy(l->arg, arg, sizeof arg);
    l->n_arg = (int)LKSI_COUNT(arg);
    l->dims = 1;
    l->local[0] = 16;
    l->global[0] = (size_t)(count + 15) / 16 * 16;
}

#define RECIPE(name, defines)                                                                      \
    static void name(const struct lksi_call *call, const struct lksi_limits *dev,                  \
                     struct lksi_recipe *r)                                                        \
    {                                                                                              \
        (void)dev;                                                                                 \
        sabotage_recipe(call, r, defines);                                                         \
    }
RECIPE(cl_honest, "")
RECIPE(cl_swapped, "SWAPPED")
RECIPE(cl_unfused, "UNFUSED")
RECIPE(cl_tail, "TAIL")
RECIPE(cl_unnormalised, "UNNORMALISED")
RECIPE(cl_unstable, "UNSTABLE")
RECIPE(cl_unwritten, "UNWRITTEN")
RECIPE(cl_behind, "BEHIND")
RECIPE(cl_before, "BEFORE")
RECIPE(cl_work, "WORK")
RECIPE(cl_broken, "terms=&")

/* Right outputs; a second launch then changes an input. */
static void cl_input(const struct lksi_call *call, const struct lksi_limits *dev,
                     struct lksi_recipe *r)
{
    struct lksi_launch *l = &r->launch[1];
    (void)dev;
    sabotage_recipe(call, r, "");
    r->n_launch = 2;
    l->source = "op/sabotage.cl";
    l->kernel = "spoil";
    l->arg[0] = LKSI_IN(0);
    l->n_arg = l->dims = 1;
    l->global[0] = l->local[0] = 1;
}

static const struct lksi_schedule schedules[] = {
    {"honest", never, cl_honest},
    {"swapped", never, cl_swapped},
    {"unfused", never, cl_unfused},
    {"tail", never, cl_tail},
    {"unnormalised", never, cl_unnormalised},
    {"unstable", never, cl_unstable},
    {"unwritten", never, cl_unwritten},
    {"behind", never, cl_behind},
    {"before", never, cl_before},
    {"input", never, cl_input},
    {"work", never, cl_work},
    {"odd", odd_rows, cl_honest},
    {"elsewhere", unless_nvidia, cl_honest},
    {"unreached", always, cl_honest},
    {NULL, NULL, NULL},
};

/* A kernel folder: the project's contracts, this test's kernels. */
static char *kernel_folder(void)
{
    char *folder = scratch_make();
    cr_assert(symlink(SOURCE_ROOT "/cl/contract", in_folder(folder, "contract")) == 0);
    cr_assert(symlink(SOURCE_ROOT "/tests/check/cl/op", in_folder(folder, "op")) == 0);
    return folder;
}

Test(sabotage, kernels)
{
    static const struct expected e[] = {
        {"honest", LKSI_CHECK_PASSED, LKSI_FAULT_NONE},
        {"swapped", LKSI_CHECK_FAILED, LKSI_FAULT_BITS},
        {"unfused", LKSI_CHECK_FAILED, LKSI_FAULT_BITS},
        {"tail", LKSI_CHECK_FAILED, LKSI_FAULT_BITS},
        {"unnormalised", LKSI_CHECK_FAILED, LKSI_FAULT_BITS},
        {"unstable", LKSI_CHECK_FAILED, LKSI_FAULT_RUNS},
        {"unwritten", LKSI_CHECK_FAILED, LKSI_FAULT_UNWRITTEN},
        {"behind", LKSI_CHECK_FAILED, LKSI_FAULT_GUARD},
        {"before", LKSI_CHECK_FAILED, LKSI_FAULT_GUARD},
        {"input", LKSI_CHECK_FAILED, LKSI_FAULT_INPUT},
        {"work", LKSI_CHECK_FAILED, LKSI_FAULT_GUARD},
        {"odd", LKSI_CHECK_PASSED, LKSI_FAULT_NONE},
        {"elsewhere", LKSI_CHECK_NOT_HERE, LKSI_FAULT_NONE},
        {"unreached", LKSI_CHECK_FAILED, LKSI_FAULT_UNREACHED},
        {"plain", LKSI_CHECK_PASSED, LKSI_FAULT_NONE},
    };
    char *folder = kernel_folder();
    struct lksi_dev *dev = open_device("cpu", folder);
    struct lksi_op op = dense_copy();
    struct lksi_check_options filters = {.seed = 1};
    size_t failed;
    op.schedules = schedules;
    struct rows rows = run(dev, &op, &filters, &failed);
    expect_rows(&rows, e, LKSI_COUNT(e));
    cr_expect(failed == 11, "%zu rows failed", failed);
    cr_expect(rows.row[11].declined > 0 && rows.row[11].cases > 0);
    lksi_dev_close(&dev);
    scratch_remove(folder);
}

Test(sabotage, broken_build_blames_one)
{
    static const struct lksi_schedule two[] = {
        {"broken", never, cl_broken}, {"honest", never, cl_honest}, {NULL, NULL, NULL}};
    static const struct expected e[] = {
        {"broken", LKSI_CHECK_FAILED, LKSI_FAULT_STATUS},
        {"honest", LKSI_CHECK_PASSED, LKSI_FAULT_NONE},
        {"plain", LKSI_CHECK_PASSED, LKSI_FAULT_NONE},
    };
    char *folder = kernel_folder();
    struct lksi_dev *dev = open_device("cpu", folder);
    struct lksi_op op = dense_copy();
    struct lksi_check_options filters = {.only_case = 3};
    op.schedules = two;
    struct rows rows = run(dev, &op, &filters, NULL);
    expect_rows(&rows, e, LKSI_COUNT(e));
    lksi_dev_close(&dev);
    scratch_remove(folder);
}

/* ---- the record of a failure ---- */

Test(sabotage, failure_can_be_repeated)
{
    struct lksi_dev *dev = open_device("ref", NULL);
    struct lksi_op op = dense_copy();
    struct lksi_check_options filters = {.seed = 5};
    struct lksi_str text = {0};
    op.ref = swapped;
    op.ref_parts = NULL;
    struct rows rows = run(dev, &op, &filters, NULL);
    const struct lksi_check_failure *f = &rows.row[0].failure;
    cr_assert(f->fault == LKSI_FAULT_BITS && f->located && f->diff.ulp > 0);
    cr_expect(f->diff.got != f->diff.want);
    lksi_check_failure_text(f, &text);
    cr_expect(strstr(text.text, "repeat: lockstep check --device 'ref' --op dense --schedule ref "
                                "--case ") != NULL &&
                  strstr(text.text, " --seed 5\n") != NULL &&
                  strstr(text.text, "ulp apart") != NULL,
              "%s", text.text);
    filters = (struct lksi_check_options){.seed = 5,
                                          .schedule = "ref",
                                          .only_case = 1 + f->case_index,
                                          .regime = lksi_regime_name(f->regime)};
    struct rows again = run(dev, &op, &filters, NULL);
    cr_assert(again.count == 1 && again.row[0].runs == 1);
    cr_expect(memcmp(&again.row[0].failure.diff, &f->diff, sizeof f->diff) == 0);
    free(text.text);
    lksi_dev_close(&dev);
}

Test(sabotage, filters_that_name_nothing)
{
    struct lksi_dev *dev = open_device("ref", NULL);
    struct rows rows = {0};
    struct lksi_check_options op = {.op = "denes"}, schedule = {.schedule = "clblats"},
                              regime = {.regime = "wild"};
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_check_run(dev, &op, collect, &rows, NULL), "denes");
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_check_run(dev, &schedule, collect, &rows, NULL), "clblats");
    EXPECT_FAIL(LKS_E_ARGUMENT, lksi_check_run(dev, &regime, collect, &rows, NULL), "wild");
    cr_expect(rows.count == 0);
    lksi_dev_close(&dev);
}

/* ---- contracts that break a rule ---- */

static void item_forgets(const void *const *in, void *const *out, const void *dims, U64 i)
{
    (void)dims;
    if (i != 2)
        ((F32 *)out[0])[i] = ((const F32 *)in[0])[i];
}

static void item_nan(const void *const *in, void *const *out, const void *dims, U64 i)
{
    (void)dims;
    ((F32 *)out[0])[i] = lks_sqrt(((const F32 *)in[0])[i]);
}

/* Reads a neighbour that working in place has already overwritten. */
static void item_in_place(const void *const *in, void *const *out, const void *dims, U64 i)
{
    (void)dims;
    ((F32 *)out[0])[i] = ((const F32 *)in[0])[i] + ((const F32 *)in[0])[i - (i > 0)];
}

static lks_status same_shape(struct lksi_call *call)
{
    call->out[0] = call->in[0];
    return LKS_OK;
}

static bool one_case(int index, bool long_run, struct lksi_call *call, void *attr)
{
    (void)long_run, (void)attr;
    call->n_in = 1;
    call->in[0] = lksi_desc_make(LKSI_F32, 1, (int64_t)33);
    return index == 0;
}

Test(sabotage, contracts)
{
    static const struct expected e = {"plain", LKSI_CHECK_FAILED, LKSI_FAULT_CONTRACT};
    static const struct expected none = {"plain", LKSI_CHECK_FAILED, LKSI_FAULT_UNREACHED};
    struct lksi_op op = {.name = "test",
                         .min_in = 1,
                         .max_in = 1,
                         .n_out = 1,
                         .infer = same_shape,
                         .test_case = one_case};
    const lksi_item_fn items[] = {item_forgets, item_nan, item_in_place};
    const struct lksi_check_options filters = {.seed = 1};
    struct lksi_dev *dev = open_device("ref", NULL);
    for (size_t i = 0; i < LKSI_COUNT(items); i++) {
        op.item = items[i];
        op.alias[0] = items[i] == item_in_place;
        struct rows rows = run(dev, &op, &filters, NULL);
        expect_rows(&rows, &e, 1);
    }
    op.test_case = NULL;
    struct rows rows = run(dev, &op, &filters, NULL);
    expect_rows(&rows, &none, 1);
    lksi_dev_close(&dev);
}
