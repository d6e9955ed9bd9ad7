/*
 * layer_activation.c - functions of single elements.
 */
#include <float.h>
#include <math.h>

#include "graph/layer.h"
#include "op/attr.h"

static lks_status apply(lks_graph *g, const char *op, lks_value x, double a, double b, lks_value *y)
{
    struct lksi_unary_attr attr = {(float)a, (float)b};
    return lksi_layer_apply(g, NULL, op, &attr, 1, &x, y);
}

/* The same with one number that an error can name. */
static lks_status apply_number(lks_graph *g, const char *op, lks_value x, const char *what,
                               double a, lks_value *y)
{
    if (!(fabs(a) <= (double)FLT_MAX))
        return lksi_fail(LKS_E_ARGUMENT, "%s: %s is %g, a finite number wanted", op, what, a);
    return apply(g, op, x, a, 0.0, y);
}

lks_status lks_graph_relu(lks_graph *g, lks_value x, lks_value *y)
{
    return lksi_layer_apply(g, NULL, "relu", NULL, 1, &x, y);
}

/* ---- without numbers, or with fixed ones ---- */

#define FUNCTION(name, op, a, b)                                                                   \
    lks_status lks_graph_##name(lks_graph *g, lks_value x, lks_value *y)                           \
    {                                                                                              \
        return apply(g, op, x, a, b, y);                                                           \
    }
FUNCTION(abs, "abs", 0.0, 0.0)
FUNCTION(ceil, "ceil", 0.0, 0.0)
FUNCTION(cos, "cos", 0.0, 0.0)
FUNCTION(erf, "erf", 0.0, 0.0)
FUNCTION(exp, "exp", 0.0, 0.0)
FUNCTION(floor, "floor", 0.0, 0.0)
FUNCTION(gelu, "gelu", 0.0, 0.0)
FUNCTION(gelu_tanh, "gelu_tanh", 0.0, 0.0)
FUNCTION(hard_swish, "hard_swish", 1.0 / 6.0, 0.5)
FUNCTION(log, "log", 0.0, 0.0)
FUNCTION(mish, "mish", 0.0, 0.0)
FUNCTION(neg, "neg", 0.0, 0.0)
FUNCTION(reciprocal, "reciprocal", 0.0, 0.0)
FUNCTION(relu6, "clamp", 0.0, 6.0)
FUNCTION(round, "round", 0.0, 0.0)
#define SELU_SCALE 1.0507009873554804934193349852946
#define SELU_ALPHA 1.6732632423543772848170429916717
FUNCTION(selu, "elu", SELU_SCALE, SELU_SCALE * SELU_ALPHA)
FUNCTION(sigmoid, "sigmoid", 0.0, 0.0)
FUNCTION(sign, "sign", 0.0, 0.0)
FUNCTION(silu, "silu", 0.0, 0.0)
FUNCTION(sin, "sin", 0.0, 0.0)
FUNCTION(softplus, "softplus", 0.0, 0.0)
FUNCTION(softsign, "softsign", 0.0, 0.0)
FUNCTION(sqrt, "sqrt", 0.0, 0.0)
FUNCTION(square, "square", 0.0, 0.0)
FUNCTION(tanh, "tanh", 0.0, 0.0)

/* ---- with numbers ---- */

lks_status lks_graph_leaky_relu(lks_graph *g, lks_value x, double slope, lks_value *y)
{
    return apply_number(g, "leaky_relu", x, "the slope", slope, y);
}

lks_status lks_graph_thresholded_relu(lks_graph *g, lks_value x, double threshold, lks_value *y)
{
    return apply_number(g, "thresholded_relu", x, "the threshold", threshold, y);
}

lks_status lks_graph_elu(lks_graph *g, lks_value x, double alpha, lks_value *y)
{
    if (!(alpha >= 0.0 && alpha <= (double)FLT_MAX))
        return lksi_fail(LKS_E_ARGUMENT, "elu: alpha is %g, 0 or more wanted", alpha);
    return apply(g, "elu", x, 1.0, alpha, y);
}

lks_status lks_graph_celu(lks_graph *g, lks_value x, double alpha, lks_value *y)
{
    if (!(alpha >= (double)FLT_MIN && alpha <= (double)FLT_MAX))
        return lksi_fail(LKS_E_ARGUMENT, "celu: alpha is %g, a number above 0 wanted", alpha);
    return apply(g, "celu", x, alpha, 0.0, y);
}

lks_status lks_graph_clamp(lks_graph *g, lks_value x, double low, double high, lks_value *y)
{
    if (!(low <= high))
        return lksi_fail(LKS_E_ARGUMENT, "clamp: low is %g, high is %g; low <= high wanted", low,
                         high);
    return apply(g, "clamp", x, low, high, y);
}

lks_status lks_graph_hard_sigmoid(lks_graph *g, lks_value x, double alpha, double beta,
                                  lks_value *y)
{
    if (!(fabs(alpha) <= (double)FLT_MAX && fabs(beta) <= (double)FLT_MAX))
        return lksi_fail(LKS_E_ARGUMENT, "hard_sigmoid: alpha is %g, beta is %g; finite numbers "
                                         "wanted", alpha, beta);
    return apply(g, "hard_sigmoid", x, alpha, beta, y);
}
