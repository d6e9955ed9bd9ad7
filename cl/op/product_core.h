/*
 * product_core.h - the core of the GPU schedules of matrix products and convolutions: a work-group
 * computes BM rows x BN columns, each a chain over k upward, from tiles of BK k's in local memory;
 * a work-item keeps TM x TN of them in registers.
 *
 * The file that includes it defines KMAJOR (A stands as [k][row] in local memory, else [row][k]),
 * TURNED (B stands as [column][k], else [k][column]), and how its work-items fetch a tile of A (and
 * of B alike):
 *   NA, A_WIDTH   copies a work-item, floats each (1 or 4)
 *   A_TO(i)       where copy i goes, in floats from the start of A
 *   A_FROM(i)     the address it comes from; A_LIVE(i): 0 if zeros take its place
 *   A_STEP(i)     what follows copy i
 *   ADVANCE       what follows all copies of a tile
 * In the kernel: TILE_VARIABLES, TILE_RUN(tiles); then the sums stand in acc[i][j], of row ROW(i)
 * and column COLUMN(j) of the tile.
 * PIECES=1: chains are cut into pieces (piece.h), whole tiles each. The kernel has `cut_at`, at
 * which tile the second piece begins, NEXT_CUT sets it anew, and `never`, which is 0 but not known
 * to be.
 *
 * PTX=1 is for NVIDIA: copies from global to local memory run asynchronously, S - 1 tiles ahead,
 * and volatile assembly keeps the order of loads, so that the operands of the next step are under
 * way while this step's fmas run. PTX=0 does the same with plain loads that wait in registers.
 * COMPACT=1 leaves loops as they are, for tests on CPU devices.
 * fmas walk the tile in a serpentine, so that neighbours share an operand.
 */
#define NT       ((BM / TM) * (BN / TN)) /* work-items of a group */
#define SUB_N    (BN / (8 * TN))         /* blocks of 4 x 8 work-items side by side */
#define A_STRIDE (KMAJOR ? BM : BK + 4)
#define A_FLOATS (KMAJOR ? BM * BK : BM * (BK + 4))
#define B_FLOATS (TURNED ? BN * (BK + 4) : BN * BK)
#define BUFFER   (4u * (A_FLOATS + B_FLOATS)) /* bytes */
#if COMPACT /* quick to build, slow to run */
#define UNROLL _Pragma("nounroll")
#else
#define UNROLL _Pragma("unroll")
#endif
#define PICK(v, q) ((q) == 0 ? (v).x : (q) == 1 ? (v).y : (q) == 2 ? (v).z : (v).w)

/* Rows of a work-item are 4 apart, columns 8; what stands as [k][] is read in fours, so there they
 * are four neighbours, then 16 (columns: 32) further. */
#define ROW(i)                                                                                     \
    (KMAJOR ? sub_m * (4 * TM) + (i) / 4 * 16 + lane_m * 4 + (i) % 4                               \
            : sub_m * (4 * TM) + (i) * 4 + lane_m)
#define COLUMN(j)                                                                                  \
    (TURNED ? sub_n * (8 * TN) + (j) * 8 + lane_n                                                  \
            : sub_n * (8 * TN) + (j) / 4 * 32 + lane_n * 4 + (j) % 4)

#if PTX
#define TILE_BASE ((U32)(size_t)tile)
#define COPY_4(to, from, live)                                                                     \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),             \
                 "r"((live) ? 16u : 0u)                                                            \
                 : "memory")
#define COPY_1(to, from, live)                                                                     \
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from),              \
                 "r"((live) ? 4u : 0u)                                                             \
                 : "memory")
#define COPY__(w, to, from, live) COPY_##w(to, from, live)
#define COPY_(w, to, from, live)  COPY__(w, to, from, live)
#define HOLD_VARIABLES
#define FETCH                                                                                      \
    {                                                                                              \
        UNROLL for (int i = 0; i < NA; i++)                                                        \
        {                                                                                          \
            COPY_(A_WIDTH, fill + 4u * (U32)(A_TO(i)), A_FROM(i), A_LIVE(i));                      \
            A_STEP(i)                                                                              \
        }                                                                                          \
        UNROLL for (int i = 0; i < NB; i++)                                                        \
        {                                                                                          \
            COPY_(B_WIDTH, fill + 4u * (A_FLOATS + (U32)(B_TO(i))), B_FROM(i), B_LIVE(i));         \
            B_STEP(i)                                                                              \
        }                                                                                          \
        asm volatile("cp.async.commit_group;" ::: "memory");                                       \
        ADVANCE                                                                                    \
    }
#define STORE
#define ARRIVED                                                                                    \
    asm volatile("cp.async.wait_group %0;" ::"n"(S - 2) : "memory");                               \
    asm volatile("bar.sync 0;" ::: "memory");
#define LOAD4(d, at)                                                                               \
    asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];"                                           \
                 : "=f"((d).x), "=f"((d).y), "=f"((d).z), "=f"((d).w)                              \
                 : "r"(at))
