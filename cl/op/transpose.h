/*
 * transpose.h - 16 x 16 floats in 16 vectors, rows to columns. For CPU devices.
 */
/* Four rounds of a perfect shuffle. */
static inline void LKS_FN(transpose)(float16 *v)
{
    for (int round = 0; round < 4; round++) {
        float16 t[16];
        for (int i = 0; i < 8; i++) {
            t[2 * i].even = v[i].lo;
            t[2 * i].odd = v[i + 8].lo;
            t[2 * i + 1].even = v[i].hi;
            t[2 * i + 1].odd = v[i + 8].hi;
        }
        for (int i = 0; i < 16; i++)
            v[i] = t[i];
    }
}
