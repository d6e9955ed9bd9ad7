/*
 * shape.h - layers that move elements: other shapes, parts, joins, borders, other orders, other
 * sizes. They copy bits, the bilinear resize aside.
 *
 * Shapes are those of one sample, and axes are counted without the batch: 0 is the first axis of a
 * sample, -1 the last. How the batch is split never matters. A failure is LKS_E_ARGUMENT and names
 * the shape and what would be right. A sample has at most 4 axes.
 */
#ifndef LOCKSTEP_SHAPE_H
#define LOCKSTEP_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include <lockstep/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LKS_MAX_AXES 4

/* *y is `rank` dimensions of one number in every sample, e.g. the state that a recurrent network
 * begins with. The graph must have an input of floats, which gives the size of the batch. */
LKS_API lks_status lks_graph_constant(lks_graph *graph, float value, int rank, const int64_t *dims,
                                      lks_value *y);

/* Adds a view of [H,W,C] as [H*W*C], in that order. */
LKS_API lks_status lks_graph_flatten(lks_graph *graph, lks_value x, lks_value *y);

/* Adds a view of the same elements, in their order, as `rank` dimensions. One may be -1 and is
 * worked out; 0 takes the dimension of x at that place. Nothing is copied. */
LKS_API lks_status lks_graph_reshape(lks_graph *graph, lks_value x, int rank, const int64_t *dims,
                                     lks_value *y);

/* Axis k of y is axis order[k] of x: a permutation of all axes. */
LKS_API lks_status lks_graph_transpose(lks_graph *graph, lks_value x, const int *order,
                                       lks_value *y);

/* Joins n values along `axis`; all other dimensions are equal. */
LKS_API lks_status lks_graph_concat(lks_graph *graph, int n, const lks_value *x, int axis,
                                    lks_value *y);
/* Joins n values of one shape along a new axis, which stands at `axis` of y. */
LKS_API lks_status lks_graph_stack(lks_graph *graph, int n, const lks_value *x, int axis,
                                   lks_value *y);

/*
 * Elements begin, begin + step, ... before `end` of each axis. A negative begin or end counts from
 * the end of the axis. Zero as step means 1; as end: to the last, or of a negative step to the first
 * element; as begin of a negative step: the last element. So all zero takes everything.
 */
struct lks_slice_params {
    int64_t begin[LKS_MAX_AXES], end[LKS_MAX_AXES], step[LKS_MAX_AXES];
};
#ifndef __cplusplus
#define lks_slice_params(...) (&(struct lks_slice_params){__VA_ARGS__})
#endif
/* All zero. Thread-safe. */
LKS_API struct lks_slice_params lks_slice_params_default(void);
LKS_API lks_status lks_graph_slice(lks_graph *graph, lks_value x,
                                   const struct lks_slice_params *params, lks_value *y);
/* Element `index` (negative: from the end) of `axis`, which y has no more. x has two axes or more. */
LKS_API lks_status lks_graph_select(lks_graph *graph, lks_value x, int axis, int64_t index,
                                    lks_value *y);

typedef enum lks_pad_mode {
    LKS_PAD_CONSTANT,
    LKS_PAD_EDGE,   /* the outermost element again */
    LKS_PAD_REFLECT /* mirrored at the outermost element, which is not repeated */
} lks_pad_mode;

/* Elements in front of and behind each axis. */
struct lks_pad_params {
    int64_t before[LKS_MAX_AXES], after[LKS_MAX_AXES];
    lks_pad_mode mode;
    float value; /* of LKS_PAD_CONSTANT */
};
#ifndef __cplusplus
#define lks_pad_params(...) (&(struct lks_pad_params){__VA_ARGS__})
#endif
/* All zero. Thread-safe. */
LKS_API struct lks_pad_params lks_pad_params_default(void);
/* Gradients of repeated elements are added: of LKS_PAD_EDGE in the order of y, of LKS_PAD_REFLECT
 * front border, middle, back border, an axis after the other from the last. */
LKS_API lks_status lks_graph_pad(lks_graph *graph, lks_value x,
                                 const struct lks_pad_params *params, lks_value *y);

typedef enum lks_resize_mode { LKS_RESIZE_NEAREST, LKS_RESIZE_BILINEAR } lks_resize_mode;

/* Where output o of `out` is read in an axis of `in` elements. */
typedef enum lks_resize_place {
    LKS_PLACE_USUAL,       /* nearest: LKS_PLACE_CORNER, bilinear: LKS_PLACE_HALF_PIXEL */
    LKS_PLACE_CORNER,      /* o * in/out */
    LKS_PLACE_HALF_PIXEL,  /* (o + 1/2) * in/out - 1/2 */
    LKS_PLACE_ALIGN_CORNERS /* o * (in - 1)/(out - 1); 0 if out is 1 */
} lks_resize_place;

/* How nearest rounds that place to an element. */
typedef enum lks_resize_round {
    LKS_ROUND_DOWN,
    LKS_ROUND_UP,
    LKS_ROUND_HALF_DOWN, /* to the nearest; a half goes down */
    LKS_ROUND_HALF_UP
} lks_resize_round;

/* Places are exact ratios of whole numbers; what lies outside is moved to the border. */
struct lks_resize_params {
    int32_t factor;        /* both sizes times this; or */
    int32_t height, width; /* the sizes of y; 0: as x */
    lks_resize_mode mode;
    lks_resize_place place;
    lks_resize_round round;
};
#ifndef __cplusplus
#define lks_resize_params(...) (&(struct lks_resize_params){__VA_ARGS__})
#endif
/* All zero. Thread-safe. */
LKS_API struct lks_resize_params lks_resize_params_default(void);
/* An image [H,W,C] in another size; of a sequence [L,C] the length, for which `width` stands. The
 * weights of LKS_RESIZE_BILINEAR are single divisions, their order is in numerics.md. */
LKS_API lks_status lks_graph_resize(lks_graph *graph, lks_value x,
                                    const struct lks_resize_params *params, lks_value *y);

/* [H,W,b*b*C] as [H*b,W*b,C]: channel (i*b + j)*C + c goes to row h*b + i and column w*b + j. */
LKS_API lks_status lks_graph_depth_to_space(lks_graph *graph, lks_value x, int32_t block,
                                            lks_value *y);
/* The way back. */
LKS_API lks_status lks_graph_space_to_depth(lks_graph *graph, lks_value x, int32_t block,
                                            lks_value *y);

#ifdef __cplusplus
}
#endif
#endif
