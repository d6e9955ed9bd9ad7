/*
 * event_log.c - JSON lines. All texts here are plain, so no JSON writer is needed.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "event_log.h"

struct event_log {
    FILE *file;
    char *path;
    struct form form;
};

static lks_status fail(const struct event_log *log)
{
    return lksi_fail(LKS_E_IO,
                     "cannot write `%s`: %s; free some space or name another file with "
                     "--log-json",
                     log->path, strerror(errno));
}

lks_status event_log_check(const char *path)
{
    lks_status st = lksi_file_check_writable(path);
    return st == LKS_OK ? st : lksi_fail_prefix(st, "--log-json: ");
}

lks_status event_log_open(struct event_log **log, const struct form *form, const char *path)
{
    struct event_log *l = lksi_alloc(1, sizeof *l);
    lks_status st = LKS_OK;
    if (l == NULL || (l->path = lksi_strdup(path)) == NULL)
        st = LKS_E_MEMORY;
    else if ((l->file = fopen(path, "a")) == NULL)
        st = fail(l);
    if (st == LKS_OK) {
        l->form = *form;
        *log = l;
    } else {
        event_log_close(&l);
    }
    return st;
}

void event_log_close(struct event_log **log)
{
    struct event_log *l = *log;
    if (l == NULL)
        return;
    if (l->file != NULL)
        fclose(l->file);
    free(l->path);
    free(l);
    *log = NULL;
}

/* A number, or null: JSON knows no NaN. */
static const char *number(double v, char text[32])
{
    if (isfinite(v))
        snprintf(text, 32, "%.9g", v);
    else
        snprintf(text, 32, "null");
    return text;
}

static lks_status end_line(struct event_log *log)
{
    return fputc('\n', log->file) == EOF || fflush(log->file) != 0 ? fail(log) : LKS_OK;
}

/* `, "train_loss": 0.5` for each loss; `part` is "", "train_" or "test_". */
static void add_losses(struct event_log *log, const char *part, const double *losses)
{
    char text[32];
    for (size_t k = 0; k < log->form.n_loss; k++)
        fprintf(log->file, ", \"%s%s\": %s", part, log->form.loss[k], number(losses[k], text));
}

static void add_accuracy(struct event_log *log, const char *part, double accuracy)
{
    char text[32];
    if (log->form.positions > 0)
        fprintf(log->file, ", \"%saccuracy\": %s", part, number(accuracy, text));
}

lks_status event_log_step(struct event_log *log, const struct lks_step_info *info)
{
    double losses[FORM_LOSSES];
    if (log == NULL)
        return LKS_OK;
    for (size_t k = 0; k < log->form.n_loss; k++)
        losses[k] = (double)info->losses[k];
    fprintf(log->file,
            "{\"event\": \"step\", \"step\": %" PRIu64 ", \"epoch\": %" PRIu32
            ", \"samples\": %" PRIu32,
            info->step + 1, info->epoch + 1, info->samples);
    add_losses(log, "", losses);
    if (log->form.positions > 0)
        fprintf(log->file, ", \"hits\": %" PRIu32, info->hits);
    fprintf(log->file, "}");
    return end_line(log);
}

lks_status event_log_epoch(struct event_log *log, const struct lks_epoch_info *info)
{
    if (log == NULL)
        return LKS_OK;
    fprintf(log->file, "{\"event\": \"epoch\", \"epoch\": %" PRIu32 ", \"steps\": %" PRIu64,
            info->epoch + 1, info->steps);
    add_losses(log, "train_", info->train_losses);
    add_accuracy(log, "train_", info->train_accuracy);
    add_losses(log, "test_", info->test_losses);
    add_accuracy(log, "test_", info->test_accuracy);
    fprintf(log->file, "}");
    return end_line(log);
}

lks_status event_log_end(struct event_log *log, uint64_t steps, const char *sha256,
                         const double *losses, double accuracy)
{
    if (log == NULL)
        return LKS_OK;
    fprintf(log->file, "{\"event\": \"end\", \"steps\": %" PRIu64, steps);
    if (log->form.positions == 0)
        add_losses(log, "test_", losses);
    add_accuracy(log, "test_", accuracy);
    fprintf(log->file, ", \"weights_sha256\": \"%s\"}", sha256);
    return end_line(log);
}