#else
#define TILE_BASE 0u
#define LOCAL_AT(type, at) (*(__local type *)((__local char *)tile + (at)))
#if A_WIDTH == 4
#define A_TYPE float4
#else
#define A_TYPE float
#endif
#if B_WIDTH == 4
#define B_TYPE float4
#else
#define B_TYPE float
#endif
#define HOLD_VARIABLES                                                                             \
    A_TYPE hold_a[NA];                                                                             \
    B_TYPE hold_b[NB];
#define FETCH                                                                                      \
    {                                                                                              \
        UNROLL for (int i = 0; i < NA; i++)                                                        \
        {                                                                                          \
            hold_a[i] = (A_TYPE)(0.0f);                                                            \
            if (A_LIVE(i))                                                                         \
                hold_a[i] = *(__global const A_TYPE *)(A_FROM(i));                                 \
            A_STEP(i)                                                                              \
        }                                                                                          \
        UNROLL for (int i = 0; i < NB; i++)                                                        \
        {                                                                                          \
            hold_b[i] = (B_TYPE)(0.0f);                                                            \
            if (B_LIVE(i))                                                                         \
                hold_b[i] = *(__global const B_TYPE *)(B_FROM(i));                                 \
            B_STEP(i)                                                                              \
        }                                                                                          \
        ADVANCE                                                                                    \
    }
#define STORE                                                                                      \
    {                                                                                              \
        UNROLL for (int i = 0; i < NA; i++)                                                        \
            LOCAL_AT(A_TYPE, fill + 4u * (U32)(A_TO(i))) = hold_a[i];                              \
        UNROLL for (int i = 0; i < NB; i++)                                                        \
            LOCAL_AT(B_TYPE, fill + 4u * (A_FLOATS + (U32)(B_TO(i)))) = hold_b[i];                 \
    }
#define ARRIVED      barrier(CLK_LOCAL_MEM_FENCE);
#define LOAD4(d, at) (d) = LOCAL_AT(float4, at)
#endif

/* ---- one step: the fmas of one k, and the loads for the next ---- */

#if KMAJOR
#define A_REGISTERS (2 * (TM / 4))
#define A_OF(k, i)  PICK(a[((k) & 1) * (TM / 4) + (i) / 4], (i) & 3)
#define LOAD_A_EARLY(k)                                                                            \
    UNROLL for (int i_ = 0; i_ < TM / 4; i_++)                                                     \
        LOAD4(a[((k) & 1) * (TM / 4) + i_], read_a + 4u * (U32)(((k) % BK) * BM + i_ * 16));
#define LOAD_A_LATE(k, i)
#define FIRST_A (sub_m * (4 * TM) + lane_m * 4)
#else
#define A_REGISTERS TM
#define A_OF(k, i)  PICK(a[i], (k) & 3)
#define LOAD_A_EARLY(k)
#define LOAD_A_LATE(k, i)                                                                          \
    if (((k) & 3) == 0)                                                                            \
        LOAD4(a[i], read_a + 4u * (U32)((i) * 4 * A_STRIDE + (k) % BK));
#define FIRST_A ((sub_m * (4 * TM) + lane_m) * A_STRIDE)
#endif
#if TURNED
#define B_REGISTERS (2 * TN)
#define LOAD_B(k)                                                                                  \
    if (((k) & 3) == 0) {                                                                          \
        UNROLL for (int j_ = 0; j_ < TN; j_++)                                                     \
            LOAD4(b[((k) >> 2 & 1) * TN + j_],                                                     \
                  read_b + 4u * (U32)(j_ * 8 * (BK + 4) + (k) % BK));                              \
    }
#define B_OF(k, j) PICK(b[((k) >> 2 & 1) * TN + (j)], (k) & 3)
#define FIRST_B    (A_FLOATS + COLUMN(0) * (BK + 4))
#else
#define B_REGISTERS (2 * (TN / 4))
#define LOAD_B(k)                                                                                  \
    UNROLL for (int j_ = 0; j_ < TN / 4; j_++)                                                     \
        LOAD4(b[((k) & 1) * (TN / 4) + j_], read_b + 4u * (U32)(((k) % BK) * BN + j_ * 32));
#define B_OF(k, j) PICK(b[((k) & 1) * (TN / 4) + (j) / 4], (j) & 3)
#define FIRST_B    (A_FLOATS + COLUMN(0))
#endif

#define STEP(k)                                                                                    \
    LOAD_B((k) + 1)                                                                                \
    LOAD_A_EARLY((k) + 1)                                                                          \
    UNROLL for (int i = 0; i < TM; i++)                                                            \
    {                                                                                              \
        UNROLL for (int j = 0; j < TN; j++)                                                        \
        {                                                                                          \
            const int t_ = (i & 1) ? TN - 1 - j : j;                                               \
            acc[i][t_] = lks_fma(A_OF(k, i), B_OF(k, t_), acc[i][t_]);                             \
        }                                                                                          \
        LOAD_A_LATE((k) + 1, i)                                                                    \
    }

