/*
 * tuning.c - what a plan asks of tables of tuning: which of them concern the device, and which
 * entry a call. See tuning.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan/tuning.h"

/* Built-in entries serve batches up to this many times smaller or larger than their own: they were
 * not measured for the network at hand. */
#define NEAR_BATCH 2.0

/* An entry that concerns this device. */
struct known {
    const struct lksi_tuning_entry *e;
    const struct lksi_schedule *schedule;
    const char *source;
    double reach; /* largest ratio of batches */
    bool refused;
};

/* Entries are asked in the order of `known`: those of the file, then the library's own. */
struct lksi_tuning {
    struct lksi_dev *dev;
    struct lksi_tuning_file file, own;
    char *path;
    struct known *known;
    size_t n, cap, n_file;
    bool stopped;
};

/* ---- which entries concern the device ---- */

static bool matches(const char *pattern, const char *name)
{
    size_t n = strlen(pattern);
    if (n > 0 && pattern[n - 1] == '*')
        return strncmp(pattern, name, n - 1) == 0;
    return strcmp(pattern, name) == 0;
}

static const struct lksi_schedule *schedule_of(const struct lksi_tuning_entry *e)
{
    const struct lksi_op *op = lksi_op_find(e->op);
    const struct lksi_schedule *s;
    for (size_t i = 0; op != NULL && (s = lksi_op_schedule(op, i)) != NULL; i++)
        if (strcmp(s->name, e->schedule) == 0 && s->version == e->version)
            return s;
    return NULL;
}

static bool concerns(const struct lksi_tuning_table *table, const struct lksi_limits *l)
{
    return matches(table->device, l->name) && matches(table->driver, l->driver) &&
           matches(table->platform, l->platform);
}

/* Adds a table's entries; counts those whose operator or schedule is not there any more. */
static lks_status take_table(struct lksi_tuning *t, const struct lksi_tuning_table *table,
                             const char *source, double reach, size_t *stale)
{
    for (size_t k = 0; k < table->n; k++) {
        const struct lksi_tuning_entry *e = &table->entry[k];
        const struct lksi_schedule *s = schedule_of(e);
        *stale += s == NULL;
        if (s == NULL)
            continue;
        if (!lksi_grow(&t->known, &t->cap, t->n + 1, sizeof *t->known))
            return LKS_E_MEMORY;
        t->known[t->n++] = (struct known){e, s, source, reach, false};
    }
    return LKS_OK;
}

/*
 * The tables of this device and this contract. Bits are safe with entries of another contract too,
 * since each is held against this one; their times are not: another contract is other loops in the
 * kernels, and the order of tiles turns with what they keep in registers.
 */
static lks_status take(struct lksi_tuning *t, const struct lksi_tuning_file *f, const char *source,
                       double reach)
{
    const struct lksi_limits *l = lksi_dev_limits(t->dev);
    size_t others = 0, stale = 0;
    for (size_t i = 0; i < f->n; i++) {
        const struct lksi_tuning_table *table = &f->table[i];
        if (!concerns(table, l))
            others += table->n;
        else if (table->contract != LKS_CONTRACT_VERSION)
            stale += table->n;
        else if (take_table(t, table, source, reach, &stale) != LKS_OK)
            return LKS_E_MEMORY;
    }
    if (others > 0 && f != &t->own) /* of those, most are for others */
        lksi_log(LKS_LOG_INFO, "tuning, %s: %zu entries are for other devices or drivers", source,
                 others);
    if (stale > 0)
        lksi_log(f != &t->own ? LKS_LOG_WARNING : LKS_LOG_INFO,
                 "tuning, %s: %zu entries are passed over, since the contract or their schedules "
                 "changed; `lockstep tune` makes new ones", source, stale);
    return LKS_OK;
}

/* ---- reading ---- */

static lks_status read_file(struct lksi_tuning *t, const char *given)
{
    lks_status st;
    t->path = given != NULL ? lksi_strdup(given) : lksi_tuning_path(lksi_dev_limits(t->dev));
    if (t->path == NULL)
        return given != NULL ? LKS_E_MEMORY : LKS_OK;
    if (given == NULL && access(t->path, F_OK) != 0)
        return LKS_OK;
    st = lksi_tuning_read(&t->file, t->path);
    if (st == LKS_OK || given != NULL || st == LKS_E_MEMORY)
        return st;
    lksi_log(LKS_LOG_WARNING, "%s; going on without that tuning", lks_error_message());
    lksi_tuning_file_free(&t->file);
    return LKS_OK;
}

