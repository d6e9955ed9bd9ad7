/*
 * history.c - steps.csv and metrics.csv. Nine digits give every float back exactly.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "history.h"

enum { FILE_LIMIT = 1 << 30 };

static void add_steps_head(const struct form *f, struct lksi_str *s)
{
    lksi_str_add(s, "step,samples");
    for (size_t k = 0; k < f->n_loss; k++)
        lksi_str_add(s, ",%s", f->loss[k]);
    lksi_str_add(s, "%s\n", f->positions > 0 ? ",hits" : "");
}

static void add_metrics_head(const struct form *f, struct lksi_str *s)
{
    static const char *const part[] = {"train", "test"};
    lksi_str_add(s, "epoch,steps");
    for (size_t p = 0; p < LKSI_COUNT(part); p++) {
        for (size_t k = 0; k < f->n_loss; k++)
            lksi_str_add(s, ",%s_%s", part[p], f->loss[k]);
        if (f->positions > 0)
            lksi_str_add(s, ",%s_accuracy", part[p]);
    }
    lksi_str_add(s, "\n");
}

void history_free(struct history *h)
{
    free(h->step);
    free(h->epoch);
    *h = (struct history){0};
}

lks_status history_add_step(struct history *h, const struct lks_step_info *info)
{
    if (!lksi_grow(&h->step, &h->cap_step, h->n_step + 1, sizeof *h->step))
        return LKS_E_MEMORY;
    struct step_row *row = &h->step[h->n_step++];
    *row = (struct step_row){.samples = info->samples, .hits = info->hits};
    memcpy(row->loss, info->losses, sizeof row->loss);
    return LKS_OK;
}

lks_status history_add_epoch(struct history *h, const struct lks_epoch_info *info)
{
    if (!lksi_grow(&h->epoch, &h->cap_epoch, h->n_epoch + 1, sizeof *h->epoch))
        return LKS_E_MEMORY;
    h->epoch[h->n_epoch++] = *info;
    return LKS_OK;
}

static lks_status write_text(const char *path, struct lksi_str *text)
{
    lks_status st =
        text->failed ? LKS_E_MEMORY : lksi_file_write_atomic(path, text->text, text->length);
    free(text->text);
    return st;
}

lks_status history_write_steps(const struct history *h, const char *path)
{
    struct lksi_str s = {0};
    add_steps_head(&h->form, &s);
    for (size_t i = 0; i < h->n_step; i++) {
        lksi_str_add(&s, "%zu,%" PRIu32, i + 1, h->step[i].samples);
        for (size_t k = 0; k < h->form.n_loss; k++)
            lksi_str_add(&s, ",%.9g", (double)h->step[i].loss[k]);
        if (h->form.positions > 0)
            lksi_str_add(&s, ",%" PRIu32, h->step[i].hits);
        lksi_str_add(&s, "\n");
    }
    return write_text(path, &s);
}

/* Losses and accuracy, in training or test; empty fields without test data. */
static void add_numbers(const struct form *f, const double *losses, double accuracy,
                        struct lksi_str *s)
{
    bool none = isnan(losses[0]);
    for (size_t k = 0; k < f->n_loss; k++) {
        lksi_str_add(s, ",");
        if (!none)
            lksi_str_add(s, "%.9g", losses[k]);
    }
    if (f->positions > 0)
        lksi_str_add(s, ",");
    if (f->positions > 0 && !none)
        lksi_str_add(s, "%.9g", accuracy);
}

lks_status history_write_metrics(const struct history *h, const char *path)
{
    struct lksi_str s = {0};
    add_metrics_head(&h->form, &s);
    for (size_t i = 0; i < h->n_epoch; i++) {
        const struct lks_epoch_info *e = &h->epoch[i];
        lksi_str_add(&s, "%" PRIu32 ",%" PRIu64, e->epoch + 1, e->steps);
        add_numbers(&h->form, e->train_losses, e->train_accuracy, &s);
        add_numbers(&h->form, e->test_losses, e->test_accuracy, &s);
        lksi_str_add(&s, "\n");
    }
    return write_text(path, &s);
}

/* A file cut into lines; `line` counts from 1. */
struct reader {
    const char *path;
    struct lksi_bytes bytes;
    char *next;
    int line;
};

static lks_status fail_line(const struct reader *r)
{
    return lksi_fail(LKS_E_INPUT,
                     "%s:%d: damaged, so the run cannot be resumed; bring the file back, or start "
                     "anew with --overwrite",
                     r->path, r->line);
}

/* Frees `head`, the first line of the file as it must be. */
static lks_status reader_open(struct reader *r, const char *path, struct lksi_str *head)
{
    lks_status st = head->failed ? LKS_E_MEMORY : lksi_file_read(path, FILE_LIMIT, &r->bytes);
    if (st == LKS_OK) {
        r->path = path;
        r->next = (char *)r->bytes.data;
        r->line = 1;
        if (strncmp(r->next, head->text, head->length) != 0)
            st = fail_line(r);
        else
            r->next += head->length;
    }
    free(head->text);
    return st;
}

/* The next line without its newline, or NULL at the end. A last line without newline is damage,
 * and comes back as a text that no row fits. */
