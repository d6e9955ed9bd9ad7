/*
 * test_tuning.c - the tables of tuning that the library brings: every entry means something today,
 * and which entry serves a call when several could.
 */
#include "../rt/rt_help.h"
#include "plan/tuning.h"

/* ---- the tables of share/tuning ---- */

/* As such devices describe themselves; what schedules ask of a device is all that matters. */
static const struct lksi_limits h200 = {
    .type = LKSI_DEV_GPU,
    .platform = "NVIDIA CUDA",
    .name = "NVIDIA H200",
    .vendor = "NVIDIA Corporation",
    .driver = "580.159.04",
    .version = "OpenCL 3.0 CUDA",
    .vendor_id = 0x10de,
    .compute_units = 132,
    .memory = UINT64_C(150000000000),
    .max_alloc = UINT64_C(37500000000),
    .local_memory = 49152,
    .max_group = 1024,
    .max_item = {1024, 1024, 64},
    .base_align = 512,
    .native_divsqrt = true,
    .has_fma = true,
    .has_denorm = true,
};

static const struct lksi_schedule *find_schedule(const struct lksi_tuning_entry *e)
{
    const struct lksi_op *op = lksi_op_find(e->op);
    const struct lksi_schedule *s;
    cr_assert(op != NULL, "operator `%s` is not there", e->op);
    for (size_t i = 0; (s = lksi_op_schedule(op, i)) != NULL; i++)
        if (strcmp(s->name, e->schedule) == 0)
            return s;
    cr_assert_fail("%s has no schedule `%s`", e->op, e->schedule);
    return NULL;
}

static bool knows_choice(const struct lksi_schedule *s, const struct lksi_call *call,
                         const struct lksi_limits *dev, const char *name, const char *value)
{
    char text[LKSI_CHOICE_TEXT];
    for (int k = 0; s->tunables != NULL && s->tunables[k].name != NULL; k++)
        for (int i = 1; strcmp(s->tunables[k].name, name) == 0 &&
                        s->tunables[k].choice(call, dev, i, text); i++)
            if (strcmp(text, value) == 0)
                return true;
    return false;
}

/* The entry is for a call that the operator takes, a schedule that serves it, choices it has. */
static void check_entry(const char *table, const struct lksi_tuning_entry *e,
                        const struct lksi_limits *dev)
{
    const struct lksi_schedule *s = find_schedule(e);
    const struct lksi_op *op = lksi_op_find(e->op);
    struct lksi_desc in[LKSI_MAX_IN];
    struct lksi_call call;
    cr_assert(s->version == e->version, "%s: %s `%s` is at version %d, the entry at %d", table,
              e->op, s->name, s->version, e->version);
    cr_assert(4 * e->n_word <= op->attr_size + 3, "%s: %s has fewer attributes", table, e->op);
    char *attr = calloc(1, op->attr_size + 4);
    if (e->n_word > 0)
        memcpy(attr, e->word, 4 * e->n_word);
    memcpy(in, e->in, sizeof in);
    EXPECT_OK(lksi_call_make(&call, op, attr, e->leaf, e->n_in, in));
    const char *why = s->declines(&call, dev);
    cr_assert(why == NULL, "%s: %s `%s` declines: %s", table, e->op, s->name, why);
    for (int c = 0; c < e->n_choice; c++)
        cr_assert(knows_choice(s, &call, dev, e->choice[c].name, e->choice[c].value),
                  "%s: %s `%s` has no choice `%s` of `%s`", table, e->op, s->name,
                  e->choice[c].value, e->choice[c].name);
    free(attr);
}

