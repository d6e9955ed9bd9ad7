/*
 * groups.c - which parameter belongs to which optimiser and group, and where it lies.
 *
 * The arenas hold the optimisers' parameters one optimiser behind the other, each in the order of
 * their names, and the frozen ones last. So an optimiser's parameters are one range, and its
 * gradients, in name order, one row of rule 6 (the gaps hold zeros).
 */
#include <stdlib.h>
#include <string.h>

#include "contract/update.h"
#include "train/train.h"

_Static_assert(LKSI_ARENA_ALIGN % LKS_UPDATE_BLOCK == 0, "a block belongs to one parameter");

static lks_status check_patterns(const struct lks_trainer *t, const char *const *pattern, size_t n,
                                 const char *where)
{
    for (size_t k = 0; k < n; k++) {
        bool found = false;
        if (pattern == NULL || pattern[k] == NULL)
            return lksi_fail(LKS_E_ARGUMENT, "%s: a pattern is NULL", where);
        for (size_t i = 0; i < t->model->n_param; i++)
            found = found || lksi_pattern_fits(pattern[k], t->model->param[i].name);
        if (!found)
            return lksi_fail(LKS_E_ARGUMENT,
                             "%s: no parameter fits `%s`; the parameters are named like `%s`",
                             where, pattern[k], t->model->param[0].name);
    }
    return LKS_OK;
}

static bool fits(const char *const *pattern, size_t n, const char *name)
{
    for (size_t k = 0; k < n; k++)
        if (lksi_pattern_fits(pattern[k], name))
            return true;
    return false;
}

static lks_status check_groups(const struct lks_trainer *t)
{
    const struct lks_trainer_params *p = &t->params;
    lks_status st = check_patterns(t, p->frozen, p->n_frozen, "frozen");
    if (st == LKS_OK && p->n_groups > 0 && p->groups == NULL)
        st = lksi_fail(LKS_E_ARGUMENT, "n_groups is %zu and groups is NULL", p->n_groups);
    for (size_t k = 0; k < p->n_groups && st == LKS_OK; k++) {
        const struct lks_param_group *g = &p->groups[k];
        st = check_patterns(t, g->params, g->n_params, "groups");
        if (st == LKS_OK && g->n_params == 0)
            st = lksi_fail(LKS_E_ARGUMENT, "groups: group %zu names no parameters", k + 1);
        if (st == LKS_OK && !(g->lr_scale >= 0 && g->lr_scale <= 1e6))
            st = lksi_fail(LKS_E_ARGUMENT, "groups: lr_scale is %g, expected above 0 up to 1e6",
                           g->lr_scale);
        if (st == LKS_OK && !(g->weight_decay >= 0 && g->weight_decay <= 1e6))
            st = lksi_fail(LKS_E_ARGUMENT, "groups: weight_decay is %g, expected 0 to 1e6",
                           g->weight_decay);
    }
    return st;
}

/* ---- optimisers ---- */

