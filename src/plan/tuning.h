/*
 * tuning.h - which schedule and which tile was fastest for a call on a device, as `lockstep tune`
 * found it: tables in files. They decide speed alone.
 *
 * A file is text, a JSON object a line, so that it can be read, cut and joined by hand:
 *
 *   {"lockstep_tuning": 1}                                            the format
 *   {"device": "NVIDIA H200", "driver": "580.*", "platform": "NVIDIA CUDA", "contract": 1}
 *   {"op": "conv2d", "in": [[64,14,14,32],[64,5,5,32],[64]], "leaf": 8, "attr": [1,1], "schedule":
 *    "cpu", "version": 0, "choices": {"tile": "..."}, "ms": 1.2, "before": "cpu", "before_ms": 1.4}
 *
 * Entries belong to the device above them; a name that ends in `*` stands for all that begin so.
 * Entries of other devices, drivers or contracts, and of schedules that changed, are passed over.
 * An entry serves its own batch size, and other ones that have no entry.
 *
 * The library brings such files along (share/tuning/). They are asked after the user's own, and
 * serve batch sizes near theirs only.
 */
#ifndef LKSI_TUNING_H
#define LKSI_TUNING_H

#include "plan/bind.h"

/* ---- files (tuning_file.c) ---- */

struct lksi_tuning_entry {
    char *op, *schedule, *before; /* before: the schedule that would be used without the entry */
    int n_in, version;
    struct lksi_desc in[LKSI_MAX_IN]; /* dtypes follow from the operator */
    uint32_t leaf;
    uint32_t *word; /* the attributes as words, those behind the last one that is not 0 left off */
    size_t n_word;
    struct {
        char *name, *value;
    } choice[LKSI_MAX_TUNABLE];
    int n_choice;
    double ms, before_ms;
};

/* The entries of one device and driver. */
struct lksi_tuning_table {
    char *device, *driver, *platform;
    int contract;
    struct lksi_tuning_entry *entry;
    size_t n, cap;
};

struct lksi_tuning_file {
    struct lksi_tuning_table *table;
    size_t n, cap;
};

void lksi_tuning_file_free(struct lksi_tuning_file *f);
/* Adds what `text` holds. LKS_E_INPUT names `name`, the line, and what to do. */
lks_status lksi_tuning_parse(struct lksi_tuning_file *f, const char *name, const char *text);
lks_status lksi_tuning_read(struct lksi_tuning_file *f, const char *path);
/* The table of a device, contract of this library; made if there is none. */
lks_status lksi_tuning_table_of(struct lksi_tuning_file *f, const struct lksi_limits *dev,
                                struct lksi_tuning_table **table);
/* An entry about `call`, without choice, schedule and times. */
lks_status lksi_tuning_entry_make(struct lksi_tuning_entry *e, const struct lksi_call *call);
void lksi_tuning_entry_free(struct lksi_tuning_entry *e);
/* Puts *e, which it takes over, in place of the entry about the same call, or behind the others. */
lks_status lksi_tuning_put(struct lksi_tuning_table *t, struct lksi_tuning_entry *e);
/* Drops the entry about the same call as `e`, if there is one. */
void lksi_tuning_drop(struct lksi_tuning_table *t, const struct lksi_tuning_entry *e);
/*
 * Changes the file `path` (which need not exist) while no other process does: reads it, lets `edit`
 * change it, and puts the new one in its place whole.
 */
lks_status lksi_tuning_edit(const char *path,
                            lks_status (*edit)(void *user, struct lksi_tuning_file *f), void *user);
/* Adds the entries of `from` to `to`; of two about one call the later one stays. */
lks_status lksi_tuning_merge(struct lksi_tuning_file *to, const struct lksi_tuning_file *from);
/* The user's file for a device: below $XDG_CONFIG_HOME or ~/.config. free(); NULL: neither is set,
 * or no memory. */
char *lksi_tuning_path(const struct lksi_limits *dev);

/* ---- what a plan asks (tuning.c) ---- */

/* What serves one device, in the order in which it is asked. */
struct lksi_tuning;

/*
 * Reads what lksi_dev_tuning names: a path, that file, whose faults are an error; NULL, the user's
 * file if there is one, whose faults are a warning; "built-in", no file; and then the tables of
 * `built_in` (lksi_embedded_tuning but in tests), which must outlive it. "none", and on `ref`:
 * *tuning is NULL.
 */
lks_status lksi_tuning_open(struct lksi_tuning **tuning, struct lksi_dev *dev,
                            const struct lksi_embedded *built_in);
void lksi_tuning_close(struct lksi_tuning **tuning);

/* Fills `pick` with what is best for the call; false if no table knows (also for NULL). */
bool lksi_tuning_find(struct lksi_tuning *tuning, const struct lksi_call *call,
                      struct lksi_pick *pick);
/* The entry behind `pick` is not asked again: its choice failed on this device. */
void lksi_tuning_refuse(struct lksi_tuning *tuning, const struct lksi_pick *pick);
/* No entry is asked again. */
void lksi_tuning_stop(struct lksi_tuning *tuning);

#endif
