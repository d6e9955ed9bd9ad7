/*
 * program.c - gives units to programs and builds these: equal units once, all in one program where
 * the driver compiles one at a time (CPU devices), else each in its own program, in parallel.
 * build.c builds one program, kernel.c launches.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fenv.h"
#include "rt/program.h"

#define MAX_THREADS 16

/* ---- which units share a program ---- */

static const char *text_of(const char *s)
{
    return s != NULL ? s : "";
}

static bool same_unit(const struct lksi_unit *a, const struct lksi_unit *b)
{
    return strcmp(text_of(a->source), text_of(b->source)) == 0 &&
           (a->source != NULL || strcmp(text_of(a->text), text_of(b->text)) == 0) &&
           strcmp(text_of(a->defines), text_of(b->defines)) == 0 &&
           strcmp(text_of(a->options), text_of(b->options)) == 0;
}

/* The part that a new unit joins: one with the same options on a late device, else a new one. */
static struct lksi_part *part_for(struct lksi_program *p, const struct lksi_unit *unit)
{
    for (size_t i = 0; p->dev->late && i < p->n_parts; i++)
        if (strcmp(text_of(p->part[i].unit[0]->options), text_of(unit->options)) == 0)
            return &p->part[i];
    return &p->part[p->n_parts++];
}

static lks_status group_units(struct lksi_program *p, const struct lksi_unit *units)
{
    for (size_t i = 0; i < p->n_units; i++) {
        size_t twin = 0;
        while (twin < i && !same_unit(&units[i], &units[twin]))
            twin++;
        if (twin < i) {
            p->place[i] = p->place[twin];
            continue;
        }
        struct lksi_part *part = part_for(p, &units[i]);
        if (!lksi_grow(&part->unit, &part->unit_capacity, part->n_units + 1, sizeof *part->unit))
            return LKS_E_MEMORY;
        part->unit[part->n_units] = &units[i];
        p->place[i].part = (size_t)(part - p->part);
        p->place[i].index = part->n_units++;
    }
    return LKS_OK;
}

/* ---- all programs, by several threads ---- */

struct crew {
    struct lksi_program *program;
    pthread_mutex_t lock;
    pthread_cond_t done_one;
    size_t next, done;
    lks_status status;
    char message[2048]; /* of the first failure; error texts belong to a thread */
};

static void build_next(struct crew *c)
{
    size_t i = c->next++;
    pthread_mutex_unlock(&c->lock);
    lks_status st = lksi_part_build(c->program->dev, &c->program->part[i]);
    pthread_mutex_lock(&c->lock);
    if (st != LKS_OK && c->status == LKS_OK) {
        c->status = st;
        snprintf(c->message, sizeof c->message, "%s", lks_error_message());
    }
    c->done++;
    pthread_cond_signal(&c->done_one);
}

static bool work_left(const struct crew *c)
{
    return c->next < c->program->n_parts && c->status == LKS_OK;
}

static void *crew_main(void *arg)
{
    struct crew *c = arg;
    struct lksi_fenv fenv;
    lksi_fenv_enter(&fenv);
    pthread_mutex_lock(&c->lock);
    while (work_left(c))
        build_next(c);
    pthread_mutex_unlock(&c->lock);
    lksi_fenv_leave(&fenv);
    return NULL;
}

/* Units finished so far: a part counts for all its units. */
static void report(const struct crew *c, struct lksi_build_progress progress)
{
    size_t parts = c->program->n_parts, total = c->program->n_units;
    if (progress.fn != NULL)
        progress.fn(progress.user, parts > 0 ? total * c->done / parts : total, total);
}

static lks_status build_all(struct lksi_program *p, struct lksi_build_progress progress)
{
    struct crew c = {.program = p};
    pthread_t thread[MAX_THREADS];
    int n = 0, want = 0;
    if (!p->dev->late && p->n_parts > 1) {
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        want = cpus < MAX_THREADS ? (int)cpus : MAX_THREADS;
        want = (size_t)want < p->n_parts ? want : (int)p->n_parts;
    }
    pthread_mutex_init(&c.lock, NULL);
    pthread_cond_init(&c.done_one, NULL);
    while (n < want && pthread_create(&thread[n], NULL, crew_main, &c) == 0)
        n++;
    report(&c, progress);
    pthread_mutex_lock(&c.lock);
    for (size_t told = 0; n > 0 ? c.done < c.next || work_left(&c) : work_left(&c);) {
        if (n == 0)
            build_next(&c);
        else if (c.done == told)
            pthread_cond_wait(&c.done_one, &c.lock);
        if (c.done > told) {
            told = c.done;
            report(&c, progress);
        }
    }
    pthread_mutex_unlock(&c.lock);
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    pthread_cond_destroy(&c.done_one);
    pthread_mutex_destroy(&c.lock);
    return c.status == LKS_OK ? LKS_OK : lksi_fail(c.status, "%s", c.message);
}

lks_status lksi_program_build(struct lksi_program **program, struct lksi_dev *dev,
                              const struct lksi_unit *units, size_t count,
                              struct lksi_build_progress progress)
{
    lks_status st;
    struct lksi_program *p = lksi_alloc(1, sizeof *p);
    if (p == NULL)
        return LKS_E_MEMORY;
    p->dev = dev;
    p->n_units = count;
    p->part = lksi_alloc(count, sizeof *p->part);
    p->place = lksi_alloc(count, sizeof *p->place);
    if (p->part == NULL || p->place == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    if (dev->id == NULL) {
        st = lksi_fail(LKS_E_ARGUMENT, "the device ref runs plain C and builds no programs");
        goto fail;
    }
    LKSI_TRY(group_units(p, units));
    LKSI_TRY(build_all(p, progress));
    for (size_t i = 0; i < p->n_parts; i++) { /* the units belong to the caller */
        free(p->part[i].unit);
        p->part[i].unit = NULL;
    }
    *program = p;
    return LKS_OK;
fail:
    lksi_program_destroy(&p);
    return st;
}

void lksi_program_destroy(struct lksi_program **program)
{
    struct lksi_program *p = *program;
    if (p == NULL)
        return;
    for (size_t i = 0; p->part != NULL && i < p->n_units; i++) {
        struct lksi_part *part = &p->part[i];
        if (part->program != NULL)
            clReleaseProgram(part->program);
        lksi_entry_free(&part->entry);
        free(part->unit);
        free(part->text);
        free(part->options);
    }
    free(p->part);
    free(p->place);
    free(p);
    *program = NULL;
}

const char *lksi_program_digest(const struct lksi_program *program, size_t index)
{
    return program->part[program->place[index].part].entry.digest;
}

lks_status lksi_program_settle(struct lksi_program *program)
{
    lks_status st = LKS_OK;
    for (size_t i = 0; i < program->n_parts; i++)
        LKSI_TRY(lksi_part_settle(program->dev, &program->part[i]));
fail:
    return st;
}
