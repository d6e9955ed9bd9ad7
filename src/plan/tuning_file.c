/*
 * tuning_file.c - files of tuning: reading, writing, joining. See tuning.h.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <jansson.h>

#include "base/file.h"
#include "plan/tuning.h"

enum { FORMAT = 1, MAX_FILE = 16 << 20, MAX_WORDS = 256 };

void lksi_tuning_entry_free(struct lksi_tuning_entry *e)
{
    free(e->op);
    free(e->schedule);
    free(e->before);
    free(e->word);
    for (int i = 0; i < LKSI_MAX_TUNABLE; i++) {
        free(e->choice[i].name);
        free(e->choice[i].value);
    }
    memset(e, 0, sizeof *e);
}

static void table_free(struct lksi_tuning_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        lksi_tuning_entry_free(&t->entry[i]);
    free(t->entry);
    free(t->device);
    free(t->driver);
    free(t->platform);
}

void lksi_tuning_file_free(struct lksi_tuning_file *f)
{
    for (size_t i = 0; i < f->n; i++)
        table_free(&f->table[i]);
    free(f->table);
    memset(f, 0, sizeof *f);
}

/* ---- tables and entries ---- */

static lks_status table_of(struct lksi_tuning_file *f, const char *device, const char *driver,
                           const char *platform, int contract, struct lksi_tuning_table **table)
{
    struct lksi_tuning_table *t;
    for (size_t i = 0; i < f->n; i++) {
        t = &f->table[i];
        if (strcmp(t->device, device) == 0 && strcmp(t->driver, driver) == 0 &&
            strcmp(t->platform, platform) == 0 && t->contract == contract) {
            *table = t;
            return LKS_OK;
        }
    }
    if (!lksi_grow(&f->table, &f->cap, f->n + 1, sizeof *f->table))
        return LKS_E_MEMORY;
    t = &f->table[f->n];
    *t = (struct lksi_tuning_table){lksi_strdup(device), lksi_strdup(driver), lksi_strdup(platform),
                                    contract};
    if (t->device == NULL || t->driver == NULL || t->platform == NULL) {
        table_free(t);
        return LKS_E_MEMORY;
    }
    f->n++;
    *table = t;
    return LKS_OK;
}

lks_status lksi_tuning_table_of(struct lksi_tuning_file *f, const struct lksi_limits *dev,
                                struct lksi_tuning_table **table)
{
    return table_of(f, dev->name, dev->driver, dev->platform, LKS_CONTRACT_VERSION, table);
}

lks_status lksi_tuning_entry_make(struct lksi_tuning_entry *e, const struct lksi_call *call)
{
    size_t bytes = call->op->attr_size;
    memset(e, 0, sizeof *e);
    e->op = lksi_strdup(call->op->name);
    e->word = lksi_alloc(bytes / 4 + 1, sizeof *e->word);
    if (e->op == NULL || e->word == NULL) {
        lksi_tuning_entry_free(e);
        return LKS_E_MEMORY;
    }
    if (bytes > 0)
        memcpy(e->word, call->attr, bytes);
    e->n_word = (bytes + 3) / 4;
    while (e->n_word > 0 && e->word[e->n_word - 1] == 0)
        e->n_word--;
    e->leaf = call->leaf;
    e->n_in = call->n_in;
    memcpy(e->in, call->in, sizeof e->in);
    return LKS_OK;
}

static bool same_call(const struct lksi_tuning_entry *a, const struct lksi_tuning_entry *b)
{
    if (strcmp(a->op, b->op) != 0 || a->leaf != b->leaf || a->n_in != b->n_in ||
        a->n_word != b->n_word ||
        (a->n_word > 0 && memcmp(a->word, b->word, a->n_word * sizeof *a->word) != 0))
        return false;
    for (int i = 0; i < a->n_in; i++)
        if (a->in[i].rank != b->in[i].rank ||
            memcmp(a->in[i].dim, b->in[i].dim, (size_t)a->in[i].rank * sizeof a->in[i].dim[0]) != 0)
            return false;
    return true;
}

lks_status lksi_tuning_put(struct lksi_tuning_table *t, struct lksi_tuning_entry *e)
{
    for (size_t i = 0; i < t->n; i++)
        if (same_call(&t->entry[i], e)) {
            lksi_tuning_entry_free(&t->entry[i]);
            t->entry[i] = *e;
            return LKS_OK;
        }
    if (!lksi_grow(&t->entry, &t->cap, t->n + 1, sizeof *t->entry)) {
        lksi_tuning_entry_free(e);
        return LKS_E_MEMORY;
    }
    t->entry[t->n++] = *e;
    return LKS_OK;
}

