/*
 * hash.h - sha256 of bytes in pieces.
 *
 *     struct lksi_sha256 h;
 *     LKSI_TRY(lksi_sha256_init(&h));
 *     LKSI_TRY(lksi_sha256_update(&h, data, size));
 *     LKSI_TRY(lksi_sha256_final(&h, hex));
 *
 * A failure is LKS_E_MEMORY. One state belongs to one thread at a time.
 */
#ifndef LKSI_BASE_HASH_H
#define LKSI_BASE_HASH_H

#include "base/base.h"

#define LKSI_SHA256_HEX 65 /* 64 lower-case digits and a zero byte */

struct lksi_sha256 {
    void *state; /* NULL after init failed, final or drop */
};

lks_status lksi_sha256_init(struct lksi_sha256 *h);
lks_status lksi_sha256_update(struct lksi_sha256 *h, const void *data, size_t size);

/* Writes the digest, and releases the state whatever the result. */
lks_status lksi_sha256_final(struct lksi_sha256 *h, char hex[LKSI_SHA256_HEX]);

/* Releases the state without a digest; fine on a zeroed or finished one. */
void lksi_sha256_drop(struct lksi_sha256 *h);

/* init, one update, final. */
lks_status lksi_sha256_bytes(const void *data, size_t size, char hex[LKSI_SHA256_HEX]);

#endif
