/*
 * base.h - what every part of the library may use: failures, log, memory, strings.
 */
#ifndef LKSI_BASE_H
#define LKSI_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lockstep/log.h>
#include <lockstep/status.h>
#include <lockstep/version.h>

#define LKSI_PRINTF(a, b) __attribute__((format(printf, a, b)))
#define LKSI_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Runs a call and leaves through `fail` with its status in the local `st`. */
#define LKSI_TRY(call)                                                                             \
    do {                                                                                           \
        st = (call);                                                                               \
        if (st != LKS_OK)                                                                          \
            goto fail;                                                                             \
    } while (0)

/* Sets the thread's error text and returns `status`, so that `return lksi_fail(...)` works. */
/* The status's name, or "the unknown status 77"; for messages about what a callback returned. */
const char *lksi_status_text(lks_status status, char text[40]);
/* Forgets the error text, so that it shows later whether a callback left one. */
void lksi_error_clear(void);
lks_status lksi_fail(lks_status status, const char *format, ...) LKSI_PRINTF(2, 3);

/* Puts text in front of the thread's error text ("where: " before "what"); returns `status`. */
lks_status lksi_fail_prefix(lks_status status, const char *format, ...) LKSI_PRINTF(2, 3);

void lksi_log(lks_log_level level, const char *format, ...) LKSI_PRINTF(2, 3);
bool lksi_log_wanted(lks_log_level level);

/* Zeroed memory for `count` items of `size` bytes, or NULL with the error text set. */
void *lksi_alloc(size_t count, size_t size);

/* Zeroed memory aligned to 64 bytes; free with free(). NULL with the error text set. */
void *lksi_alloc_aligned(size_t bytes);

/* A copy of a string, or NULL with the error text set. */
char *lksi_strdup(const char *text);

/* Grows the array whose pointer stands at `array` to hold `need` items of `size` bytes; the new
 * items are zero. False, with the error text set and the array as it was, if memory is out. */
bool lksi_grow(void *array, size_t *capacity, size_t need, size_t size);

/* Seconds of a clock that only goes forward. */
double lksi_seconds(void);

/* A growing string; zero-initialise, free(text) at the end. `failed` once memory ran out. */
struct lksi_str {
    char *text;
    size_t length, capacity;
    bool failed;
};
void lksi_str_add(struct lksi_str *s, const char *format, ...) LKSI_PRINTF(2, 3);
void lksi_str_append(struct lksi_str *s, const char *text, size_t length);

#endif