static lks_status take_optimizers(struct lks_trainer *t)
{
    const struct lks_trainer_params *p = &t->params;
    struct lks_optimizer sgd = lks_optimizer_of_sgd(&p->sgd);
    const struct lks_optimizer *from = p->optimizers != NULL ? p->optimizers : &sgd;
    size_t n = p->optimizers != NULL ? p->n_optimizers : 1;
    lks_status st = LKS_OK;
    if (n == 0 || (p->optimizers == NULL && p->n_optimizers > 0))
        return lksi_fail(LKS_E_ARGUMENT, "n_optimizers is %zu, and optimizers is %s NULL",
                         p->n_optimizers, p->optimizers == NULL ? "" : "not");
    if (n * (p->n_groups + 1) > LKSI_MAX_ROWS)
        return lksi_fail(LKS_E_ARGUMENT,
                         "%zu optimisers and %zu groups are too many: optimisers times (groups + 1) "
                         "may be %d",
                         n, p->n_groups, LKSI_MAX_ROWS);
    t->optimizer = lksi_alloc(n, sizeof *t->optimizer);
    if (t->optimizer == NULL)
        return LKS_E_MEMORY;
    for (size_t k = 0; k < n && st == LKS_OK; k++) {
        struct lksi_optimizer *o = &t->optimizer[t->n_optimizer++];
        st = lksi_optimizer_check(&from[k]);
        if (st == LKS_OK)
            st = check_patterns(t, from[k].params, from[k].n_params, "optimizers");
        if (st != LKS_OK)
            break;
        o->o = from[k];
        o->o.params = NULL;
        o->o.n_params = 0;
        o->o.loss = NULL;
        o->o.every = from[k].every > 0 ? from[k].every : 1;
        o->power1 = o->power2 = 1.0;
        if (from[k].loss != NULL && (o->o.loss = lksi_strdup(from[k].loss)) == NULL)
            st = LKS_E_MEMORY;
    }
    return st;
}

static lks_status find_optimizer(struct lks_trainer *t, size_t i, const struct lks_optimizer *from)
{
    const char *name = t->model->param[i].name;
    int found = -1;
    for (size_t k = 0; k < t->n_optimizer; k++) {
        if (from != NULL && from[k].n_params > 0 && !fits(from[k].params, from[k].n_params, name))
            continue;
        if (found >= 0)
            return lksi_fail(LKS_E_ARGUMENT,
                             "parameter `%s` belongs to optimisers %d and %zu; name it in one of "
                             "them",
                             name, found + 1, k + 1);
        found = (int)k;
    }
    if (found < 0)
        return lksi_fail(LKS_E_ARGUMENT,
                         "parameter `%s` belongs to no optimiser; name it in `params` of one, or in "
                         "`frozen`",
                         name);
    t->place[i].optimizer = found;
    return LKS_OK;
}

static lks_status place_params(struct lks_trainer *t)
{
    const struct lks_trainer_params *p = &t->params;
    size_t width = p->n_groups + 1;
    for (size_t i = 0; i < t->model->n_param; i++) {
        const char *name = t->model->param[i].name;
        size_t group = 0;
        lks_status st;
        t->place[i].optimizer = -1;
        if (fits(p->frozen, p->n_frozen, name))
            continue;
        st = find_optimizer(t, i, p->optimizers);
        if (st != LKS_OK)
            return st;
        while (group < p->n_groups &&
               !fits(p->groups[group].params, p->groups[group].n_params, name))
            group++;
        t->place[i].row = (size_t)t->place[i].optimizer * width + group;
    }
    return LKS_OK;
}

static lks_status make_rows(struct lks_trainer *t)
{
    size_t width = t->params.n_groups + 1;
    t->n_row = t->n_optimizer * width;
    t->row = lksi_alloc(t->n_row, sizeof *t->row);
    if (t->row == NULL)
        return LKS_E_MEMORY;
    for (size_t r = 0; r < t->n_row; r++) {
        const struct lks_param_group *g =
            r % width < width - 1 ? &t->params.groups[r % width] : NULL;
        t->row[r].lr_scale = g != NULL && g->lr_scale > 0 ? g->lr_scale : 1.0;
        t->row[r].weight_decay = g != NULL && g->has_weight_decay
                                     ? g->weight_decay
                                     : t->optimizer[r / width].o.weight_decay;
    }
    return LKS_OK;
}

/* ---- the arenas ---- */

/* Whether parameter a lies before b. */
static bool before(const struct lks_trainer *t, size_t a, size_t b)
{
    unsigned x = (unsigned)t->place[a].optimizer, y = (unsigned)t->place[b].optimizer;
    return x != y ? x < y /* frozen: the largest unsigned */
                  : strcmp(t->model->param[a].name, t->model->param[b].name) < 0;
}

