/*
 * weights.c - parameters in files: the canonical safetensors of numerics.md, rule 15.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fenv.h"
#include "train/weights.h"

void lksi_tensors_free(struct lksi_tensors *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free((void *)s->tensor[i].name);
        free((void *)s->tensor[i].data);
    }
    free(s->tensor);
    memset(s, 0, sizeof *s);
}

static void set_shape(struct lksi_st_tensor *x, const struct lksi_desc *d)
{
    x->dims = (unsigned)d->rank;
    for (int i = 0; i < d->rank; i++)
        x->dim[i] = (uint64_t)d->dim[i];
    x->bytes = (size_t)lksi_desc_count(d) * sizeof(float);
}

/* Of `params` all parameters and running statistics; of another arena what it holds. */
static size_t tensor_count(const struct lks_trainer *t)
{
    return t->model->n_param + t->model->n_buffer;
}

/* Tensor `i` and what stands before its name in a file; NULL if the arena does not hold it. */
static const struct lksi_gvalue *tensor_at(const struct lks_trainer *t, const char *arena, size_t i,
                                           struct lksi_str *name)
{
    const struct lks_graph *g = t->model;
    const struct lksi_gvalue *v =
        &g->value[i < g->n_param ? g->param[i].value : g->buffer[i - g->n_param].value];
    const struct lksi_optimizer *k = NULL;
    int s = 0;
    if (strcmp(arena, "params") == 0) {
        lksi_str_add(name, "%s", v->name);
        return v;
    }
    if (i < g->n_param && t->place[i].optimizer >= 0)
        k = &t->optimizer[t->place[i].optimizer];
    if (k == NULL)
        return NULL;
    if (strcmp(arena, "ema") == 0) {
        lksi_str_add(name, "ema/%s", v->name);
        return v;
    }
    s = arena[strlen("state")] - '0';
    if (s >= lksi_optimizer_states(k))
        return NULL;
    lksi_str_add(name, "%s/%s", lksi_state_name(k, s), v->name);
    return v;
}

static lks_status append(struct lksi_tensors *s, const struct lksi_gvalue *v, char *name,
                         float **data)
{
    if (!lksi_grow(&s->tensor, &s->capacity, s->count + 1, sizeof *s->tensor))
        return LKS_E_MEMORY;
    *data = lksi_alloc((size_t)lksi_desc_count(&v->desc), sizeof **data);
    if (*data == NULL)
        return LKS_E_MEMORY;
    s->tensor[s->count] = (struct lksi_st_tensor){.name = name, .dtype = LKSI_ST_F32, .data = *data};
    set_shape(&s->tensor[s->count++], &v->desc);
    return LKS_OK;
}

lks_status lksi_tensors_read(struct lksi_tensors *s, struct lks_trainer *t, const char *arena)
{
    for (size_t i = 0; i < tensor_count(t); i++) {
        struct lksi_str name = {0};
        const struct lksi_gvalue *v = tensor_at(t, arena, i, &name);
        float *data;
        lks_status st;
        if (v == NULL)
            continue;
        st = name.failed ? LKS_E_MEMORY : append(s, v, name.text, &data);
        if (st != LKS_OK) {
            free(name.text);
            return st;
        }
        st = lksi_param_read(t, arena, v->name, data, (size_t)lksi_desc_count(&v->desc));
        if (st != LKS_OK)
            return st;
    }
    return LKS_OK;
}

static lks_status check_tensor(const struct lksi_st_tensor *x, const char *path, const char *name,
                               const struct lksi_desc *d)
{
    struct lksi_st_tensor want = {0};
    char shape[96];
    if (x == NULL)
        return lksi_fail(LKS_E_INPUT,
                         "%s: there is no tensor `%s`; the file belongs to another network", path,
                         name);
    set_shape(&want, d);
    if (x->dtype != LKSI_ST_F32 || x->dims != want.dims ||
        memcmp(x->dim, want.dim, want.dims * sizeof x->dim[0]) != 0)
        return lksi_fail(LKS_E_INPUT,
                         "%s: tensor `%s` is not F32 %s; the file belongs to another network", path,
                         name, lksi_desc_text(d, shape));
    return LKS_OK;
}

lks_status lksi_tensors_check(const struct lks_trainer *t, const struct lksi_safetensors *file,
                              const char *path, const char *arena)
{
    for (size_t i = 0; i < tensor_count(t); i++) {
        struct lksi_str name = {0};
        const struct lksi_gvalue *v = tensor_at(t, arena, i, &name);
        lks_status st = LKS_OK;
        if (name.failed)
            st = LKS_E_MEMORY;
        else if (v != NULL)
            st = check_tensor(lksi_safetensors_find(file, name.text), path, name.text, &v->desc);
        free(name.text);
        if (st != LKS_OK)
            return st;
    }
    return LKS_OK;
}