void lksi_tuning_drop(struct lksi_tuning_table *t, const struct lksi_tuning_entry *e)
{
    for (size_t i = 0; i < t->n; i++)
        if (same_call(&t->entry[i], e)) {
            lksi_tuning_entry_free(&t->entry[i]);
            memmove(&t->entry[i], &t->entry[i + 1], (t->n - i - 1) * sizeof *t->entry);
            t->n--;
            return;
        }
}

static lks_status copy_entry(struct lksi_tuning_entry *to, const struct lksi_tuning_entry *from)
{
    bool good = true;
    *to = *from;
    to->op = lksi_strdup(from->op);
    to->schedule = lksi_strdup(from->schedule);
    to->before = lksi_strdup(from->before);
    to->word = lksi_alloc(from->n_word + 1, sizeof *to->word);
    if (to->word != NULL && from->n_word > 0)
        memcpy(to->word, from->word, from->n_word * sizeof *to->word);
    for (int i = 0; i < from->n_choice; i++) {
        to->choice[i].name = lksi_strdup(from->choice[i].name);
        to->choice[i].value = lksi_strdup(from->choice[i].value);
        good = good && to->choice[i].name != NULL && to->choice[i].value != NULL;
    }
    if (good && to->op != NULL && to->schedule != NULL && to->before != NULL && to->word != NULL)
        return LKS_OK;
    lksi_tuning_entry_free(to);
    return LKS_E_MEMORY;
}

lks_status lksi_tuning_merge(struct lksi_tuning_file *to, const struct lksi_tuning_file *from)
{
    for (size_t i = 0; i < from->n; i++) {
        const struct lksi_tuning_table *t = &from->table[i];
        struct lksi_tuning_table *into;
        lks_status st = table_of(to, t->device, t->driver, t->platform, t->contract, &into);
        for (size_t k = 0; st == LKS_OK && k < t->n; k++) {
            struct lksi_tuning_entry copy;
            st = copy_entry(&copy, &t->entry[k]);
            if (st == LKS_OK)
                st = lksi_tuning_put(into, &copy);
        }
        if (st != LKS_OK)
            return st;
    }
    return LKS_OK;
}

/* ---- reading ---- */

/* Where a reader stands; every complaint names it. */
struct place {
    const char *name;
    size_t line;
};

static lks_status bad(const struct place *at, const char *what)
{
    return lksi_fail(LKS_E_INPUT,
                     "%s:%zu: %s; remove the line, or the file, and let `lockstep tune` write it "
                     "anew",
                     at->name, at->line, what);
}

