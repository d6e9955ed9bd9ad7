/*
 * case.h - one test case, from its folder to its outcome.
 */
#ifndef LKS_TESTS_ONNX_CASE_H
#define LKS_TESTS_ONNX_CASE_H

#include "net.h"

#define MAX_OUT     8
#define MAX_DEVICES 4

enum outcome { PASS, FAIL, OUT_OF_SCOPE };

struct test {
    Onnx__ModelProto *model;
    struct onnx_tensor in[32], want[MAX_OUT];
    size_t n_in, n_want;
    struct net net;
    char why[320]; /* of a failure, or why it is out of scope */
};

/* Runs the case of a folder on the devices into a zeroed `t`. `spoiled`: against wrong outputs. */
enum outcome test_try(struct test *t, const char *folder, int n_device, const char *const *device,
                      bool spoiled);
void test_free(struct test *t);

#endif
