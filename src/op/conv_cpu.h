/*
 * conv_cpu.h - what the CPU schedules of the three convolution operators share: tiles, geometry.
 */
#ifndef LKSI_OP_CONV_CPU_H
#define LKSI_OP_CONV_CPU_H

#include <string.h>

#include "op/conv2d.h"

/* Positions of a work-item's tile, vectors of output channels, lanes of a vector. Speed only. */
struct lksi_conv_tile {
    U32 mr, nv, vec;
};

/* Elements of a weight chain that a work-item packs: PACKED in the kernels. */
#define LKSI_CONV_PACKED 64

/* NULL, or why no CPU schedule of a convolution serves the call. */
const char *lksi_conv_cpu_declines(const struct lksi_call *call, const struct lksi_limits *dev);
/* True if float16 is one register of the host's processor, which a CPU device runs on. */
bool lksi_cpu_wide(void);
/* The tile `wanted`, or (0) the best by an estimate, for `wide` output channels; `inside`: it must not
 * be wider than these. */
struct lksi_conv_tile lksi_conv_cpu_tile(U32 wide, bool inside, int wanted);
/* Its name as a choice of tuning; false past the last. */
bool lksi_conv_cpu_tile_name(U32 wide, bool inside, int wanted, char text[LKSI_CHOICE_TEXT]);
/* True if lanes of x meet lanes of the weights: one channel a group on either side. */
bool lksi_conv_cpu_depth(const struct lks_conv_dims *d);

/* The frame of zeros around x that the taps reach into (cl/op/conv_frame.h). */
struct lksi_conv_frame {
    bool fits; /* false: too many positions */
    bool copy; /* false: no tap leaves the image, x is its own frame */
    U64 h, w;  /* rows and columns */
};
struct lksi_conv_frame lksi_conv_frame(const struct lks_conv_dims *d);
/* The launch that makes it from input 0, into workspace `work`. */
void lksi_conv_frame_launch(struct lksi_launch *l, const struct lks_conv_dims *d,
                            const struct lksi_conv_frame *f, int work);

/* How many tiles of `flops` operations each a work-item takes, of `tiles` in all; `wanted` is a
 * choice of the tunable "work". */
U32 lksi_conv_cpu_per_item(double flops, U64 tiles, const struct lksi_limits *dev, int wanted);
bool lksi_conv_cpu_work(const struct lksi_call *call, const struct lksi_limits *dev, int index,
                        char text[LKSI_CHOICE_TEXT]);

/* Channels of x below which it is put into a frame. */
#define LKSI_CONV_FEW 16

static inline U64 lksi_div_up(U64 a, U64 b)
{
    return (a + b - 1) / b;
}

static inline void lksi_launch_args(struct lksi_launch *l, const struct lksi_arg *arg, int n)
{
    l->n_arg = n;
    memcpy(l->arg, arg, (size_t)n * sizeof *arg);
}

/* Geometry of a launch of single work-items. */
static inline void lksi_launch_size(struct lksi_launch *l, U64 x, U64 y, U64 z)
{
    l->dims = 3;
    l->global[0] = (size_t)x;
    l->global[1] = (size_t)y;
    l->global[2] = (size_t)z;
    l->local[0] = l->local[1] = l->local[2] = 1;
}

/* Depthwise convolutions (conv_depth.c), on CPU devices and GPUs. */
const char *lksi_conv_depth_declines(const struct lksi_call *call, const struct lksi_limits *dev);
void lksi_conv_depth_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                            struct lksi_recipe *r);
void lksi_conv_depth_grad_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                                 struct lksi_recipe *r);

const char *lksi_conv_depth_weight_declines(const struct lksi_call *call,
                                            const struct lksi_limits *dev);
void lksi_conv_depth_weight_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                                   struct lksi_recipe *r);

/* At most four output channels (conv_few.c), on CPU devices. */
const char *lksi_conv_few_declines(const struct lksi_call *call, const struct lksi_limits *dev);
void lksi_conv_few_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                          struct lksi_recipe *r);
const char *lksi_conv_few_grad_declines(const struct lksi_call *call,
                                        const struct lksi_limits *dev);
void lksi_conv_few_grad_recipe(const struct lksi_call *call, const struct lksi_limits *dev,
                               struct lksi_recipe *r);

extern const struct lksi_schedule lksi_conv2d_schedules[];
extern const struct lksi_schedule lksi_conv2d_data_grad_schedules[];
extern const struct lksi_schedule lksi_conv2d_weight_grad_schedules[];

#endif
