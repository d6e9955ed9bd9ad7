/*
 * update_frame.h - schedule `flat` of the optimisers that treat each element alone. A file defines
 * STATES (1 to 3) and ONE(g, p, s, t, w, h), which updates an element, and includes this. Outputs
 * are the inputs' memory, so all is read through them; DIRECTION: output 0 is new memory.
 */
#if STATES == 1
#define STATES_IN  __global const F32 *s_in
#define STATES_OUT __global F32 *restrict s_out
#elif STATES == 2
#define STATES_IN  __global const F32 *s_in, __global const F32 *t_in
#define STATES_OUT __global F32 *restrict s_out, __global F32 *restrict t_out
#else
#define STATES_IN  __global const F32 *s_in, __global const F32 *t_in, __global const F32 *w_in
#define STATES_OUT                                                                                 \
    __global F32 *restrict s_out, __global F32 *restrict t_out, __global F32 *restrict w_out
#endif

__kernel void LKS_KERNEL(update)(__global const F32 *param, __global const F32 *restrict grad,
                                 STATES_IN, __global const F32 *restrict hyper,
                                 __global const I32 *restrict flag,
                                 __global const I32 *restrict group,
                                 __global F32 *restrict param_out, STATES_OUT, U64 n, U32 chunk)
{
    U64 i = get_global_id(0) * (U64)chunk, end = i + chunk < n ? i + chunk : n;
    while (i < end) {
        U64 stop = (i / LKS_UPDATE_BLOCK + 1u) * LKS_UPDATE_BLOCK;
        F32 h[LKS_UPDATE_HYPER];
        I32 go = lks_update_row(hyper, flag, group, i, h);
        U32 k, count;
        stop = stop < end ? stop : end;
        count = (U32)(stop - i);
#ifdef DIRECTION
        for (k = 0u; !go && k < count; k++)
            param_out[i + k] = 0.0f;
#endif
        for (k = 0u; go && k < count; k++) {
#ifdef DIRECTION
            F32 p = param[i + k];
#else
            F32 p = param_out[i + k];
#endif
            F32 s = s_out[i + k];
#if STATES > 1
            F32 t = t_out[i + k];
#endif
#if STATES > 2
            F32 w = w_out[i + k];
#endif
            ONE(grad[i + k], p, s, t, w, h);
            param_out[i + k] = p;
            s_out[i + k] = s;
#if STATES > 1
            t_out[i + k] = t;
#endif
#if STATES > 2
            w_out[i + k] = w;
#endif
        }
        i = stop;
    }
}
