/*
 * image.c - PNG through libpng's simplified interface.
 */
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "base/file.h"
#include "image.h"

enum { FILE_LIMIT = 64 << 20 };

static lks_status decode(const char *path, const struct lksi_bytes *bytes, uint32_t h, uint32_t w,
                         uint32_t c, uint8_t *pixels)
{
    static const png_color black = {0, 0, 0};
    png_image image;
    lks_status st = LKS_OK;
    memset(&image, 0, sizeof image);
    image.version = PNG_IMAGE_VERSION;
    if (!png_image_begin_read_from_memory(&image, bytes->data, bytes->size))
        return lksi_fail(LKS_E_INPUT, "`%s` is no sound PNG file: %s", path, image.message);
    if (image.height != h || image.width != w) {
        st = lksi_fail(LKS_E_INPUT,
                       "`%s` is %u pixels high and %u wide, the model takes %u and "
                       "%u; scale it first",
                       path, (unsigned)image.height, (unsigned)image.width, h, w);
    } else {
        image.format = c == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
        if (!png_image_finish_read(&image, &black, pixels, (png_int_32)(w * c), NULL))
            st = lksi_fail(LKS_E_INPUT, "`%s` is no sound PNG file: %s", path, image.message);
    }
    png_image_free(&image);
    return st;
}

lks_status image_read_png(const char *path, uint32_t h, uint32_t w, uint32_t c, uint8_t *pixels)
{
    struct lksi_bytes bytes;
    lks_status st;
    if (c != 1 && c != 3)
        return lksi_fail(LKS_E_INPUT,
                         "the model takes pictures of %u channels, a PNG file gives 1 "
                         "or 3; use --index",
                         c);
    st = lksi_file_read(path, FILE_LIMIT, &bytes);
    if (st != LKS_OK)
        return st;
    st = decode(path, &bytes, h, w, c, pixels);
    free(bytes.data);
    return st;
}