#define STEPS_7(k) STEP(k) STEP(k + 1) STEP(k + 2) STEP(k + 3) STEP(k + 4) STEP(k + 5) STEP(k + 6)
#define STEPS_15   STEPS_7(0) STEPS_7(7) STEP(14)
#define STEPS_31   STEPS_15 STEPS_7(15) STEPS_7(22) STEP(29) STEP(30)
#if !PTX
#define STEPS                                                                                      \
    UNROLL for (int k_ = 0; k_ < BK - 1; k_++)                                                     \
    {                                                                                              \
        STEP(k_)                                                                                   \
    }
#elif BK == 32
#define STEPS STEPS_31
#else
#define STEPS STEPS_15
#endif

/* ---- pieces ---- */

#if PIECES
/* The sums of the pieces before wait in private memory, for which registers would not do: an index
 * that only the run knows keeps them there. */
#define KEPT_VARIABLES                                                                             \
    float kept[TM * TN];                                                                           \
    int pieces = 0;
#define ADD_KEPT                                                                                   \
    if (pieces) {                                                                                  \
        UNROLL for (int i = 0; i < TM; i++)                                                        \
        {                                                                                          \
            UNROLL for (int j = 0; j < TN; j++)                                                    \
                acc[i][j] = kept[never + i * TN + j] + acc[i][j];                                  \
        }                                                                                          \
    }
#define END_TILE(t)                                                                                \
    if ((t) + 1u == cut_at) {                                                                        \
        ADD_KEPT                                                                                   \
        UNROLL for (int i = 0; i < TM; i++)                                                        \
        {                                                                                          \
            UNROLL for (int j = 0; j < TN; j++)                                                    \
            {                                                                                      \
                kept[never + i * TN + j] = acc[i][j];                                              \
                acc[i][j] = 0.0f;                                                                  \
            }                                                                                      \
        }                                                                                          \
        pieces = 1;                                                                                \
        NEXT_CUT                                                                                  \
    }
#else
#define KEPT_VARIABLES
#define ADD_KEPT
#define END_TILE(t)
#endif

/* ---- the whole ---- */

#define TILE_VARIABLES                                                                             \
    __local float tile[S * (A_FLOATS + B_FLOATS)] __attribute__((aligned(128)));                   \
    const int item = (int)get_local_id(0), lane = item & 31, sub = item >> 5;                      \
    const int lane_m = lane >> 3, lane_n = lane & 7;                                               \
    const int sub_m = sub / SUB_N, sub_n = sub % SUB_N;                                            \
    U32 fill = TILE_BASE;                                                                          \
    float acc[TM][TN];                                                                             \
    float4 a[A_REGISTERS], b[B_REGISTERS];                                                         \
    KEPT_VARIABLES                                                                                 \
    HOLD_VARIABLES                                                                                 \
    UNROLL for (int i = 0; i < TM; i++)                                                            \
    {                                                                                              \
        UNROLL for (int j = 0; j < TN; j++)                                                        \
            acc[i][j] = 0.0f;                                                                      \
    }

/* The last copies fetch tiles beyond the end: *_LIVE must be 0 for them. */
#define TILE_RUN(tiles)                                                                            \
    {                                                                                              \
        const U32 base_a = TILE_BASE + 4u * (U32)FIRST_A;                                          \
        const U32 base_b = TILE_BASE + 4u * (U32)FIRST_B;                                          \
        U32 read_a = base_a, read_b = base_b, read = 0u;                                           \
        UNROLL for (int s_ = 0; s_ < S - 1; s_++)                                                  \
        {                                                                                          \
            FETCH                                                                                  \
            STORE                                                                                  \
            fill += BUFFER;                                                                        \
        }                                                                                          \
        ARRIVED                                                                                    \
        LOAD_B(0)                                                                                  \
        LOAD_A_EARLY(0)                                                                            \
        UNROLL for (int i = 0; i < TM; i++)                                                        \
        {                                                                                          \
            LOAD_A_LATE(0, i)                                                                      \
        }                                                                                          \
        _Pragma("nounroll") for (U32 t_ = 0u; t_ < (U32)(tiles); t_++)                             \
        {                                                                                          \
            FETCH                                                                                  \
            STEPS                                                                                  \
            STORE                                                                                  \
            fill += BUFFER;                                                                        \
            if (fill == TILE_BASE + S * BUFFER)                                                    \
                fill = TILE_BASE;                                                                  \
            ARRIVED                                                                                \
            read += BUFFER;                                                                        \
            if (read == S * BUFFER)                                                                \
                read = 0u;                                                                         \
            read_a = base_a + read;                                                                \
            read_b = base_b + read;                                                                \
            STEP(BK - 1)                                                                           \
            END_TILE(t_)                                                                           \
        }                                                                                          \
        ADD_KEPT                                                                                   \
    }
