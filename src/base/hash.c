/*
 * hash.c - sha256 over OpenSSL's EVP interface, which picks the processor's instructions.
 */
#include <openssl/evp.h>

#include "base/hash.h"

static lks_status fail_hash(void)
{
    return lksi_fail(LKS_E_MEMORY, "libcrypto cannot compute a sha256: out of memory, or its "
                                   "configuration leaves sha256 out");
}

lks_status lksi_sha256_init(struct lksi_sha256 *h)
{
    h->state = EVP_MD_CTX_new();
    if (h->state != NULL && EVP_DigestInit_ex(h->state, EVP_sha256(), NULL) == 1)
        return LKS_OK;
    lksi_sha256_drop(h);
    return fail_hash();
}

lks_status lksi_sha256_update(struct lksi_sha256 *h, const void *data, size_t size)
{
    return EVP_DigestUpdate(h->state, data, size) == 1 ? LKS_OK : fail_hash();
}

lks_status lksi_sha256_final(struct lksi_sha256 *h, char hex[LKSI_SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    int ok = EVP_DigestFinal_ex(h->state, raw, &length);
    lksi_sha256_drop(h);
    if (ok != 1 || length != (LKSI_SHA256_HEX - 1) / 2)
        return fail_hash();
    for (unsigned i = 0; i < length; i++) {
        hex[2 * i] = digits[raw[i] >> 4];
        hex[2 * i + 1] = digits[raw[i] & 15];
    }
    hex[2 * length] = '\0';
    return LKS_OK;
}

void lksi_sha256_drop(struct lksi_sha256 *h)
{
    EVP_MD_CTX_free(h->state);
    h->state = NULL;
}

lks_status lksi_sha256_bytes(const void *data, size_t size, char hex[LKSI_SHA256_HEX])
{
    struct lksi_sha256 h;
    lks_status st;
    LKSI_TRY(lksi_sha256_init(&h));
    LKSI_TRY(lksi_sha256_update(&h, data, size));
    return lksi_sha256_final(&h, hex);
fail:
    lksi_sha256_drop(&h);
    return st;
}
