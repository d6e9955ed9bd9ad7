/*
 * guard.cl - schedule `two_stage` of guard: parts look at chunks, then one group joins them.
 *
 *   scan  parts[g] = any element of the group's share has an exponent of all ones
 *   join  raises the flag
 * On a CPU (CHUNK) a group is one work-item that streams through one chunk; elsewhere the items
 * of all groups take neighbouring elements in turn. Macro VEC: vector width of the former.
 */
#include "contract/num.h"

#define LIMIT 0x7f800000u

#ifdef CHUNK
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
LKS_KERNEL(scan)(__global const U32 *restrict grad, __global U32 *restrict parts, U64 n, U64 chunk)
{
    U64 g = get_global_id(0), i = g * chunk, end = i + chunk < n ? i + chunk : n;
    uint16 top = (uint16)(0u);
    U32 bad = 0u;
    for (; i + 16u <= end; i += 16u)
        top = max(top, vload16(0, grad + i) & 0x7fffffffu);
    for (; i < end; i++)
        bad |= (grad[i] & 0x7fffffffu) >= LIMIT;
    parts[g] = bad | (any(top >= LIMIT) ? 1u : 0u);
}
#else
__kernel void LKS_KERNEL(scan)(__global const U32 *restrict grad, __global U32 *restrict parts,
                               U64 n, U64 chunk)
{
    __local U32 found[256];
    U32 l = get_local_id(0), s;
    U32 bad = 0u;
    U64 size = get_global_size(0), v = get_global_id(0), vectors = n / 4u;
    for (; v + 3u * size < vectors; v += 4u * size) { /* four loads under way */
        uint4 a = vload4(v, grad), b = vload4(v + size, grad);
        uint4 c = vload4(v + 2u * size, grad), e = vload4(v + 3u * size, grad);
        a = max(max(a & 0x7fffffffu, b & 0x7fffffffu), max(c & 0x7fffffffu, e & 0x7fffffffu));
        bad |= any(a >= LIMIT) ? 1u : 0u;
    }
    for (; v < vectors; v += size)
        bad |= any((vload4(v, grad) & 0x7fffffffu) >= LIMIT) ? 1u : 0u;
    v = vectors * 4u + get_global_id(0);
    if (v < n)
        bad |= (grad[v] & 0x7fffffffu) >= LIMIT;
    found[l] = bad;
    for (s = get_local_size(0) / 2u; s > 0u; s /= 2u) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < s)
            found[l] |= found[l + s];
    }
    if (l == 0u)
        parts[get_group_id(0)] = found[0];
}
#endif

/* One group: there are at most some hundred parts. */
__kernel void LKS_KERNEL(join)(__global const U32 *restrict parts, __global const U32 *loss,
                               __global const I32 *step, __global I32 *flag, U32 count)
{
    __local U32 found[256];
    U32 l = get_local_id(0), bad = (loss[0] & 0x7fffffffu) >= LIMIT;
    for (U32 i = l; i < count; i += get_local_size(0))
        bad |= parts[i];
    found[l] = bad;
    for (U32 s = get_local_size(0) / 2u; s > 0u; s /= 2u) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < s)
            found[l] |= found[l + s];
    }
    if (l == 0u && flag[0] == 0 && found[0] != 0u)
        flag[0] = step[0] + 1;
}
