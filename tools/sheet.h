/*
 * sheet.h - many small pictures as one PNG.
 */
#ifndef LKS_TOOLS_SHEET_H
#define LKS_TOOLS_SHEET_H

#include <lockstep/lockstep.h>

/* Pictures [count][h][w][c] of floats, c 1 or 3. A float v becomes the byte
 * round(255 (v * std + mean)), cut off at 0 and 255: the inverse of the data's normalisation. */
struct sheet {
    const float *picture;
    size_t count, columns;
    uint32_t h, w, c;
    struct lks_normalize normalize;
};

/* Writes the pictures row by row with a white line of 2 pixels between them. LKS_E_IO, LKS_E_INPUT
 * (channels, or more than 2^14 pixels a side), LKS_E_MEMORY. */
lks_status sheet_write(const char *path, const struct sheet *s);

#endif
