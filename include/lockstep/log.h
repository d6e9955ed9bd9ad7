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

/* `message` is one line without a newline, valid during the call only. Called from any thread that
 * is in the library, also from several at once; it must not call lks_trainer_... on a trainer that
 * is in use. */
typedef void (*lks_log_fn)(void *user, lks_log_level level, const char *message);

/*
 * Sends messages up to `level` to `fn`; NULL drops them all. Process-wide. Thread-safe; a thread
 * that is about to log while another one changes the callback may still call the old one, so `user`
 * must outlive the calls in progress.
 */
LKS_API void lks_log_set(lks_log_fn fn, void *user, lks_log_level level);

#ifdef __cplusplus
}
#endif
#endif
