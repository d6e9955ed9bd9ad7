/*
 * shuffle.h - the order of an epoch (rule 10).
 *
 * Sample i has the 64-bit key  word(2i) + 2^32 * word(2i + 1),  where word(e) is word e mod 4 of
 * the Philox block floor(e / 4) with key = seed, c2 = stream and c3 = epoch. The order is the
 * samples by ascending key; the smaller index comes first where keys are equal. So it depends on
 * seed, stream, epoch and index alone: the first samples of a longer data set keep their keys.
 */
#ifndef LKSI_DATA_SHUFFLE_H
#define LKSI_DATA_SHUFFLE_H

#include "base/base.h"

/* What the training order's stream is named: FNV-1a-32 of "shuffle:train". */
#define LKSI_SHUFFLE_USE  "shuffle"
#define LKSI_SHUFFLE_NAME "train"

/* The key of one sample. */
uint64_t lksi_shuffle_key(uint64_t seed, uint32_t stream, uint32_t epoch, uint32_t index);

/* The order of given keys: ascending, the smaller index first where they are equal. */
lks_status lksi_shuffle_sort(const uint64_t *keys, size_t count, uint32_t *order);

/* Fills order[0 .. count-1] with a permutation of 0 .. count-1. count is at most 2^32 - 1
 * (LKS_E_ARGUMENT). Needs 40 * count bytes for a while (LKS_E_MEMORY). */
lks_status lksi_shuffle_order(uint64_t seed, uint32_t stream, uint32_t epoch, size_t count,
                              uint32_t *order);

#endif
