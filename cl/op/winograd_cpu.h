/*
 * winograd_cpu.h - what winograd_cpu.cl and winograd_weight_cpu.cl share: squares of a picture,
 * turned into the 16 places of a tile in local memory, which one work-item owns.
 */
#include "contract/winograd.h"
#include "op/transpose.h"
#include "op/vec.h"

/* A tensor [n][h][w][channels]; the square of tile (0, 0) begins at (row, col), which may wrap. */
struct LKS_FN(picture) {
    __global const float *data;
    U32 h, w, channels, row, col;
};

/* Tile p of all tiles [n][th][tw]. */
struct LKS_FN(where) {
    U32 n, th, tw;
};

static inline struct LKS_FN(where) LKS_FN(where)(U32 p, U32 th, U32 tw)
{
    struct LKS_FN(where) at = {p / tw / th, p / tw % th, p % tw};
    return at;
}

/* One square, T channels from c on: transformed by `turn` from SIDE x SIDE numbers to 16. */
#define SQUARE(T, READ, WRITE, SIDE, turn)                                                         \
    {                                                                                              \
        T d[SIDE * SIDE], v[16];                                                                   \
        UNROLL for (U32 i = 0u; i < SIDE * SIDE; i++) d[i] = from[i] != 0 ? READ : (T)(0.0f);      \
        turn(T, d, v)                                                                              \
        UNROLL for (U32 i = 0u; i < 16u; i++) WRITE;                                               \
    }
#define SQUARE_PATCH(T, d, v)                                                                      \
    LKS_WINOGRAD_PATCH(T, d)                                                                       \
    UNROLL for (U32 i = 0u; i < 16u; i++) v[i] = d[i];

/* `live` channels from `first` on; zeros from there to `width`. Place i of channel c goes to
 * to[i * step + c]. */
#define SQUARES(name, SIDE, turn)                                                                  \
    static inline void LKS_FN(name)(const struct LKS_FN(picture) *m, struct LKS_FN(where) at,      \
                                    U32 first, U32 live, U32 width, __local float *to, U32 step)   \
    {                                                                                              \
        __global const float *from[SIDE * SIDE];                                                   \
        UNROLL for (U32 i = 0u; i < SIDE * SIDE; i++)                                              \
        {                                                                                          \
            const U32 row = 2u * at.th + m->row + i / SIDE, col = 2u * at.tw + m->col + i % SIDE;  \
            from[i] = row < m->h && col < m->w                                                     \
                          ? m->data + (((U64)at.n * m->h + row) * m->w + col) * m->channels + first \
                          : 0;                                                                     \
        }                                                                                          \
        U32 c = 0u;                                                                                \
        ROLLED for (; c + VEC <= live; c += VEC)                                                   \
            SQUARE(V, LOAD(from[i] + c), STORE(v[i], to + i * step + c), SIDE, turn)               \
        ROLLED for (; c < live; c++)                                                               \
            SQUARE(float, from[i][c], to[i * step + c] = v[i], SIDE, turn)                         \
        ROLLED for (; c < width; c++)                                                              \
            ROLLED for (U32 i = 0u; i < 16u; i++) to[i * step + c] = 0.0f;                         \
    }

SQUARES(patch, 4u, SQUARE_PATCH)
