/*
 * progress.h - what a training shows while it runs: on a terminal a bar that is redrawn in place,
 * elsewhere now and then a line, both on standard error. Epoch lines go to standard output.
 */
#ifndef LKS_TOOLS_PROGRESS_H
#define LKS_TOOLS_PROGRESS_H

#include <lockstep/trainer.h>

#include "base/base.h"
#include "form.h"

struct progress {
    struct form form;
    bool quiet, terminal;
    bool drawn;      /* the bar stands on the current line */
    bool told_build; /* "building kernels" was said */
    uint64_t total;  /* steps of this run */
    uint64_t per_epoch;
    uint32_t epochs;
    double epoch_start, drawn_at, line_at; /* seconds */
    /* Smoothed over the last seconds: */
    double loss[FORM_LOSSES], accuracy, rate; /* rate: samples a second */
    double rate_at;
    uint64_t rate_samples;
    bool any;
};

double seconds_now(void);
void progress_init(struct progress *p, const struct form *form, bool quiet, uint64_t total,
                   uint64_t per_epoch, uint32_t epochs);
void progress_build(struct progress *p, size_t done, size_t total);
void progress_step(struct progress *p, const struct lks_step_info *info);
void progress_epoch(struct progress *p, const struct lks_epoch_info *info);
/* Removes the bar, so that other text can be printed. */
void progress_clear(struct progress *p);

#endif