Test(tuning, every_built_in_entry_means_something)
{
    size_t tables = 0;
    for (const struct lksi_embedded *f = lksi_embedded_tuning; f->name != NULL; f++) {
        struct lksi_tuning_file file = {0};
        EXPECT_OK(lksi_tuning_parse(&file, f->name, f->text));
        for (size_t i = 0; i < file.n; i++) {
            const struct lksi_tuning_table *t = &file.table[i];
            cr_assert(strcmp(t->device, h200.name) == 0, "%s: nobody knows `%s` here: describe it",
                      f->name, t->device);
            cr_assert(t->contract <= LKS_CONTRACT_VERSION);
            /* A table of a contract before waits for its device. */
            for (size_t k = 0; t->contract == LKS_CONTRACT_VERSION && k < t->n; k++)
                check_entry(f->name, &t->entry[k], &h200);
            tables++;
        }
        lksi_tuning_file_free(&file);
    }
    cr_assert(tables > 0);
}

/* ---- which entry serves ---- */

#define TILE_A "6 rows x 2 of 16 lanes"
#define TILE_B "8 rows x 2 of 16 lanes"
#define TILE_C "12 rows x 1 of 16 lanes"
#define TEXT_OF(x)  #x
#define TEXT(macro) TEXT_OF(macro)
#define NOW         TEXT(LKS_CONTRACT_VERSION)
#define HEAD        "{\"lockstep_tuning\": 1}\n"

/* A table for the devices that begin with `device`. */
#define DEVICE(device, contract)                                                                   \
    "{\"device\": \"" device "\", \"driver\": \"*\", \"platform\": \"*\", \"contract\": "          \
    contract "}\n"
/* An entry for dense [batch,64] -> [batch,24]. */
#define ENTRY(batch, version, tile)                                                                \
    "{\"op\": \"dense\", \"in\": [[" batch ",64],[24,64],[24]], \"leaf\": 8, \"attr\": [], "       \
    "\"schedule\": \"cpu\", \"version\": " version ", \"choices\": {\"tile\": \"" tile "\"}, "     \
    "\"ms\": 1, \"before\": \"cpu\", \"before_ms\": 2}\n"

static char *folder;

static void open_table(struct lksi_dev **dev, struct lksi_tuning **t, const char *named,
                       const char *file, const char *built_in)
{
    const struct lksi_embedded tables[] = {{"table", built_in}, {NULL, NULL}};
    const char *path = NULL;
    if (file != NULL) {
        path = in_folder(folder, "file");
        FILE *f = fopen(path, "w");
        cr_assert(f != NULL && fputs(file, f) >= 0 && fclose(f) == 0);
    }
    capture_log();
    OPEN_CPU(*dev, .tuning = named != NULL ? named : path);
    EXPECT_OK(lksi_tuning_open(t, *dev, tables));
}

/* The tile found for the batch; "none". */
static const char *found(struct lksi_tuning *t, struct lksi_dev *dev, int64_t batch,
                         const char **source)
{
    static char text[LKSI_CHOICE_TEXT];
    const struct lksi_desc in[] = {lksi_desc_make(LKSI_F32, 2, batch, (int64_t)64),
                                   lksi_desc_make(LKSI_F32, 2, (int64_t)24, (int64_t)64),
                                   lksi_desc_make(LKSI_F32, 1, (int64_t)24)};
    const struct lksi_op *op = lksi_op_find("dense");
    struct lksi_pick pick;
    struct lksi_call call;
    char attr[64] = {0};
    EXPECT_OK(lksi_call_make(&call, op, attr, 8, 3, in));
    *source = "";
    if (!lksi_tuning_find(t, &call, &pick))
        return "none";
    *source = pick.source;
    cr_assert(pick.schedule->tunables[0].choice(&call, lksi_dev_limits(dev), pick.tuned[0], text));
    return text;
}

static void expect_found(const char *named, const char *file, const char *built_in, int64_t batch,
                         const char *tile, const char *source)
{
    struct lksi_dev *dev;
    struct lksi_tuning *t;
    const char *from;
    folder = scratch_make();
    open_table(&dev, &t, named, file, built_in);
    const char *got = found(t, dev, batch, &from);
    cr_expect(strcmp(got, tile) == 0, "batch %lld: %s, not %s", (long long)batch, got, tile);
    cr_expect(strstr(from, source) != NULL, "from %s, not from %s", from, source);
    lksi_tuning_close(&t);
    lksi_dev_close(&dev);
    scratch_remove(folder);
}

