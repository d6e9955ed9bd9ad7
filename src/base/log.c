/*
 * log.c - the log callback. The callback runs outside the lock, so it may call the library.
 */
#include <pthread.h>
#include <stdio.h>

#include "base/base.h"
#include "base/fenv.h"

struct target {
    lks_log_fn fn;
    void *user;
    lks_log_level level;
};

static struct target target;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct target current(void)
{
    struct target now;
    pthread_mutex_lock(&lock);
    now = target;
    pthread_mutex_unlock(&lock);
    return now;
}

static bool wants(const struct target *t, lks_log_level level)
{
    return t->fn != NULL && level <= t->level;
}

void lks_log_set(lks_log_fn fn, void *user, lks_log_level level)
{
    pthread_mutex_lock(&lock);
    target = (struct target){fn, user, level};
    pthread_mutex_unlock(&lock);
}

bool lksi_log_wanted(lks_log_level level)
{
    struct target now = current();
    return wants(&now, level);
}

void lksi_log(lks_log_level level, const char *format, ...)
{
    struct target now = current();
    struct lksi_fenv env;
    char text[1024];
    va_list ap;
    if (!wants(&now, level))
        return;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    lksi_fenv_enter(&env); /* the callback may change it */
    now.fn(now.user, level, text);
    lksi_fenv_leave(&env);
}
