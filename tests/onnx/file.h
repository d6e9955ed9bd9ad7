/*
 * file.h - models and tensors of the ONNX project's node tests, read with protobuf-c.
 */
#ifndef LKS_TESTS_ONNX_FILE_H
#define LKS_TESTS_ONNX_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "onnx.pb-c.h"

#define ONNX_MAX_RANK 8

/* A tensor on the host. Floats in `f`, integers and booleans of any width in `i`; the other is
 * NULL. Types that are neither leave both NULL. */
struct onnx_tensor {
    char *name;
    int type; /* ONNX__TENSOR_PROTO__DATA_TYPE__... */
    int rank;
    int64_t dim[ONNX_MAX_RANK];
    int64_t count;
    float *f;
    int64_t *i;
};

/* Reads a .pb file of a TensorProto. False: no tensor (a sequence, an optional), or too many
 * dimensions. */
bool onnx_tensor_load(struct onnx_tensor *t, const char *path);
bool onnx_tensor_take(struct onnx_tensor *t, const Onnx__TensorProto *p);
void onnx_tensor_free(struct onnx_tensor *t);

/* Reads a .onnx file; free with onnx__model_proto__free_unpacked(m, NULL). NULL: unreadable. */
Onnx__ModelProto *onnx_model_load(const char *path);

/* Attributes of a node, with the default of the operator's specification. */
const Onnx__AttributeProto *onnx_attr(const Onnx__NodeProto *n, const char *name);
int64_t onnx_attr_int(const Onnx__NodeProto *n, const char *name, int64_t otherwise);
float onnx_attr_float(const Onnx__NodeProto *n, const char *name, float otherwise);
const char *onnx_attr_text(const Onnx__NodeProto *n, const char *name, const char *otherwise,
                           char *room, size_t size);
/* Adds one that the node does not have; false: it has it. */
bool onnx_attr_add(Onnx__NodeProto *n, const char *name, float value);
/* The integers of a list; 0 if it is absent. At most ONNX_MAX_RANK * 2. */
int onnx_attr_ints(const Onnx__NodeProto *n, const char *name, int64_t *out);

#endif
