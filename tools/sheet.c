/*
 * sheet.c - many small pictures as one PNG, through libpng's simplified interface.
 */
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "base/file.h"
#include "sheet.h"

enum { GAP = 2, MAX_SIDE = 1 << 14 };

static uint8_t byte_of(float v, const struct lks_normalize *n)
{
    double x = 255.0 * ((double)v * n->std + n->mean);
    return x >= 255.0 ? 255 : x > 0.0 ? (uint8_t)(x + 0.5) : 0;
}

static void place(const struct sheet *s, size_t i, uint8_t *pixels, size_t stride)
{
    size_t top = i / s->columns * (s->h + GAP), left = i % s->columns * (s->w + GAP);
    const float *from = s->picture + i * s->h * s->w * s->c;
    for (size_t y = 0; y < s->h; y++)
        for (size_t x = 0; x < (size_t)s->w * s->c; x++)
            pixels[(top + y) * stride + left * s->c + x] =
                byte_of(from[y * s->w * s->c + x], &s->normalize);
}

lks_status sheet_write(const char *path, const struct sheet *s)
{
    size_t columns = s->columns < s->count ? s->columns : s->count;
    size_t rows = columns > 0 ? (s->count + columns - 1) / columns : 0;
    size_t width = columns * (s->w + GAP) - GAP, height = rows * (s->h + GAP) - GAP;
    png_alloc_size_t bytes = 0;
    png_image image;
    uint8_t *pixels = NULL, *file = NULL;
    lks_status st = LKS_OK;
    if (s->c != 1 && s->c != 3)
        return lksi_fail(LKS_E_INPUT, "pictures of %u channels cannot be shown, only 1 or 3", s->c);
    if (columns == 0 || width > MAX_SIDE || height > MAX_SIDE)
        return lksi_fail(LKS_E_INPUT, "a sheet of %zu x %zu pictures of %u x %u pixels is more than "
                                      "%d pixels a side, or empty; take fewer",
                         rows, columns, s->h, s->w, MAX_SIDE);
    memset(&image, 0, sizeof image);
    image.version = PNG_IMAGE_VERSION;
    image.width = (png_uint_32)width;
    image.height = (png_uint_32)height;
    image.format = s->c == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    pixels = lksi_alloc(width * height, s->c);
    if (pixels == NULL)
        return LKS_E_MEMORY;
    memset(pixels, 255, width * height * s->c);
    for (size_t i = 0; i < s->count; i++)
        place(s, i, pixels, width * s->c);
    if (!png_image_write_get_memory_size(image, bytes, 0, pixels, 0, NULL)) {
        st = lksi_fail(LKS_E_MEMORY, "%s: %s", path, image.message);
        goto fail;
    }
    file = lksi_alloc(bytes, 1);
    if (file == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    st = png_image_write_to_memory(&image, file, &bytes, 0, pixels, 0, NULL)
             ? lksi_file_write_atomic(path, file, bytes)
             : lksi_fail(LKS_E_MEMORY, "%s: %s", path, image.message);
fail:
    png_image_free(&image);
    free(file);
    free(pixels);
    return st;
}
