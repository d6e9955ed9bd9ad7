/*
 * program.c - gives units to programs and builds these: equal units once, all in one program where
 * the driver compiles one at a time (CPU devices), else each in its own program, in parallel. A
 * unit that a living program of the device holds is taken from there: plans of other batch sizes,
 * and of evaluation, have most units in common. build.c builds one program, kernel.c launches.
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

/* All that makes a unit what it is, as one text. NULL: no memory. */
static char *name_of(const struct lksi_unit *u)
{
    struct lksi_str s = {0};
    lksi_str_add(&s, "%s\n%s\n%s\n", text_of(u->source), text_of(u->defines), text_of(u->options));
    if (u->source == NULL)
        lksi_str_append(&s, text_of(u->text), strlen(text_of(u->text)));
    if (s.failed) {
        free(s.text);
        return NULL;
    }
    return s.text;
}

/* Places unit i in a program that is alive, of this or another plan, if one has it. */
static lks_status find_alive(struct lksi_program *p, const struct lksi_unit *unit, size_t i,
                             bool *found)
{
    char *name = name_of(unit);
    *found = false;
    if (name == NULL)
        return LKS_E_MEMORY;
    for (struct lksi_part *part = p->dev->parts; part != NULL && !*found; part = part->next)
        for (size_t u = 0; u < part->n_units && !*found; u++) {
            size_t at = 0;
            if (strcmp(part->name[u], name) != 0)
                continue;
            while (at < p->n_parts && p->part[at] != part)
                at++;
            if (at == p->n_parts) {
                p->part[p->n_parts++] = part;
                part->users++;
            }
            p->place[i].part = at;
            p->place[i].index = u;
            *found = true;
        }
    free(name);
    return LKS_OK;
}

/* The part that a new unit joins: one with the same options on a late device, else a new one.
 * NULL: no memory. */
static struct lksi_part *part_for(struct lksi_program *p, const struct lksi_unit *unit, size_t *at)
{
    for (*at = 0; p->dev->late && *at < p->n_parts; ++*at) {
        struct lksi_part *part = p->part[*at];
        if (part->program == NULL &&
            strcmp(text_of(part->unit[0]->options), text_of(unit->options)) == 0)
            return part;
    }
    *at = p->n_parts;
    p->part[*at] = lksi_alloc(1, sizeof *p->part[*at]);
    if (p->part[*at] == NULL)
        return NULL;
    p->part[*at]->users = 1;
    return p->part[p->n_parts++];
}

static lks_status group_units(struct lksi_program *p, const struct lksi_unit *units)
{
    for (size_t i = 0; i < p->n_units; i++) {
        struct lksi_part *part;
        size_t twin = 0, at;
        bool alive;
        lks_status st;
        while (twin < i && !same_unit(&units[i], &units[twin]))
            twin++;
        if (twin < i) {
            p->place[i] = p->place[twin];
            continue;
        }
        st = find_alive(p, &units[i], i, &alive);
        if (st != LKS_OK)
            return st;
        if (alive)
            continue;
        part = part_for(p, &units[i], &at);
        if (part == NULL ||
            !lksi_grow(&part->unit, &part->unit_capacity, part->n_units + 1, sizeof *part->unit))
            return LKS_E_MEMORY;
        part->unit[part->n_units] = &units[i];
        p->place[i].part = at;
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
    struct lksi_part *part = c->program->part[i];
    lks_status st = LKS_OK;
    if (part->program == NULL)
        st = lksi_part_build(c->program->dev, part);
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

/* New parts are built: names their units, for others that want them, and enters them. */
static lks_status enter(struct lksi_program *p)
{
    for (size_t i = 0; i < p->n_parts; i++) {
        struct lksi_part *part = p->part[i];
        if (part->name != NULL)
            continue;
        part->name = lksi_alloc(part->n_units, sizeof *part->name);
        if (part->name == NULL)
            return LKS_E_MEMORY;
        for (size_t u = 0; u < part->n_units; u++)
            if ((part->name[u] = name_of(part->unit[u])) == NULL)
                return LKS_E_MEMORY;
    }
    for (size_t i = 0; i < p->n_parts; i++) {
        struct lksi_part *part = p->part[i];
        if (part->unit == NULL)
            continue;     /* it came from the list */
        free(part->unit); /* the units belong to the caller */
        part->unit = NULL;
        part->next = p->dev->parts;
        p->dev->parts = part;
    }
    return LKS_OK;
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
    LKSI_TRY(enter(p));
    *program = p;
    return LKS_OK;
fail:
    lksi_program_destroy(&p);
    return st;
}

static void leave(struct lksi_dev *dev, struct lksi_part *part)
{
    if (--part->users > 0)
        return;
    for (struct lksi_part **at = &dev->parts; *at != NULL; at = &(*at)->next)
        if (*at == part) {
            *at = part->next;
            break;
        }
    if (part->program != NULL)
        clReleaseProgram(part->program);
    lksi_entry_free(&part->entry);
    for (size_t u = 0; part->name != NULL && u < part->n_units; u++)
        free(part->name[u]);
    free(part->name);
    free(part->unit);
    free(part->text);
    free(part->options);
    free(part);
}

void lksi_program_destroy(struct lksi_program **program)
{
    struct lksi_program *p = *program;
    if (p == NULL)
        return;
    for (size_t i = 0; i < p->n_parts; i++)
        leave(p->dev, p->part[i]);
    free(p->part);
    free(p->place);
    free(p);
    *program = NULL;
}

const char *lksi_program_digest(const struct lksi_program *program, size_t index)
{
    return program->part[program->place[index].part]->entry.digest;
}

lks_status lksi_program_settle(struct lksi_program *program)
{
    lks_status st = LKS_OK;
    for (size_t i = 0; i < program->n_parts; i++)
        LKSI_TRY(lksi_part_settle(program->dev, program->part[i]));
fail:
    return st;
}
