/*
 * file.c - reading protobuf files, see file.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"

#define LARGEST ((int64_t)1 << 28) /* elements */

enum {
    FLOAT = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
    UINT8 = ONNX__TENSOR_PROTO__DATA_TYPE__UINT8,
    INT8 = ONNX__TENSOR_PROTO__DATA_TYPE__INT8,
    UINT16 = ONNX__TENSOR_PROTO__DATA_TYPE__UINT16,
    INT16 = ONNX__TENSOR_PROTO__DATA_TYPE__INT16,
    INT32 = ONNX__TENSOR_PROTO__DATA_TYPE__INT32,
    INT64 = ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
    BOOL = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL,
    UINT32 = ONNX__TENSOR_PROTO__DATA_TYPE__UINT32,
    UINT64 = ONNX__TENSOR_PROTO__DATA_TYPE__UINT64
};

static unsigned char *read_all(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    unsigned char *data = NULL;
    size_t n = 0, cap = 0;
    if (f == NULL)
        return NULL;
    do {
        if (n == cap) {
            unsigned char *more = realloc(data, cap = cap * 2 + 65536);
            if (more == NULL)
                break;
            data = more;
        }
        n += fread(data + n, 1, cap - n, f);
    } while (!feof(f) && !ferror(f));
    fclose(f);
    *bytes = n;
    return data;
}

Onnx__ModelProto *onnx_model_load(const char *path)
{
    size_t bytes = 0;
    unsigned char *data = read_all(path, &bytes);
    Onnx__ModelProto *m = data != NULL ? onnx__model_proto__unpack(NULL, bytes, data) : NULL;
    free(data);
    return m;
}

static int width_of(int type)
{
    switch (type) {
    case UINT8:
    case INT8:
    case BOOL:
        return 1;
    case UINT16:
    case INT16:
        return 2;
    case INT32:
    case UINT32:
        return 4;
    case INT64:
    case UINT64:
        return 8;
    default:
        return 0;
    }
}

static int64_t raw_integer(const unsigned char *p, int width, int type)
{
    uint64_t v = 0;
    for (int b = 0; b < width; b++)
        v |= (uint64_t)p[b] << (8 * b);
    if (width < 8 && (type == INT8 || type == INT16 || type == INT32) &&
        (v >> (8 * width - 1)) != 0)
        v |= ~(uint64_t)0 << (8 * width);
    return (int64_t)v;
}

static bool take_integers(struct onnx_tensor *t, const Onnx__TensorProto *p, int width)
{
    t->i = calloc((size_t)t->count + 1, sizeof *t->i);
    for (int64_t e = 0; t->i != NULL && e < t->count; e++) {
        if (p->has_raw_data && p->raw_data.len >= (size_t)(e + 1) * (size_t)width)
            t->i[e] = raw_integer(p->raw_data.data + e * width, width, t->type);
        else if ((size_t)e < p->n_int64_data)
            t->i[e] = p->int64_data[e];
        else if ((size_t)e < p->n_int32_data)
            t->i[e] = p->int32_data[e];
        else if ((size_t)e < p->n_uint64_data)
            t->i[e] = (int64_t)p->uint64_data[e];
        else
            return false;
    }
    return t->i != NULL;
}

static bool take_floats(struct onnx_tensor *t, const Onnx__TensorProto *p)
{
    size_t bytes = (size_t)t->count * sizeof(float);
    t->f = calloc((size_t)t->count + 1, sizeof *t->f);
    if (t->f == NULL)
        return false;
    if (t->count == 0)
        return true;
    if (p->has_raw_data && p->raw_data.len == bytes)
        memcpy(t->f, p->raw_data.data, bytes);
    else if (p->n_float_data == (size_t)t->count)
        memcpy(t->f, p->float_data, bytes);
    else
        return false;
    return true;
}

bool onnx_tensor_take(struct onnx_tensor *t, const Onnx__TensorProto *p)
{
    memset(t, 0, sizeof *t);
    if (p->n_dims > ONNX_MAX_RANK)
        return false;
    t->name = strdup(p->name != NULL ? p->name : "");
    t->type = p->has_data_type ? p->data_type : 0;
    t->rank = (int)p->n_dims;
    t->count = 1;
    for (int k = 0; k < t->rank; k++) {
        t->dim[k] = p->dims[k];
        if (p->dims[k] < 0 || p->dims[k] > LARGEST / (t->count > 0 ? t->count : 1))
            return false; /* the file of a sequence, read as a tensor */
        t->count *= p->dims[k];
    }
    if (t->type == FLOAT)
        return take_floats(t, p);
    return width_of(t->type) == 0 || take_integers(t, p, width_of(t->type));
}

bool onnx_tensor_load(struct onnx_tensor *t, const char *path)
{
    size_t bytes = 0;
    unsigned char *data = read_all(path, &bytes);
    Onnx__TensorProto *p = data != NULL ? onnx__tensor_proto__unpack(NULL, bytes, data) : NULL;
    bool good = p != NULL && p->has_data_type && onnx_tensor_take(t, p);
    if (p != NULL)
        onnx__tensor_proto__free_unpacked(p, NULL);
    free(data);
    return good;
}

void onnx_tensor_free(struct onnx_tensor *t)
{
    free(t->name);
    free(t->f);
    free(t->i);
    memset(t, 0, sizeof *t);
}

const Onnx__AttributeProto *onnx_attr(const Onnx__NodeProto *n, const char *name)
{
    for (size_t i = 0; i < n->n_attribute; i++)
        if (strcmp(n->attribute[i]->name, name) == 0)
            return n->attribute[i];
    return NULL;
}

int64_t onnx_attr_int(const Onnx__NodeProto *n, const char *name, int64_t otherwise)
{
    const Onnx__AttributeProto *a = onnx_attr(n, name);
    return a != NULL ? a->i : otherwise;
}

float onnx_attr_float(const Onnx__NodeProto *n, const char *name, float otherwise)
{
    const Onnx__AttributeProto *a = onnx_attr(n, name);
    return a != NULL ? a->f : otherwise;
}

const char *onnx_attr_text(const Onnx__NodeProto *n, const char *name, const char *otherwise,
                           char *room, size_t size)
{
    const Onnx__AttributeProto *a = onnx_attr(n, name);
    if (a == NULL)
        return otherwise;
    snprintf(room, size, "%.*s", (int)a->s.len, (const char *)a->s.data);
    return room;
}

int onnx_attr_ints(const Onnx__NodeProto *n, const char *name, int64_t *out)
{
    const Onnx__AttributeProto *a = onnx_attr(n, name);
    int count = a != NULL ? (int)a->n_ints : 0;
    count = count > 2 * ONNX_MAX_RANK ? 2 * ONNX_MAX_RANK : count;
    for (int i = 0; i < count; i++)
        out[i] = a->ints[i];
    return count;
}

bool onnx_attr_add(Onnx__NodeProto *n, const char *name, float value)
{
    Onnx__AttributeProto *a, **more;
    if (onnx_attr(n, name) != NULL)
        return false;
    a = malloc(sizeof *a);
    more = realloc(n->attribute, (n->n_attribute + 1) * sizeof *more);
    if (a == NULL || more == NULL)
        abort();
    onnx__attribute_proto__init(a); /* freed with the model */
    a->name = strdup(name);
    a->has_type = a->has_f = 1;
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
    a->f = value;
    more[n->n_attribute++] = a;
    n->attribute = more;
    return true;
}
