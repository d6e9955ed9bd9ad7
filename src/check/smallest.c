/*
 * smallest.c - see smallest.h.
 */
#include <stdlib.h>
#include <string.h>

#include "check/smallest.h"
#include "plan/bind.h"

#define FNV_START 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

static void hash_text(uint64_t *hash, const char *text)
{
    for (const char *c = text != NULL ? text : ""; *c != '\0'; c++)
        *hash = (*hash ^ (unsigned char)*c) * FNV_PRIME;
    *hash = (*hash ^ 0xffu) * FNV_PRIME; /* where one text ends */
}

static uint64_t hash_kernels(const struct lksi_recipe *r)
{
    uint64_t hash = FNV_START;
    for (int l = 0; l < r->n_launch; l++) {
        const struct lksi_launch *launch = &r->launch[l];
        hash_text(&hash, launch->host != NULL ? "host" : launch->source);
        hash_text(&hash, launch->plain != NULL ? launch->plain->name : NULL);
        hash_text(&hash, launch->kernel);
        hash_text(&hash, launch->defines);
        hash_text(&hash, launch->options);
        for (int d = 0; d < 3; d++)
            hash = (hash ^ launch->local[d]) * FNV_PRIME;
    }
    return hash;
}

static lks_status note(struct lksi_smallest *s, const struct lksi_limits *limits,
                       const struct lksi_oracle *o, size_t row,
                       const struct lksi_schedule *schedule)
{
    struct lksi_recipe recipe = {0};
    if (schedule->declines(&o->call, limits) != NULL)
        return LKS_OK;
    if (!lksi_grow(&s->entry, &s->capacity, s->count + 1, sizeof *s->entry))
        return LKS_E_MEMORY;
    schedule->recipe(&o->call, limits, &recipe);
    s->entry[s->count++] = (struct lksi_smallest_entry){row, o->index, lksi_op_flops(&o->call),
                                                        hash_kernels(&recipe), false};
    return LKS_OK;
}

/* Among the cases of one schedule, or of one set of its kernels: `a` comes before `b`. */
static bool before(const struct lksi_smallest_entry *a, const struct lksi_smallest_entry *b)
{
    return a->flops < b->flops || (a->flops == b->flops && a->case_index < b->case_index);
}

static void take(struct lksi_smallest *s, int keep, double max_flops)
{
    for (size_t i = 0; i < s->count; i++) {
        struct lksi_smallest_entry *e = &s->entry[i];
        int smaller = 0, smaller_of_row = 0;
        for (size_t k = 0; k < s->count; k++) {
            bool counts = s->entry[k].row == e->row && before(&s->entry[k], e);
            smaller_of_row += counts;
            smaller += counts && s->entry[k].kernels == e->kernels;
        }
        e->taken = smaller < keep && (max_flops <= 0.0 || e->flops <= max_flops);
        e->taken |= smaller_of_row == 0;
    }
}

lks_status lksi_smallest_find(struct lksi_smallest *s, struct lksi_dev *dev,
                              const struct lksi_op *op, bool long_run, int keep, double max_flops)
{
    const struct lksi_limits *limits = lksi_dev_limits(dev);
    lks_status st = LKS_OK;
    bool found = true;
    s->count = 0;
    for (int i = 0; found && st == LKS_OK; i++) {
        const struct lksi_schedule *schedule;
        struct lksi_oracle o;
        LKSI_TRY(lksi_oracle_open(&o, op, i, long_run, &found));
        for (size_t r = 0; found && st == LKS_OK && (schedule = lksi_op_schedule(op, r)) != NULL;
             r++)
            st = note(s, limits, &o, r, schedule);
        lksi_oracle_close(&o);
    }
    take(s, keep, max_flops);
fail:
    return st;
}

bool lksi_smallest_has(const struct lksi_smallest *s, size_t row, int case_index)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->entry[i].row == row && s->entry[i].case_index == case_index)
            return s->entry[i].taken;
    return false;
}

void lksi_smallest_close(struct lksi_smallest *s)
{
    free(s->entry);
    memset(s, 0, sizeof *s);
}