lks_status lksi_tuning_open(struct lksi_tuning **tuning, struct lksi_dev *dev,
                            const struct lksi_embedded *built_in)
{
    const char *given = lksi_dev_tuning(dev);
    struct lksi_tuning *t = NULL;
    lks_status st = LKS_OK;
    *tuning = NULL;
    if (lksi_dev_is_ref(dev) || (given != NULL && strcmp(given, "none") == 0))
        return LKS_OK;
    t = lksi_alloc(1, sizeof *t);
    if (t == NULL)
        return LKS_E_MEMORY;
    t->dev = dev;
    if (given == NULL || strcmp(given, "built-in") != 0) {
        LKSI_TRY(read_file(t, given));
        LKSI_TRY(take(t, &t->file, t->path, INFINITY));
    }
    t->n_file = t->n;
    for (; built_in->name != NULL; built_in++)
        LKSI_TRY(lksi_tuning_parse(&t->own, built_in->name, built_in->text));
    LKSI_TRY(take(t, &t->own, "built-in", NEAR_BATCH));
    *tuning = t;
    return LKS_OK;
fail:
    lksi_tuning_close(&t);
    return st;
}

void lksi_tuning_close(struct lksi_tuning **tuning)
{
    struct lksi_tuning *t = *tuning;
    if (t == NULL)
        return;
    lksi_tuning_file_free(&t->file);
    lksi_tuning_file_free(&t->own);
    free(t->path);
    free(t->known);
    free(t);
    *tuning = NULL;
}

/* ---- asking ---- */

/* 0: the entry is about another call; 1: about this one; else, about this one at another batch, how
 * far the batches are apart as a ratio. */
static double distance(const struct lksi_tuning_entry *e, const struct lksi_call *call,
                       const uint32_t *word, size_t n_word)
{
    int64_t mine = call->in[0].dim[0], its = e->in[0].dim[0];
    bool same = true;
    if (strcmp(e->op, call->op->name) != 0 || e->leaf != call->leaf || e->n_in != call->n_in ||
        e->n_word != n_word || (n_word > 0 && memcmp(e->word, word, n_word * sizeof *word) != 0))
        return 0;
    for (int i = 0; i < e->n_in; i++) {
        const struct lksi_desc *a = &e->in[i], *b = &call->in[i];
        if (a->rank != b->rank)
            return 0;
        for (int k = 0; k < a->rank; k++) {
            if (a->dim[k] == b->dim[k])
                continue;
            if (k > 0 || a->dim[k] != its || b->dim[k] != mine)
                return 0;
            same = false;
        }
    }
    return same ? 1 : mine > its ? (double)mine / (double)its : (double)its / (double)mine;
}

/* Finds the choices by their names; false if a name is not known for this call. */
static bool resolve(const struct known *k, const struct lksi_call *call,
                    const struct lksi_limits *dev, struct lksi_pick *pick)
{
    const struct lksi_tunable *t = k->schedule->tunables;
    memset(pick->tuned, 0, sizeof pick->tuned);
    for (int c = 0; c < k->e->n_choice; c++) {
        char text[LKSI_CHOICE_TEXT] = "";
        int which = 0, index = 1;
        while (t != NULL && t[which].name != NULL &&
               strcmp(t[which].name, k->e->choice[c].name) != 0)
            which++;
        if (t == NULL || t[which].name == NULL)
            return false;
        while (t[which].choice(call, dev, index, text) &&
               strcmp(text, k->e->choice[c].value) != 0)
            index++;
        if (strcmp(text, k->e->choice[c].value) != 0)
            return false;
        pick->tuned[which] = index;
    }
    return true;
}

bool lksi_tuning_find(struct lksi_tuning *t, const struct lksi_call *call, struct lksi_pick *pick)
{
    struct lksi_tuning_entry mine;
    double best = 0;
    if (t == NULL || t->stopped || t->n == 0 || call->n_in == 0 || call->in[0].rank == 0 ||
        lksi_tuning_entry_make(&mine, call) != LKS_OK)
        return false;
    for (size_t i = 0; i < t->n && (i != t->n_file || best == 0); i++) {
        struct known *k = &t->known[i];
        struct lksi_pick found = {k->schedule, {0}, k->source, i};
        double d = k->refused ? 0 : distance(k->e, call, mine.word, mine.n_word);
        if (d == 0 || d > k->reach || (best > 0 && d >= best) ||
            k->schedule->declines(call, lksi_dev_limits(t->dev)) != NULL)
            continue;
        if (resolve(k, call, lksi_dev_limits(t->dev), &found)) {
            best = d;
            *pick = found;
        } else if (d == 1) {
            lksi_log(LKS_LOG_WARNING, "tuning, %s: an entry for %s, schedule `%s`, names a choice "
                                      "that is not there any more, and is passed over",
                     k->source, call->op->name, k->schedule->name);
            k->refused = true;
        }
    }
    lksi_tuning_entry_free(&mine);
    return best > 0;
}

void lksi_tuning_refuse(struct lksi_tuning *t, const struct lksi_pick *pick)
{
    t->known[pick->entry].refused = true;
}

void lksi_tuning_stop(struct lksi_tuning *t)
{
    if (t != NULL)
        t->stopped = true;
}
