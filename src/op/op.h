/*
 * op.h - what an operator is: shapes, gradient, contract items, schedules. See
 * docs/adding-an-op.md. An operator knows nothing of graphs or plans; it is given calls.
 */
#ifndef LKSI_OP_H
#define LKSI_OP_H

#include "base/base.h"
#include "contract/num.h"
#include "rt/rt.h"

#define LKSI_MAX_RANK   5
#define LKSI_MAX_IN     8
#define LKSI_MAX_OUT    4
#define LKSI_DIMS_MAX   512 /* bytes of a contract's dims struct */
#define LKSI_MAX_ARG    20
#define LKSI_MAX_LAUNCH 5
#define LKSI_MAX_WORK   3
#define LKSI_MAX_TUNABLE 2
#define LKSI_CHOICE_TEXT 48

enum lksi_dtype { LKSI_F32, LKSI_I32 };

/* Type and shape of a tensor, outermost dimension first (NHWC for images). All items 4 bytes. */
struct lksi_desc {
    enum lksi_dtype dtype;
    int rank;
    int64_t dim[LKSI_MAX_RANK];
};

int64_t lksi_desc_count(const struct lksi_desc *d);              /* elements */
/* At most 2^48 elements, so that sums of sizes and bytes stay far from overflow. */
bool lksi_desc_fits(const struct lksi_desc *d);
bool lksi_desc_equal(const struct lksi_desc *a, const struct lksi_desc *b);
struct lksi_desc lksi_desc_make(enum lksi_dtype dtype, int rank, ...); /* int64_t dims */
/* "[64,28,28,1]" into `text` (at least 96 bytes); returns text. */
const char *lksi_desc_text(const struct lksi_desc *d, char *text);
/* The coordinates of element `index`, "[0,3,5,7]", into `text` (at least 96 bytes); returns text. */
const char *lksi_desc_place(const struct lksi_desc *d, int64_t index, char *text);

/* One use of an operator: everything its functions may look at. */
struct lksi_call {
    const struct lksi_op *op;
    const void *attr;  /* the operator's attribute struct */
    uint32_t leaf;     /* samples a block of rule 8 */
    int n_in, n_out;
    struct lksi_desc in[LKSI_MAX_IN], out[LKSI_MAX_OUT];
    union {
        unsigned char bytes[LKSI_DIMS_MAX];
        uint64_t align;
    } dims;            /* the contract's dims struct, filled by `infer` */
    size_t dims_size;
};

/* ---- gradients: an operator asks a builder for further operators ---- */

typedef int lksi_value; /* a value of the builder's graph; LKSI_NONE for absent */
#define LKSI_NONE (-1)

struct lksi_builder {
    /* Adds operator `op` (by name); `out` receives its n_out values. */
    lks_status (*apply)(struct lksi_builder *b, const char *op, const void *attr, int n_in,
                        const lksi_value *in, lksi_value *out);
    const struct lksi_desc *(*desc)(struct lksi_builder *b, lksi_value v);
};

/* Adds operator `op` of the values given; its outputs go to `to`. */
#define lksi_apply(b, op, attr, to, ...)                                                           \
    (b)->apply((b), (op), (attr), (int)LKSI_COUNT(((lksi_value[]){__VA_ARGS__})),                  \
               (lksi_value[]){__VA_ARGS__}, (to))

/* What an operator's gradient function is given: one use of the operator and what flows back. */
struct lksi_backward {
    struct lksi_builder *b;
    const struct lksi_call *call;
    const lksi_value *in, *out;
    const lksi_value *dout; /* an output's gradient; LKSI_NONE where nothing flows */
    const bool *need;       /* the inputs whose gradient is asked for */
    lksi_value *din;        /* to be filled for those; LKSI_NONE, as it is found: it is zero */
};

/* The gradient of input k, if it is needed, is operator `op` of the values given. */
#define lksi_flow(g, k, op, attr, ...)                                                             \
    ((g)->need[k] ? lksi_apply((g)->b, op, attr, &(g)->din[k], __VA_ARGS__) : LKS_OK)

/* ---- schedules: descriptions of launches, no OpenCL calls ---- */

enum lksi_arg_kind {
    LKSI_ARG_IN,   /* input `index` */
    LKSI_ARG_OUT,  /* output `index` */
    LKSI_ARG_WORK, /* workspace `index` */
    LKSI_ARG_DIMS, /* the dims struct, by value */
    LKSI_ARG_U32,
    LKSI_ARG_U64,
    LKSI_ARG_F32,
    LKSI_ARG_LOCAL, /* u64 bytes of local memory */
    LKSI_ARG_TURN   /* u32: which time of those that the launch is repeated */
};

