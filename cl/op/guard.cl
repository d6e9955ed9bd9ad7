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
    for (U64 i = get_global_id(0); i < n; i += get_global_size(0))
        bad |= (grad[i] & 0x7fffffffu) >= LIMIT;
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

/* One work-item: there are at most some hundred parts. */
__kernel void LKS_KERNEL(join)(__global const U32 *restrict parts, __global const U32 *loss,
                               __global const I32 *step, __global I32 *flag, U32 count)
{
    U32 bad = (loss[0] & 0x7fffffffu) >= LIMIT;
    for (U32 i = 0u; i < count; i++)
        bad |= parts[i];
    if (flag[0] == 0 && bad != 0u)
        flag[0] = step[0] + 1;
}
