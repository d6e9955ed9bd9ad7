/*
 * arithmetic.h - operators on several values.
 */
#ifndef LOCKSTEP_ARITHMETIC_H
#define LOCKSTEP_ARITHMETIC_H

#include <stdint.h>

#include <lockstep/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y = x + number, x * number, x / number, element by element, any shape; the number is rounded to
 * float. LKS_E_ARGUMENT if it is not finite, or a divisor is 0. */
LKS_API lks_status lks_graph_add_number(lks_graph *graph, lks_value x, double number, lks_value *y);
LKS_API lks_status lks_graph_mul_number(lks_graph *graph, lks_value x, double number, lks_value *y);
LKS_API lks_status lks_graph_div_number(lks_graph *graph, lks_value x, double number, lks_value *y);

#ifdef __cplusplus
}
#endif
#endif
