/*
 * optimizer.h - the numbers of an optimiser as a table, for the model file, the checks and the
 * checkpoints.
 */
#ifndef LKSI_MODEL_OPTIMIZER_H
#define LKSI_MODEL_OPTIMIZER_H

#include <lockstep/optimizer.h>

#include "base/base.h"

#define LKSI_OPTIMIZERS 6

enum lksi_range { LKSI_ABOVE_0, LKSI_FROM_0, LKSI_BELOW_1 };

struct lksi_optimizer_field {
    const char *name;
    size_t offset; /* of a double in struct lks_optimizer */
    unsigned kinds; /* bit 1 << kind: it reads this field */
    enum lksi_range range;
};

/* Ended by a NULL name. */
extern const struct lksi_optimizer_field lksi_optimizer_fields[];

static inline double *lksi_optimizer_number(struct lks_optimizer *o,
                                            const struct lksi_optimizer_field *f)
{
    return (double *)(void *)((char *)o + f->offset);
}

static inline bool lksi_optimizer_reads(const struct lks_optimizer *o,
                                        const struct lksi_optimizer_field *f)
{
    return (f->kinds >> o->kind & 1u) != 0;
}

/* LKS_E_ARGUMENT with the optimiser, the field and what would be right. */
lks_status lksi_optimizer_check(const struct lks_optimizer *o);

/* Its schedule depends on how many steps there will be; or on the steps of an epoch. */
bool lksi_schedule_needs_total(const struct lks_lr_schedule *s);
bool lksi_schedule_needs_epoch(const struct lks_lr_schedule *s);

/* A name fits a pattern of `*` and `?`. */
bool lksi_pattern_fits(const char *pattern, const char *name);

#endif