static const char *text_at(const json_t *j, const char *key)
{
    const char *text = json_string_value(json_object_get(j, key));
    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* A whole number of `low` to `high`. */
static bool number_at(const json_t *j, int64_t low, int64_t high, int64_t *value)
{
    if (!json_is_integer(j) || json_integer_value(j) < low || json_integer_value(j) > high)
        return false;
    *value = json_integer_value(j);
    return true;
}

static bool read_shapes(const json_t *all, struct lksi_tuning_entry *e)
{
    if (!json_is_array(all) || json_array_size(all) > LKSI_MAX_IN)
        return false;
    e->n_in = (int)json_array_size(all);
    for (int i = 0; i < e->n_in; i++) {
        const json_t *one = json_array_get(all, (size_t)i);
        if (!json_is_array(one) || json_array_size(one) > LKSI_MAX_RANK)
            return false;
        e->in[i].rank = (int)json_array_size(one);
        for (int k = 0; k < e->in[i].rank; k++)
            if (!number_at(json_array_get(one, (size_t)k), 1, INT64_MAX, &e->in[i].dim[k]))
                return false;
    }
    return true;
}

static bool read_words(const json_t *all, struct lksi_tuning_entry *e)
{
    int64_t value;
    if (!json_is_array(all) || json_array_size(all) > MAX_WORDS)
        return false;
    e->n_word = json_array_size(all);
    e->word = lksi_alloc(e->n_word + 1, sizeof *e->word);
    for (size_t i = 0; e->word != NULL && i < e->n_word; i++) {
        if (!number_at(json_array_get(all, i), 0, UINT32_MAX, &value))
            return false;
        e->word[i] = (uint32_t)value;
    }
    return e->word != NULL;
}

static bool read_choices(json_t *all, struct lksi_tuning_entry *e)
{
    const char *key;
    json_t *value;
    if (!json_is_object(all) || json_object_size(all) > LKSI_MAX_TUNABLE)
        return false;
    json_object_foreach(all, key, value)
    {
        if (!json_is_string(value))
            return false;
        e->choice[e->n_choice].name = lksi_strdup(key);
        e->choice[e->n_choice].value = lksi_strdup(json_string_value(value));
        if (e->choice[e->n_choice].name == NULL || e->choice[e->n_choice++].value == NULL)
            return false;
    }
    return true;
}

static lks_status read_entry(const struct place *at, json_t *j, struct lksi_tuning_entry *e)
{
    const char *op = text_at(j, "op"), *schedule = text_at(j, "schedule"),
               *before = text_at(j, "before");
    const char *wrong = NULL;
    int64_t leaf = 0, version = 0;
    if (op == NULL || schedule == NULL || before == NULL)
        wrong = "an entry needs the texts `op`, `schedule` and `before`";
    else if (!read_shapes(json_object_get(j, "in"), e))
        wrong = "`in` is no list of shapes";
    else if (!read_words(json_object_get(j, "attr"), e))
        wrong = "`attr` is no list of numbers below 2^32";
    else if (!read_choices(json_object_get(j, "choices"), e))
        wrong = "`choices` names no choices";
    else if (!number_at(json_object_get(j, "leaf"), 1, UINT32_MAX, &leaf) ||
             !number_at(json_object_get(j, "version"), 0, 1000000, &version))
        wrong = "`leaf` or `version` is no whole number";
    else if (!json_is_number(json_object_get(j, "ms")) ||
             !json_is_number(json_object_get(j, "before_ms")))
        wrong = "`ms` and `before_ms` are no times";
    if (wrong != NULL)
        return bad(at, wrong);
    e->leaf = (uint32_t)leaf;
    e->version = (int)version;
    e->ms = json_number_value(json_object_get(j, "ms"));
    e->before_ms = json_number_value(json_object_get(j, "before_ms"));
    e->op = lksi_strdup(op);
    e->schedule = lksi_strdup(schedule);
    e->before = lksi_strdup(before);
    return e->op != NULL && e->schedule != NULL && e->before != NULL ? LKS_OK : LKS_E_MEMORY;
}

static lks_status read_device(const struct place *at, const json_t *j, struct lksi_tuning_file *f,
                              struct lksi_tuning_table **table)
{
    const char *device = text_at(j, "device"), *driver = text_at(j, "driver"),
               *platform = text_at(j, "platform");
    int64_t contract;
    if (driver == NULL || platform == NULL)
        return bad(at, "a device needs the texts `driver` and `platform`");
    if (!number_at(json_object_get(j, "contract"), 0, 1000000, &contract))
        return bad(at, "`contract` is no whole number");
    return table_of(f, device, driver, platform, (int)contract, table);
}

static lks_status read_line(const struct place *at, json_t *j, struct lksi_tuning_file *f,
                            size_t *table, bool *begun)
{
    struct lksi_tuning_table *t;
    struct lksi_tuning_entry e = {0};
    lks_status st;
    int64_t format;
    if (json_object_get(j, "lockstep_tuning") != NULL) {
        if (!number_at(json_object_get(j, "lockstep_tuning"), FORMAT, FORMAT, &format))
            return bad(at, "this version of lockstep reads format 1 alone");
        *begun = true;
        return LKS_OK;
    }
    if (!*begun)
        return bad(at, "the first line is not {\"lockstep_tuning\": 1}");
    if (text_at(j, "device") != NULL) {
        st = read_device(at, j, f, &t);
        if (st == LKS_OK)
            *table = (size_t)(t - f->table);
        return st;
    }
    if (*table == SIZE_MAX)
        return bad(at, "an entry stands before the first device");
    st = read_entry(at, j, &e);
    if (st == LKS_OK)
        return lksi_tuning_put(&f->table[*table], &e);
    lksi_tuning_entry_free(&e);
    return st;
}

lks_status lksi_tuning_parse(struct lksi_tuning_file *f, const char *name, const char *text)
{
    struct place at = {name, 0};
    size_t table = SIZE_MAX;
    bool begun = false;
    lks_status st = LKS_OK;
    for (const char *p = text; *p != '\0' && st == LKS_OK;) {
        size_t n = strcspn(p, "\n");
        at.line++;
        if (strspn(p, " \t\r") < n) {
            json_error_t why;
            json_t *j = json_loadb(p, n, JSON_REJECT_DUPLICATES, &why);
            if (json_is_object(j))
                st = read_line(&at, j, f, &table, &begun);
            else
                st = bad(&at, j == NULL ? why.text : "no JSON object");
            json_decref(j);
        }
        p += n + (p[n] == '\n');
    }
    return st;
}

lks_status lksi_tuning_read(struct lksi_tuning_file *f, const char *path)
{
    struct lksi_bytes file = {0};
    struct place at = {path, 1};
    lks_status st = lksi_file_read(path, MAX_FILE, &file);
    if (st != LKS_OK)
        return st;
    st = memchr(file.data, '\0', file.size) != NULL
             ? bad(&at, "it is no text")
             : lksi_tuning_parse(f, path, (const char *)file.data);
    free(file.data);
    return st;
}

/* ---- writing ---- */

static bool add_line(struct lksi_str *s, json_t *j)
{
    char *text = j != NULL ? json_dumps(j, JSON_REAL_PRECISION(5)) : NULL;
    if (text != NULL)
        lksi_str_add(s, "%s\n", text);
    free(text);
    json_decref(j);
    return text != NULL;
}

static json_t *entry_json(const struct lksi_tuning_entry *e)
{
    json_t *in = json_array(), *words = json_array(), *choices = json_object();
    for (int i = 0; i < e->n_in; i++) {
        json_t *one = json_array();
        for (int k = 0; k < e->in[i].rank; k++)
            json_array_append_new(one, json_integer(e->in[i].dim[k]));
        json_array_append_new(in, one);
    }
    for (size_t i = 0; i < e->n_word; i++)
        json_array_append_new(words, json_integer(e->word[i]));
    for (int i = 0; i < e->n_choice; i++)
        json_object_set_new(choices, e->choice[i].name, json_string(e->choice[i].value));
    return json_pack("{s:s, s:o, s:I, s:o, s:s, s:i, s:o, s:f, s:s, s:f}", "op", e->op, "in", in,
                     "leaf", (json_int_t)e->leaf, "attr", words, "schedule", e->schedule, "version",
                     e->version, "choices", choices, "ms", e->ms, "before", e->before, "before_ms",
                     e->before_ms);
}

static lks_status write_file(const struct lksi_tuning_file *f, const char *path)
{
    struct lksi_str s = {0};
    lks_status st = LKS_OK;
    bool good = add_line(&s, json_pack("{s:i}", "lockstep_tuning", FORMAT));
    for (size_t i = 0; i < f->n && good; i++) {
        const struct lksi_tuning_table *t = &f->table[i];
        good = add_line(&s, json_pack("{s:s, s:s, s:s, s:i}", "device", t->device, "driver",
                                      t->driver, "platform", t->platform, "contract", t->contract));
        for (size_t k = 0; k < t->n && good; k++)
            good = add_line(&s, entry_json(&t->entry[k]));
    }
    st = good && !s.failed ? lksi_file_write_atomic(path, s.text, s.length)
                           : lksi_fail(LKS_E_MEMORY, "no memory to write %s", path);
    free(s.text);
    return st;
}

/* A file beside `path` whose lock says who may change that; it stays. */
static lks_status lock(const char *path, int *fd)
{
    struct lksi_str s = {0};
    char *dir = lksi_path_dirname(path);
    lks_status st = dir != NULL ? lksi_make_dirs(dir) : LKS_E_MEMORY;
    lksi_str_add(&s, "%s.lock", path);
    if (st == LKS_OK && s.failed)
        st = LKS_E_MEMORY;
    if (st == LKS_OK) {
        *fd = open(s.text, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (*fd < 0 || flock(*fd, LOCK_EX) != 0)
            st = lksi_fail(LKS_E_IO, "%s cannot be locked: %s; give another file", s.text,
                           strerror(errno));
        if (st != LKS_OK && *fd >= 0)
            close(*fd);
    }
    free(s.text);
    free(dir);
    return st;
}

lks_status lksi_tuning_edit(const char *path,
                            lks_status (*edit)(void *user, struct lksi_tuning_file *f), void *user)
{
    struct lksi_tuning_file f = {0};
    int fd = -1;
    lks_status st = lock(path, &fd);
    if (st != LKS_OK)
        return st;
    if (access(path, F_OK) == 0)
        st = lksi_tuning_read(&f, path);
    if (st == LKS_OK)
        st = edit(user, &f);
    if (st == LKS_OK)
        st = write_file(&f, path);
    lksi_tuning_file_free(&f);
    close(fd);
    return st;
}

char *lksi_tuning_path(const struct lksi_limits *dev)
{
    struct lksi_str s = {0};
    const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    const char *const part[] = {dev->name, "-", dev->driver};
    if (base != NULL && base[0] == '/')
        lksi_str_add(&s, "%s/lockstep/tuning/", base);
    else if (home != NULL && home[0] == '/')
        lksi_str_add(&s, "%s/.config/lockstep/tuning/", home);
    else
        return NULL;
    for (size_t i = 0; i < LKSI_COUNT(part); i++)
        for (const char *c = part[i]; *c != '\0'; c++)
            lksi_str_add(&s, "%c", isalnum((unsigned char)*c) || *c == '.' ? *c : '-');
    lksi_str_add(&s, ".jsonl");
    if (!s.failed)
        return s.text;
    free(s.text);
    return NULL;
}
