/*
 * log.h - messages of the library. It never prints: without a callback they are dropped.
 */
#ifndef LOCKSTEP_LOG_H
#define LOCKSTEP_LOG_H

#include <lockstep/export.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum lks_log_level {
    LKS_LOG_ERROR,
    LKS_LOG_WARNING,
    LKS_LOG_INFO,
    LKS_LOG_DEBUG
} lks_log_level;

/* `message` is one line without a newline, valid during the call only. */
typedef void (*lks_log_fn)(void *user, lks_log_level level, const char *message);

/*
 * Sends messages up to `level` to `fn`; NULL drops them all. Process-wide. Call it before other
 * threads use the library; `fn` may be called from any thread.
 */
LKS_API void lks_log_set(lks_log_fn fn, void *user, lks_log_level level);

#ifdef __cplusplus
}
#endif
#endif
