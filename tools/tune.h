/*
 * tune.h - what the files of `lockstep tune` share. tune.c reads options, joins files, and watches
 * over a second process, in which tune_search.c does the work: a driver that crashes or hangs on a
 * candidate ends that process alone. tune_time.c compares times.
 */
#ifndef LKS_TOOLS_TUNE_H
#define LKS_TOOLS_TUNE_H

#include "bench.h"
#include "plan/plan.h"

#define TUNE_BUDGET 60 /* seconds */

struct tune_options {
    struct bench_options bench; /* the model's batch and leaf, or --op and its shape */
    struct number budget;       /* seconds */
    const char *out;
    struct text_list merge;
};

/* What the working process must know of those before it. */
struct tune_past {
    char **bad;      /* candidates that ended it */
    size_t n_bad, cap_bad;
    char **done;     /* calls that are finished */
    size_t n_done, cap_done;
    size_t better;   /* calls with an entry */
};

struct tune {
    const struct tune_options *o;
    const struct tune_past *past;
    struct bench b;
    const char *path; /* of the file to write */
    struct lksi_tuning *built_in; /* what serves calls that the file does not name */
    int report;       /* a pipe: "try TEXT", "done TEXT", "better TEXT", a line each */
    struct lksi_buf *pool; /* numbers that inputs of many calls share */
    struct lksi_program **ahead; /* built together, alive to the end */
    size_t n_ahead, cap_ahead;
    double end;       /* of the budget, by seconds_now; 0: not begun */
};

/* A stage that may be better than the first choice. */
struct tune_candidate {
    struct lksi_pick pick;
    char text[160]; /* "cpu, tile 64x64 8x8" */
    struct lksi_stage *stage;
    struct lksi_program *program;
    unsigned runs;   /* that one time is taken of */
    double quick;    /* the shortest of a few times, ms */
    double ratio;    /* median of its times over those of the first choice in the same rounds */
    double ms;       /* median */
};

/* tune_search.c: runs in the second process; its exit status. */
int tune_work(struct tune *t, const char *model_file);

/* ---- tune_time.c ---- */

/* Sets `runs` and `quick`. The stage is bound. */
lks_status tune_quick(struct tune_candidate *c, struct lksi_dev *dev);
/*
 * Times `first` and the `n` candidates in turns until `rounds` are done or `until` has passed (nine
 * rounds at least), and sets ratio and ms of all. `bind` binds one of them.
 */
lks_status tune_rounds(struct tune_candidate *first, struct tune_candidate **c, size_t n,
                       size_t rounds, double until,
                       lks_status (*bind)(void *user, struct tune_candidate *c), void *user,
                       bool *clear);

#endif
