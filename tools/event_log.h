/*
 * event_log.h - --log-json: one JSON object a line, written as things happen.
 */
#ifndef LKS_TOOLS_EVENT_LOG_H
#define LKS_TOOLS_EVENT_LOG_H

#include <lockstep/trainer.h>

#include "base/base.h"
#include "form.h"

struct event_log;

/* What opening would refuse, as far as can be told without making the file. */
lks_status event_log_check(const char *path);
/* Opens a file for appending. LKS_E_IO. */
lks_status event_log_open(struct event_log **log, const struct form *form, const char *path);
void event_log_close(struct event_log **log);

/* Each does nothing if `log` is NULL. LKS_E_IO. */
lks_status event_log_step(struct event_log *log, const struct lks_step_info *info);
lks_status event_log_epoch(struct event_log *log, const struct lks_epoch_info *info);
/* `losses` and `accuracy` NAN: not tested. */
lks_status event_log_end(struct event_log *log, uint64_t steps, const char *sha256,
                         const double *losses, double accuracy);

#endif