struct lksi_arg {
    enum lksi_arg_kind kind;
    union {
        int index;
        uint32_t u32;
        uint64_t u64;
        float f32;
    } u;
};
#define LKSI_IN(i)    ((struct lksi_arg){LKSI_ARG_IN, {.index = (i)}})
#define LKSI_OUT(i)   ((struct lksi_arg){LKSI_ARG_OUT, {.index = (i)}})
#define LKSI_WORK(i)  ((struct lksi_arg){LKSI_ARG_WORK, {.index = (i)}})
#define LKSI_DIMS     ((struct lksi_arg){LKSI_ARG_DIMS, {.index = 0}})
#define LKSI_U32(v)   ((struct lksi_arg){LKSI_ARG_U32, {.u32 = (uint32_t)(v)}})
#define LKSI_U64(v)   ((struct lksi_arg){LKSI_ARG_U64, {.u64 = (uint64_t)(v)}})
#define LKSI_F32V(v)  ((struct lksi_arg){LKSI_ARG_F32, {.f32 = (v)}})
#define LKSI_LOCAL(b) ((struct lksi_arg){LKSI_ARG_LOCAL, {.u64 = (b)}})
#define LKSI_TURN     ((struct lksi_arg){LKSI_ARG_TURN, {.u32 = 0}})

struct lksi_launch {
    const char *source;   /* embedded file under cl/, e.g. "op/conv2d_cpu.cl" */
    const struct lksi_op *plain; /* in place of `source`: the kernel made by lksi_op_plain_text */
    char defines[320];    /* "MR=6 NV=4" */
    const char *options;  /* extra build options, or NULL */
    const char *kernel;   /* name inside LKS_KERNEL() */
    int n_arg;
    struct lksi_arg arg[LKSI_MAX_ARG];
    int dims;
    size_t global[3], local[3]; /* local[0] 0: the implementation chooses */
    /* A host-side launch in place of a kernel (CLBlast); NULL for kernels. */
    lks_status (*host)(struct lksi_dev *dev, const struct lksi_call *call,
                       struct lksi_buf *const *in, struct lksi_buf *const *out,
                       struct lksi_buf *const *work);
};

/*
 * A parameter of a schedule that decides speed alone, such as its tile. The recipe has a choice of
 * its own, by an estimate; `lockstep tune` tries the others, which are counted from 1.
 */
struct lksi_tunable {
    const char *name; /* "tile"; NULL ends a list */
    /* What choice `index` is called for this call on this device ("64x64 8x8"); false past the
     * last. Files of tuning hold these words, so another meaning needs another word. */
    bool (*choice)(const struct lksi_call *call, const struct lksi_limits *dev, int index,
                   char text[LKSI_CHOICE_TEXT]);
};

/* What a schedule queues for one call, in order. `work` lives during the call only and may hold
 * anything at its start. */
struct lksi_recipe {
    int tuned[LKSI_MAX_TUNABLE]; /* set by the caller: choices of the tunables; 0: the recipe's own */
    int n_launch;
    struct lksi_launch launch[LKSI_MAX_LAUNCH];
    /* Launches [turn_from, turn_to) run `turns` times in a row, so that a workspace needs to hold a
     * slice of the work only; 0 or 1: once, like all others. */
    int turn_from, turn_to;
    uint32_t turns;
    int n_work;
    uint64_t work_bytes[LKSI_MAX_WORK];
};

struct lksi_schedule {
    const char *name; /* "cpu", "gpu", "clblast"; `plain` is made for every operator */
    /* NULL if it serves this call on this device, else the reason why not (static text). */
    const char *(*declines)(const struct lksi_call *call, const struct lksi_limits *dev);
    /* Fills a recipe, zero but for `tuned`. Called only where `declines` gave NULL. */
    void (*recipe)(const struct lksi_call *call, const struct lksi_limits *dev,
                   struct lksi_recipe *r);
    const struct lksi_tunable *tunables; /* NULL: none */
    int version; /* one more makes all times taken before void */
};

/* ---- the operator ---- */

/* Computes item `i` of the contract: elements [i*m, (i+1)*m) of each output, m = elements/items; or,
 * of operators that are `strided`, elements i, i + items, i + 2*items, ... of each output. */
typedef void (*lksi_item_fn)(const void *const *in, void *const *out, const void *dims, U64 i);
/* Computes parts [p0, p1) of all `ref_parts`; parts write disjoint elements. */
typedef void (*lksi_ref_fn)(const struct lksi_call *call, const void *const *in, void *const *out,
                            U64 p0, U64 p1);