Test(tuning, the_file_comes_before_the_built_in)
{
    static const char mine[] = HEAD DEVICE("*", NOW) ENTRY("20", "0", TILE_A);
    static const char own[] = HEAD DEVICE("*", NOW) ENTRY("20", "0", TILE_B)
        ENTRY("640", "0", TILE_C);
    static const char other[] = HEAD DEVICE("another", NOW) ENTRY("20", "0", TILE_A);
    expect_found(NULL, mine, own, 20, TILE_A, "file");
    expect_found(NULL, mine, own, 640, TILE_A, "file"); /* though the own table has this batch */
    expect_found(NULL, other, own, 20, TILE_B, "built-in");
    expect_found("built-in", NULL, own, 20, TILE_B, "built-in");
    expect_found("none", NULL, own, 20, "none", "");
    expect_found("built-in", NULL, other, 20, "none", "");
}

Test(tuning, built_in_entries_stay_near_their_batch)
{
    static const char own[] = HEAD DEVICE("*", NOW) ENTRY("20", "0", TILE_B);
    expect_found("built-in", NULL, own, 40, TILE_B, "built-in");
    expect_found("built-in", NULL, own, 10, TILE_B, "built-in");
    expect_found("built-in", NULL, own, 41, "none", "");
    expect_found("built-in", NULL, own, 9, "none", "");
    expect_found(NULL, own, HEAD, 4000, TILE_B, "file");
}

/* Times were taken with the loops of one contract. */
Test(tuning, contracts)
{
    static const char other[] = HEAD DEVICE("*", "0") ENTRY("20", "0", TILE_A);
    static const char both[] = HEAD DEVICE("*", "999999") ENTRY("20", "0", TILE_A)
        DEVICE("*", NOW) ENTRY("20", "0", TILE_B);
    expect_found("built-in", NULL, both, 20, TILE_B, "built-in");
    expect_found(NULL, both, HEAD, 20, TILE_B, "file");
    cr_expect(count_log("1 entries are passed over, since the contract") == 1);
    expect_found(NULL, other, both, 20, TILE_B, "built-in");
    expect_found("built-in", NULL, other, 20, "none", "");
}

Test(tuning, what_changed_is_passed_over_with_a_warning)
{
    static const char schedule[] = HEAD DEVICE("*", NOW) ENTRY("20", "77", TILE_A);
    static const char choice[] = HEAD DEVICE("*", NOW) ENTRY("20", "0", "9 rows");
    expect_found("built-in", NULL, schedule, 20, "none", "");
    cr_expect(count_log("1 entries are passed over, since the contract or their schedules") == 1);
    expect_found("built-in", NULL, choice, 20, "none", "");
    cr_expect(count_log("names a choice that is not there any more") == 1);
    expect_found(NULL, choice, HEAD DEVICE("*", NOW) ENTRY("20", "0", TILE_B), 20, TILE_B,
                 "built-in");
}

Test(tuning, a_refused_entry_makes_room)
{
    static const char mine[] = HEAD DEVICE("*", NOW) ENTRY("20", "0", TILE_A);
    static const char own[] = HEAD DEVICE("*", NOW) ENTRY("20", "0", TILE_B);
    struct lksi_dev *dev;
    struct lksi_tuning *t;
    const char *from;
    folder = scratch_make();
    open_table(&dev, &t, NULL, mine, own);
    lksi_tuning_refuse(t, &(struct lksi_pick){.entry = 0});
    cr_expect(strcmp(found(t, dev, 20, &from), TILE_B) == 0);
    lksi_tuning_refuse(t, &(struct lksi_pick){.entry = 1});
    cr_expect(strcmp(found(t, dev, 20, &from), "none") == 0);
    lksi_tuning_close(&t);
    lksi_dev_close(&dev);
    scratch_remove(folder);
}
