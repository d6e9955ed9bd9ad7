/*
 * log.c - the log callback.
 */
#include <stdio.h>

#include "base/base.h"

static lks_log_fn callback;
static void *callback_user;
static lks_log_level callback_level;

void lks_log_set(lks_log_fn fn, void *user, lks_log_level level)
{
    callback = fn;
    callback_user = user;
    callback_level = level;
}

bool lksi_log_wanted(lks_log_level level)
{
    return callback != NULL && level <= callback_level;
}

void lksi_log(lks_log_level level, const char *format, ...)
{
    char text[1024];
    va_list ap;
    if (!lksi_log_wanted(level))
        return;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    callback(callback_user, level, text);
}