lks_status lksi_tensors_write(struct lks_trainer *t, const struct lksi_safetensors *file,
                              const char *arena)
{
    for (size_t i = 0; i < tensor_count(t); i++) {
        struct lksi_str name = {0};
        const struct lksi_gvalue *v = tensor_at(t, arena, i, &name);
        lks_status st = name.failed ? LKS_E_MEMORY : LKS_OK;
        if (st == LKS_OK && v != NULL) {
            const struct lksi_st_tensor *x = lksi_safetensors_find(file, name.text);
            st = lksi_param_write(t, arena, v->name, x->data, x->bytes / sizeof(float));
        }
        free(name.text);
        if (st != LKS_OK)
            return st;
    }
    return LKS_OK;
}

/* Puts the averages in place of the parameters that were read. */
static lks_status take_averages(struct lksi_tensors *s, struct lks_trainer *t)
{
    lks_status st = LKS_OK;
    for (size_t i = 0; i < t->model->n_param && st == LKS_OK; i++)
        if (t->place[i].optimizer >= 0)
            st = lksi_param_read(t, "ema", s->tensor[i].name,
                                 (float *)(uintptr_t)s->tensor[i].data,
                                 s->tensor[i].bytes / sizeof(float));
    return st;
}

/* Writes the file, or only tells its digest. */
static lks_status write_or_hash(struct lks_trainer *t, bool average, const char *path, char *hex)
{
    struct lksi_tensors s = {0};
    lks_status st = lksi_tensors_read(&s, t, "params");
    if (st == LKS_OK && average)
        st = take_averages(&s, t);
    if (st == LKS_OK)
        st = path != NULL ? lksi_safetensors_write(path, s.tensor, s.count, NULL, 0)
                          : lksi_safetensors_sha256(s.tensor, s.count, NULL, 0, hex);
    lksi_tensors_free(&s);
    return st;
}

/* A checkpoint holds the optimisers' states too. */
static bool is_checkpoint(const struct lksi_safetensors *file)
{
    return lksi_safetensors_meta(file, "step") != NULL &&
           lksi_safetensors_meta(file, "graph") != NULL;
}

/* Reads a file that must hold exactly the network's tensors, or a checkpoint with them. */
static lks_status read_file(const struct lks_trainer *t, const char *path,
                            struct lksi_safetensors **out)
{
    struct lksi_safetensors *file = NULL;
    lks_status st = lksi_safetensors_read(path, &file);
    if (st == LKS_OK)
        st = lksi_tensors_check(t, file, path, "params");
    if (st == LKS_OK && file->count != tensor_count(t) && !is_checkpoint(file))
        st = lksi_fail(LKS_E_INPUT,
                       "%s: the file holds %zu tensors, the network has %zu parameters and running "
                       "statistics",
                       path, file->count, tensor_count(t));
    if (st == LKS_OK)
        *out = file;
    else
        lksi_safetensors_destroy(&file);
    return st;
}

static lks_status load(struct lks_trainer *t, const char *path)
{
    struct lksi_safetensors *file = NULL;
    lks_status st = read_file(t, path, &file);
    if (st == LKS_OK)
        st = lksi_tensors_write(t, file, "params");
    lksi_safetensors_destroy(&file);
    return st;
}

lks_status lksi_weights_check(const lks_graph *graph, const struct lks_trainer_params *params,
                              const char *path)
{
    struct lks_trainer *t = NULL;
    struct lksi_safetensors *file = NULL;
    lks_status st = lksi_trainer_describe(&t, graph, params);
    if (st == LKS_OK)
        st = read_file(t, path, &file);
    lksi_safetensors_destroy(&file);
    lks_trainer_destroy(&t);
    return st;
}

lks_status lks_trainer_save_weights(lks_trainer *t, const char *path)
{
    struct lksi_fenv env;
    lks_status st;
    if (t == NULL || path == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_save_weights: an argument is NULL");
    lksi_fenv_enter(&env);
    st = write_or_hash(t, false, path, NULL);
    lksi_fenv_leave(&env);
    return st;
}

lks_status lks_trainer_save_ema(lks_trainer *t, const char *path)
{
    struct lksi_fenv env;
    lks_status st;
    if (t == NULL || path == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_save_ema: an argument is NULL");
    if (t->params.ema == 0)
        return lksi_fail(LKS_E_ARGUMENT, "there is no average: set `ema` of lks_trainer_params");
    lksi_fenv_enter(&env);
    st = write_or_hash(t, true, path, NULL);
    lksi_fenv_leave(&env);
    return st;
}

lks_status lks_trainer_weights_sha256(lks_trainer *t, char *hex)
{
    struct lksi_fenv env;
    lks_status st;
    if (t == NULL || hex == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_weights_sha256: an argument is NULL");
    lksi_fenv_enter(&env);
    st = write_or_hash(t, false, NULL, hex);
    lksi_fenv_leave(&env);
    return st;
}

lks_status lks_trainer_load_weights(lks_trainer *t, const char *path)
{
    struct lksi_fenv env;
    lks_status st;
    if (t == NULL || path == NULL)
        return lksi_fail(LKS_E_ARGUMENT, "lks_trainer_load_weights: an argument is NULL");
    lksi_fenv_enter(&env);
    st = load(t, path);
    lksi_fenv_leave(&env);
    return st;
}
