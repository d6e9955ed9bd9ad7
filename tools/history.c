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

#define STEPS_HEAD   "step,samples,loss,hits\n"
#define METRICS_HEAD "epoch,steps,train_loss,train_accuracy,test_loss,test_accuracy\n"

enum { FILE_LIMIT = 1 << 30 };

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
    h->step[h->n_step++] = (struct step_row){info->samples, info->hits, info->loss};
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
    lksi_str_add(&s, STEPS_HEAD);
    for (size_t i = 0; i < h->n_step; i++)
        lksi_str_add(&s, "%zu,%" PRIu32 ",%.9g,%" PRIu32 "\n", i + 1, h->step[i].samples,
                     (double)h->step[i].loss, h->step[i].hits);
    return write_text(path, &s);
}

lks_status history_write_metrics(const struct history *h, const char *path)
{
    struct lksi_str s = {0};
    lksi_str_add(&s, METRICS_HEAD);
    for (size_t i = 0; i < h->n_epoch; i++) {
        const struct lks_epoch_info *e = &h->epoch[i];
        lksi_str_add(&s, "%" PRIu32 ",%" PRIu64 ",%.9g,%.9g", e->epoch + 1, e->steps, e->train_loss,
                     e->train_accuracy);
        if (isnan(e->test_accuracy)) /* no test data */
            lksi_str_add(&s, ",,\n");
        else
            lksi_str_add(&s, ",%.9g,%.9g\n", e->test_loss, e->test_accuracy);
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

static lks_status reader_open(struct reader *r, const char *path, const char *head)
{
    lks_status st = lksi_file_read(path, FILE_LIMIT, &r->bytes);
    if (st != LKS_OK)
        return st;
    r->path = path;
    r->next = (char *)r->bytes.data;
    r->line = 1;
    if (strncmp(r->next, head, strlen(head)) != 0)
        return fail_line(r);
    r->next += strlen(head);
    return LKS_OK;
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

static lks_status read_steps(struct history *h, const char *path, uint64_t steps)
{
    struct reader r = {0};
    lks_status st;
    char *line;
    LKSI_TRY(reader_open(&r, path, STEPS_HEAD));
    while (h->n_step < steps && (line = reader_line(&r)) != NULL) {
        struct lks_step_info row = {0};
        uint64_t step;
        int used = 0;
        if (sscanf(line, "%" SCNu64 ",%" SCNu32 ",%g,%" SCNu32 "%n", &step, &row.samples, &row.loss,
                   &row.hits, &used) != 4 ||
            line[used] != '\0' || step != h->n_step + 1) {
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

static bool parse_metrics(char *line, struct lks_epoch_info *row)
{
    uint32_t epoch;
    int used = 0;
    if (sscanf(line, "%" SCNu32 ",%" SCNu64 ",%lf,%lf%n", &epoch, &row->steps, &row->train_loss,
               &row->train_accuracy, &used) != 4 ||
        epoch == 0)
        return false;
    row->epoch = epoch - 1;
    row->test_loss = row->test_accuracy = (double)NAN;
    line += used;
    if (strcmp(line, ",,") == 0)
        return true;
    used = 0;
    return sscanf(line, ",%lf,%lf%n", &row->test_loss, &row->test_accuracy, &used) == 2 &&
           line[used] == '\0';
}

static lks_status read_metrics(struct history *h, const char *path, uint64_t steps)
{
    struct reader r = {0};
    lks_status st;
    char *line;
    LKSI_TRY(reader_open(&r, path, METRICS_HEAD));
    while ((line = reader_line(&r)) != NULL) {
        struct lks_epoch_info row;
        if (!parse_metrics(line, &row) || row.epoch != h->n_epoch) {
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

double history_best(const struct history *h)
{
    double best = -1.0;
    for (size_t i = 0; i < h->n_epoch; i++)
        if (h->epoch[i].test_accuracy > best)
            best = h->epoch[i].test_accuracy;
    return best;
}
