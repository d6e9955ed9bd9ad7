/*
 * clblast.c - CLBlast's SGEMM as the contract's chains; the only file that includes its header.
 *
 * With alpha 1 and beta 1 it computes acc = fma(a, b, acc) over k upward from +0 and adds C, so on
 * a C filled with +0 the result is the contract's (piece.h: chains of pieces, + 0.0f). Traps known:
 * it writes mad() on AMD and Qualcomm GPUs; its build options come from the environment and must
 * end with a space; sizes and offsets are 32-bit; temporaries cost memory for shapes off its tiles.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <clblast_c.h>

#include "rt/rt_cl.h"

const char *lksi_clblast_declines(const struct lksi_limits *limits)
{
    const char *options = getenv("CLBLAST_BUILD_OPTIONS");
    if (limits->type == LKSI_DEV_REF)
        return "CLBlast needs an OpenCL device";
    if ((limits->vendor_id == 0x1002 && limits->type == LKSI_DEV_GPU) ||
        limits->vendor_id == 0x5143 || limits->vendor_id == 0x4D4F4351)
        return "CLBlast multiplies and adds with mad() on this vendor's devices";
    if (options != NULL && options[0] != '\0' && options[strlen(options) - 1] != ' ')
        return "CLBLAST_BUILD_OPTIONS must end with a space";
    if (options != NULL && (strstr(options, "-math") != NULL || strstr(options, "-mad") != NULL ||
                            strstr(options, "denorms") != NULL))
        return "CLBLAST_BUILD_OPTIONS relaxes arithmetic";
    return NULL;
}

static lks_status check_sizes(struct lksi_dev *dev, size_t m, size_t n, size_t k, size_t lda,
                              size_t ldb, size_t ldc)
{
    const char *why = lksi_clblast_declines(&dev->limits);
    const size_t side[] = {m, n, k, lda, ldb, ldc};
    if (why != NULL)
        return lksi_fail(LKS_E_NUMERICS, "CLBlast is not used on %s: %s", dev->limits.name, why);
    for (size_t i = 0; i < LKSI_COUNT(side); i++)
        if (side[i] == 0 || side[i] > INT_MAX)
            return lksi_fail(LKS_E_ARGUMENT, "CLBlast takes sizes from 1 to 2^31-1, not %zu",
                             side[i]);
    return LKS_OK;
}

lks_status lksi_clblast_sgemm(struct lksi_dev *dev, bool trans_a, bool trans_b, size_t m, size_t n,
                              size_t k, size_t piece, struct lksi_buf *a, size_t lda,
                              struct lksi_buf *b, size_t ldb, struct lksi_buf *c, size_t ldc)
{
    lks_status st = check_sizes(dev, m, n, k, lda, ldb, ldc);
    if (st != LKS_OK)
        return st;
    for (size_t k0 = 0; k0 < k; k0 += piece) {
        CLBlastStatusCode e = CLBlastSgemm(
            CLBlastLayoutRowMajor, trans_a ? CLBlastTransposeYes : CLBlastTransposeNo,
            trans_b ? CLBlastTransposeYes : CLBlastTransposeNo, m, n, k - k0 < piece ? k - k0 : piece,
            1.0f, a->mem, k0 * (trans_a ? lda : 1), lda, b->mem, k0 * (trans_b ? 1 : ldb), ldb, 1.0f,
            c->mem, 0, ldc, &dev->queue, NULL);
        if (e == CLBlastSuccess)
            continue;
        if (e > -1024) /* OpenCL's own codes pass through */
            return lksi_cl_fail((cl_int)e, "CLBlastSgemm", "%zux%zux%zu on %s", m, n, k,
                                dev->limits.name);
        return lksi_fail(LKS_E_DEVICE,
                         "CLBlastSgemm failed on %s for %zux%zux%zu with its status %d",
                         dev->limits.name, m, n, k, (int)e);
    }
    return LKS_OK;
}