static char *reader_line(struct reader *r)
{
    char *line = r->next, *end = strchr(line, '\n');
    if (*line == '\0')
        return NULL;
    r->line++;
    if (end == NULL)
        return (char *)"";
    *end = '\0';
    r->next = end + 1;
    return line;
}

/* A comma and a number, behind which *at points then. */
static bool take_number(char **at, double *out)
{
    char *end;
    if (**at != ',' || (*at)[1] == ',' || (*at)[1] == '\0')
        return false;
    *out = strtod(*at + 1, &end);
    if (end == *at + 1)
        return false;
    *at = end;
    return true;
}

static bool parse_step(const struct form *f, char *line, size_t step, struct lks_step_info *row)
{
    uint64_t number;
    double v;
    int used = 0;
    if (sscanf(line, "%" SCNu64 ",%" SCNu32 "%n", &number, &row->samples, &used) != 2 ||
        number != step)
        return false;
    line += used;
    for (size_t k = 0; k < f->n_loss; k++) {
        if (!take_number(&line, &v))
            return false;
        row->losses[k] = (float)v;
    }
    used = 0;
    if (f->positions > 0 && sscanf(line, ",%" SCNu32 "%n", &row->hits, &used) != 1)
        return false;
    return line[used] == '\0';
}

static lks_status read_steps(struct history *h, const char *path, uint64_t steps)
{
    struct reader r = {0};
    struct lksi_str head = {0};
    lks_status st;
    char *line;
    add_steps_head(&h->form, &head);
    LKSI_TRY(reader_open(&r, path, &head));
    while (h->n_step < steps && (line = reader_line(&r)) != NULL) {
        struct lks_step_info row = {0};
        if (!parse_step(&h->form, line, h->n_step + 1, &row)) {
            st = fail_line(&r);
            goto fail;
        }
        LKSI_TRY(history_add_step(h, &row));
    }
    if (h->n_step < steps)
        st = lksi_fail(LKS_E_INPUT,
                       "%s ends at step %zu, the checkpoint stands at step %" PRIu64
                       "; bring the file back, or start anew with --overwrite",
                       path, h->n_step, steps);
fail:
    free(r.bytes.data);
    return st;
}

/* Losses and accuracy of the training or the test. */
static bool take_numbers(const struct form *f, char **at, double *losses, double *accuracy)
{
    for (size_t k = 0; k < f->n_loss; k++)
        if (!take_number(at, &losses[k]))
            return false;
    return f->positions == 0 || take_number(at, accuracy);
}

static bool parse_metrics(const struct form *f, char *line, struct lks_epoch_info *row)
{
    size_t empty = f->n_loss + (f->positions > 0 ? 1 : 0);
    uint32_t epoch;
    int used = 0;
    *row = (struct lks_epoch_info){.train_accuracy = (double)NAN,
                                   .test_accuracy = (double)NAN,
                                   .n_losses = (uint32_t)f->n_loss};
    for (size_t k = 0; k < f->n_loss; k++)
        row->test_losses[k] = (double)NAN;
    if (sscanf(line, "%" SCNu32 ",%" SCNu64 "%n", &epoch, &row->steps, &used) != 2 || epoch == 0)
        return false;
    row->epoch = epoch - 1;
    line += used;
    if (!take_numbers(f, &line, row->train_losses, &row->train_accuracy))
        return false;
    if (strspn(line, ",") != empty || line[empty] != '\0') {
        if (!take_numbers(f, &line, row->test_losses, &row->test_accuracy) || *line != '\0')
            return false;
    }
    row->train_loss = row->train_losses[0];
    row->test_loss = row->test_losses[0];
    return true;
}

static lks_status read_metrics(struct history *h, const char *path, uint64_t steps)
{
    struct reader r = {0};
    lks_status st;
    struct lksi_str head = {0};
    char *line;
    add_metrics_head(&h->form, &head);
    LKSI_TRY(reader_open(&r, path, &head));
    while ((line = reader_line(&r)) != NULL) {
        struct lks_epoch_info row;
        if (!parse_metrics(&h->form, line, &row) || row.epoch != h->n_epoch) {
            st = fail_line(&r);
            goto fail;
        }
        if (row.steps > steps)
            break;
        LKSI_TRY(history_add_epoch(h, &row));
    }
fail:
    free(r.bytes.data);
    return st;
}

lks_status history_read(struct history *h, const char *steps_path, const char *metrics_path,
                        uint64_t steps)
{
    lks_status st = read_steps(h, steps_path, steps);
    if (st == LKS_OK)
        st = read_metrics(h, metrics_path, steps);
    if (st != LKS_OK)
        history_free(h);
    return st;
}

double history_score(const struct history *h, const struct lks_epoch_info *info)
{
    return h->form.positions > 0 ? info->test_accuracy : -info->test_loss;
}

double history_best(const struct history *h)
{
    double best = (double)-INFINITY;
    for (size_t i = 0; i < h->n_epoch; i++)
        if (history_score(h, &h->epoch[i]) > best)
            best = history_score(h, &h->epoch[i]);
    return best;
}
