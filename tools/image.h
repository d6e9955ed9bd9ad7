/*
 * image.h - pictures for `lockstep predict`.
 */
#ifndef LKS_TOOLS_IMAGE_H
#define LKS_TOOLS_IMAGE_H

#include "base/base.h"

/*
 * Reads a PNG file into h*w*c bytes (c = 1: grey, 3: red, green, blue), row by row. A picture with
 * transparency stands on black. LKS_E_IO if it cannot be read, LKS_E_INPUT if it is damaged or has
 * another size: pictures are not scaled.
 */
lks_status image_read_png(const char *path, uint32_t h, uint32_t w, uint32_t c, uint8_t *pixels);

#endif