static lks_status lay_out(struct lks_trainer *t)
{
    const struct lks_graph *g = t->model;
    for (size_t i = 0; i < g->n_param; i++) {
        size_t at = i;
        for (; at > 0 && before(t, i, t->order[at - 1]); at--)
            t->order[at] = t->order[at - 1];
        t->order[at] = i;
    }
    for (size_t at = 0; at < g->n_param; at++) {
        size_t i = t->order[at];
        int64_t n = lksi_desc_count(&g->value[g->param[i].value].desc);
        int64_t room = (n + LKSI_ARENA_ALIGN - 1) / LKSI_ARENA_ALIGN * LKSI_ARENA_ALIGN;
        t->place[i].offset = t->arena;
        if (t->place[i].optimizer >= 0) {
            struct lksi_optimizer *o = &t->optimizer[t->place[i].optimizer];
            if (o->n++ == 0) {
                o->start = t->arena;
                o->first = at;
            }
            o->count += room;
            t->trained += room;
        }
        t->arena += room;
    }
    for (size_t k = 0; k < t->n_optimizer; k++)
        if (t->optimizer[k].n == 0)
            return lksi_fail(LKS_E_ARGUMENT, "optimiser %zu (%s) has no parameters to train", k + 1,
                             lks_optimizer_name(t->optimizer[k].o.kind));
    return LKS_OK;
}

/* What checkpoints compare: which parameter has which numbers. */
static lks_status hash_groups(struct lks_trainer *t)
{
    struct lksi_str s = {0};
    lks_status st;
    if (t->params.n_groups == 0 && t->params.n_frozen == 0 && t->n_optimizer == 1) {
        strcpy(t->groups_sha256, "none");
        return LKS_OK;
    }
    for (size_t at = 0; at < t->model->n_param; at++) {
        const struct lksi_place *p = &t->place[t->order[at]];
        uint64_t bits[2] = {0, 0};
        if (p->optimizer >= 0) {
            memcpy(&bits[0], &t->row[p->row].lr_scale, sizeof bits[0]);
            memcpy(&bits[1], &t->row[p->row].weight_decay, sizeof bits[1]);
        }
        lksi_str_add(&s, "%s %d %016llx %016llx\n", t->model->param[t->order[at]].name,
                     p->optimizer, (unsigned long long)bits[0], (unsigned long long)bits[1]);
    }
    st = s.failed ? LKS_E_MEMORY : lksi_sha256_bytes(s.text, s.length, t->groups_sha256);
    free(s.text);
    return st;
}

lks_status lksi_groups_make(struct lks_trainer *t)
{
    size_t n = t->model->n_param;
    lks_status st = LKS_OK;
    t->place = lksi_alloc(n, sizeof *t->place);
    t->order = lksi_alloc(n, sizeof *t->order);
    if (t->place == NULL || t->order == NULL)
        return LKS_E_MEMORY;
    if (!(t->params.ema >= 0 && t->params.ema < 1))
        return lksi_fail(LKS_E_ARGUMENT, "ema is %g, expected 0 up to below 1", t->params.ema);
    if (t->params.evaluate_ema && t->params.ema == 0)
        return lksi_fail(LKS_E_ARGUMENT, "evaluate_ema needs an ema above 0");
    LKSI_TRY(take_optimizers(t));
    LKSI_TRY(check_groups(t));
    LKSI_TRY(place_params(t));
    LKSI_TRY(make_rows(t));
    LKSI_TRY(lay_out(t));
    LKSI_TRY(hash_groups(t));
    /* The caller's arrays may go. */
    t->params.optimizers = NULL;
    t->params.groups = NULL;
    t->params.frozen = NULL;
fail:
    return st;
}

void lksi_groups_free(struct lks_trainer *t)
{
    for (size_t k = 0; k < t->n_optimizer; k++)
        free((void *)(uintptr_t)t->optimizer[k].o.loss);
    free(t->optimizer);
    free(t->row);
    free(t->place);
    free(t->order);
}
