/*
 * event_log.c - JSON lines. All texts here are plain, so no JSON writer is needed.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event_log.h"

struct event_log {
    FILE *file;
    char *path;
};

static lks_status fail(const struct event_log *log)
{
    return lksi_fail(LKS_E_IO,
                     "cannot write `%s`: %s; free some space or name another file with "
                     "--log-json",
                     log->path, strerror(errno));
}

lks_status event_log_open(struct event_log **log, const char *path)
{
    struct event_log *l = lksi_alloc(1, sizeof *l);
    lks_status st = LKS_OK;
    if (l == NULL || (l->path = lksi_strdup(path)) == NULL)
        st = LKS_E_MEMORY;
    else if ((l->file = fopen(path, "a")) == NULL)
        st = fail(l);
    if (st != LKS_OK)
        event_log_close(&l);
    else
        *log = l;
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

lks_status event_log_step(struct event_log *log, const struct lks_step_info *info)
{
    char loss[32];
    if (log == NULL)
        return LKS_OK;
    fprintf(log->file,
            "{\"event\": \"step\", \"step\": %" PRIu64 ", \"epoch\": %" PRIu32
            ", \"samples\": %" PRIu32 ", \"loss\": %s, \"hits\": %" PRIu32 "}",
            info->step + 1, info->epoch + 1, info->samples, number((double)info->loss, loss),
            info->hits);
    return end_line(log);
}

lks_status event_log_epoch(struct event_log *log, const struct lks_epoch_info *info)
{
    char text[4][32];
    if (log == NULL)
        return LKS_OK;
    fprintf(log->file,
            "{\"event\": \"epoch\", \"epoch\": %" PRIu32 ", \"steps\": %" PRIu64
            ", \"train_loss\": %s, \"train_accuracy\": %s, \"test_loss\": %s, "
            "\"test_accuracy\": %s}",
            info->epoch + 1, info->steps, number(info->train_loss, text[0]),
            number(info->train_accuracy, text[1]), number(info->test_loss, text[2]),
            number(info->test_accuracy, text[3]));
    return end_line(log);
}

lks_status event_log_end(struct event_log *log, uint64_t steps, const char *sha256, double accuracy)
{
    char text[32];
    if (log == NULL)
        return LKS_OK;
    fprintf(log->file,
            "{\"event\": \"end\", \"steps\": %" PRIu64 ", \"test_accuracy\": %s, "
            "\"weights_sha256\": \"%s\"}",
            steps, number(accuracy, text), sha256);
    return end_line(log);
}
