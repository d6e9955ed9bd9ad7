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

/* How many tensors an arena has in a file: running statistics stand with the parameters. */
static size_t tensor_count(const struct lks_trainer *t, const char *arena)
{
    return t->model->n_param + (strcmp(arena, "params") == 0 ? t->model->n_buffer : 0);
}

static const struct lksi_gvalue *tensor_value(const struct lks_trainer *t, size_t i)
{
    const struct lks_graph *g = t->model;
    return &g->value[i < g->n_param ? g->param[i].value : g->buffer[i - g->n_param].value];
}

lks_status lksi_tensors_read(struct lksi_tensors *s, struct lks_trainer *t, const char *arena,
                             const char *prefix)
{
    for (size_t i = 0; i < tensor_count(t, arena); i++) {
        const struct lksi_gvalue *p = tensor_value(t, i);
        const struct lksi_desc *d = &p->desc;
        struct lksi_str name = {0};
        float *data;
        if (!lksi_grow(&s->tensor, &s->capacity, s->count + 1, sizeof *s->tensor))
            return LKS_E_MEMORY;
        lksi_str_add(&name, "%s%s", prefix, p->name);
        data = lksi_alloc((size_t)lksi_desc_count(d), sizeof *data);
        s->tensor[s->count] = (struct lksi_st_tensor){.name = name.text, .dtype = LKSI_ST_F32,
                                                      .data = data};
        set_shape(&s->tensor[s->count], d);
        s->count++;
        if (name.failed || data == NULL)
            return LKS_E_MEMORY;
        lks_status st = lksi_param_read(t, arena, p->name, data, (size_t)lksi_desc_count(d));
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
                              const char *path, const char *arena, const char *prefix)
{
    for (size_t i = 0; i < tensor_count(t, arena); i++) {
        const struct lksi_gvalue *p = tensor_value(t, i);
        struct lksi_str name = {0};
        lksi_str_add(&name, "%s%s", prefix, p->name);
        lks_status st = name.failed ? LKS_E_MEMORY
                                    : check_tensor(lksi_safetensors_find(file, name.text), path,
                                                   name.text, &p->desc);
        free(name.text);
        if (st != LKS_OK)
            return st;
    }
    return LKS_OK;
}

lks_status lksi_tensors_write(struct lks_trainer *t, const struct lksi_safetensors *file,
                              const char *arena, const char *prefix)
{
    for (size_t i = 0; i < tensor_count(t, arena); i++) {
        const struct lksi_gvalue *p = tensor_value(t, i);
        struct lksi_str name = {0};
        lks_status st;
        lksi_str_add(&name, "%s%s", prefix, p->name);
        if (name.failed)
            return LKS_E_MEMORY;
        const struct lksi_st_tensor *x = lksi_safetensors_find(file, name.text);
        st = lksi_param_write(t, arena, p->name, x->data, x->bytes / sizeof(float));
        free(name.text);
        if (st != LKS_OK)
            return st;
    }
    return LKS_OK;
}

/* Writes the file, or only tells its digest. */
static lks_status write_or_hash(struct lks_trainer *t, const char *path, char *hex)
{
    struct lksi_tensors s = {0};
    lks_status st = lksi_tensors_read(&s, t, "params", "");
    if (st == LKS_OK)
        st = path != NULL ? lksi_safetensors_write(path, s.tensor, s.count, NULL, 0)
                          : lksi_safetensors_sha256(s.tensor, s.count, NULL, 0, hex);
    lksi_tensors_free(&s);
    return st;
}

/* Reads a file that must hold exactly the network's tensors. */
static lks_status read_file(const struct lks_trainer *t, const char *path,
                            struct lksi_safetensors **out)
{
    struct lksi_safetensors *file = NULL;
    lks_status st = lksi_safetensors_read(path, &file);
    if (st == LKS_OK)
        st = lksi_tensors_check(t, file, path, "params", "");
    if (st == LKS_OK && file->count != tensor_count(t, "params"))
        st = lksi_fail(LKS_E_INPUT,
                       "%s: the file holds %zu tensors, the network has %zu parameters and running "
                       "statistics",
                       path, file->count, tensor_count(t, "params"));
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
        st = lksi_tensors_write(t, file, "params", "");
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
    st = write_or_hash(t, path, NULL);
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
    st = write_or_hash(t, NULL, hex);
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
