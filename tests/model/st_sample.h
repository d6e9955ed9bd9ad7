/*
 * st_sample.h - a few tensors that touch every rule of the canonical form. safetensors_oracle.py
 * knows the same values and builds the file from them on its own.
 */
#ifndef LKS_TESTS_ST_SAMPLE_H
#define LKS_TESTS_ST_SAMPLE_H

#include "model/safetensors.h"

/* 0, -0, 1, a NaN with a payload, the smallest subnormal, -2.5 */
static const uint32_t sample_f32[] = {0, 0x80000000u, 0x3f800000u, 0xff812345u, 1, 0xc0200000u};
static const uint64_t sample_f64[] = {0x3ff0000000000001u, 0x7ff0000000000001u};
static const int64_t sample_i64[] = {-2};
static const uint8_t sample_u8[] = {1, 2, 255};

static const struct lksi_st_tensor sample_tensors[] = {
    {"conv1.weight", LKSI_ST_F32, 2, {2, 3}, sample_f32, sizeof sample_f32},
    {"a\"\\\xc3\xa9\n", LKSI_ST_U8, 1, {3}, sample_u8, sizeof sample_u8},
    {"opt.state", LKSI_ST_F64, 1, {2}, sample_f64, sizeof sample_f64},
    {"empty", LKSI_ST_F32, 2, {4, 0}, sample_f32, 0},
    {"Zeta", LKSI_ST_I64, 0, {0}, sample_i64, sizeof sample_i64},
    {"conv1.bias", LKSI_ST_F32, 1, {1}, sample_f32 + 5, 4},
};
static const struct lksi_st_meta sample_meta[] = {
    {"note", "tab\there, \x01, \x1f, \x7f, /, \xc3\xa9"},
    {"b", ""},
};
enum { SAMPLE_TENSORS = 6, SAMPLE_META = 2 };

#endif
