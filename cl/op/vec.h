/*
 * vec.h - a vector type of VEC lanes (1, 2, 4, 8 or 16) for kernels whose width is a macro. Lanes
 * never meet, so the width moves no bit.
 *
 *   V, VI            floats and integers
 *   LOAD, STORE      VEC neighbours in memory, no alignment wanted
 *   PICK(c, a, b)    c ? a : b, lane by lane, c being the result of a comparison
 *   UNROLL, ROLLED   in front of a loop: written out; left a loop, since it is short or seldom run,
 *                    and compilers take long over what they make of it
 */
#define VEC_JOIN_(a, b) a##b
#define VEC_JOIN(a, b)  VEC_JOIN_(a, b)
#if VEC == 1
#define V           F32
#define VI          I32
#define LOAD(p)     (*(p))
#define STORE(v, p) (*(p) = (v))
#else
#define V           VEC_JOIN(float, VEC)
#define VI          VEC_JOIN(int, VEC)
#define LOAD(p)     VEC_JOIN(vload, VEC)(0, p)
#define STORE(v, p) VEC_JOIN(vstore, VEC)(v, 0, p)
#endif
#define PICK(c, a, b) select((V)(b), (V)(a), (VI)(c))
#define ALONE         __attribute__((reqd_work_group_size(1, 1, 1)))
#define UNROLL        _Pragma("unroll")
#ifdef __clang__
#define ROLLED _Pragma("clang loop unroll(disable) vectorize(disable)")
#else
#define ROLLED
#endif