struct lksi_op {
    const char *name;     /* "conv2d" */
    const char *contract; /* "contract/conv2d.h": holds NAME_item and struct DIMS */
    const char *dims;     /* "conv2d_dims" */
    int min_in, max_in, n_out;
    size_t attr_size;
    /* alias[j] = 1 + index of the input that output j overwrites in place; 0: none. */
    int alias[LKSI_MAX_OUT];
    /* Output 0 is input 0 under another shape: no memory, no launch (reshape). */
    bool view;
    /* No gradient flows through it, which is no mistake. */
    bool stops_gradient;
    /*
     * The operator sums over the samples (numerics.md, rule 8): bit k is set where dimension 0 of
     * input k counts them, alone or times the same number for each. On a block of the samples it
     * gives the block's sum, so that several uses of a parameter are added block by block.
     */
    unsigned sums_samples;
    /* It sums over the samples and cannot do so for a block, since its numbers need all of them. */
    bool needs_batch;
    /* Inputs 1 and up that follow from input 0 (saved statistics): `grad` counts what flows
     * through them as input 0's. Bit k: input k. */
    unsigned saved;
    /* In an evaluation this operator, of input 0 alone and without attributes, stands for it; NULL:
     * it stays. */
    const char *evaluation;
    /* Items are spread over the outputs: one a channel. */
    bool strided;
    /* Checks inputs and attributes, fills out[], n_out, dims, dims_size. Errors name the operator,
     * the shape and what would be right. */
    lks_status (*infer)(struct lksi_call *call);
    /* The number of contract items; NULL: elements of output 0. */
    U64 (*items)(const struct lksi_call *call);
    lksi_item_fn item;
    /* A faster C loop for `ref`; NULL: items one by one. */
    U64 (*ref_parts)(const struct lksi_call *call);
    lksi_ref_fn ref;
    /* Best first; ends with a NULL name. `plain` is appended by lksi_op_schedule. May be NULL. */
    const struct lksi_schedule *schedules;
    /* Adds the operators of the gradient; NULL: no gradient flows through this operator. */
    lks_status (*grad)(const struct lksi_backward *g);
    /*
     * Fusion that moves no bit: `next` is the only user of this operator's output 0, as its input
     * `slot`. True if this operator now does next's work too (attr changed, inputs appended to
     * in[0..*n_in)). NULL: never.
     */
    bool (*absorb)(void *attr, lksi_value *in, int *n_in, const struct lksi_op *next,
                   const void *next_attr, const lksi_value *next_in, int slot);
    /* Floating-point operations (an fma counts two) of one call; NULL: elements of output 0. */
    double (*flops)(const struct lksi_call *call);
    bool product; /* flops are those of a matrix product or convolution, two a multiply-add */
    /* Calls for the contract harness: fills attr (attr_size bytes), in[], n_in, leaf of case
     * `index`, returns false past the last. `long_run` asks for the large sweep too. */
    bool (*test_case)(int index, bool long_run, struct lksi_call *call, void *attr);
    /* The harness drew the pattern `bits` for an element of input `index`: returns one that the
     * operator accepts (labels in range, variances not negative). NULL: all do. I32 inputs come
     * drawn in [0, last dimension of the first F32 input). */
    uint32_t (*test_input)(const struct lksi_call *call, int index, uint32_t bits);
};

/* Wraps NAME_item(inputs..., outputs..., dims, i) of a contract header as an lksi_item_fn called
 * NAME_item_c: LKSI_ITEM(relu, in[0], out[0]). */
#define LKSI_ITEM(name, ...)                                                                       \
    static void name##_item_c(const void *const *in, void *const *out, const void *dims, U64 i)   \
    {                                                                                              \
        name##_item(__VA_ARGS__, dims, i);                                                         \
    }

/* Every file src/op/NAME.c of the list in src/op/meson.build exports its operators as
 * `const struct lksi_op *const lksi_ops_NAME[]`, ended by NULL. */
const struct lksi_op *lksi_op_find(const char *name); /* NULL: unknown */
const struct lksi_op *lksi_op_at(size_t index);       /* all operators; NULL past the last */

U64 lksi_op_items(const struct lksi_call *call);
double lksi_op_flops(const struct lksi_call *call);

/* Fills a call and runs `infer`. `attr` must outlive the call. */
lks_status lksi_call_make(struct lksi_call *call, const struct lksi_op *op, const void *attr,
                          uint32_t leaf, int n_in, const struct lksi_desc *in);

/* Schedule number `index` of an operator, `plain` last; NULL past the end. */
const struct lksi_schedule *lksi_op_schedule(const struct lksi_op *op, size_t index);
/* Text of the `plain` kernel of an operator, made from its descriptor. Caller frees; NULL: memory. */
char *lksi_op_plain_text(const struct lksi_op *op);

/* Clones of hot C loops for baseline x86-64 and x86-64-v3, chosen at load time. clang before 17
 * gives the chosen clone a name that other files cannot call, so it makes none. */
#if defined(__x86_64__) && defined(__linux__) && !defined(LKSI_NO_CLONES) &&                       \
    (!defined(__clang__) || __clang_major__ >= 17)
#define LKSI_CLONES __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define LKSI_CLONES
#endif

#endif
