/*
 * status.c - the thread's error text.
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"

static _Thread_local char message[2048];

const char *lks_error_message(void)
{
    return message;
}

const char *lks_status_name(lks_status status)
{
    static const char *const names[] = {
        "LKS_OK",         "LKS_E_ARGUMENT", "LKS_E_INPUT",     "LKS_E_IO",        "LKS_E_MEMORY",
        "LKS_E_DEVICE",   "LKS_E_NUMERICS", "LKS_E_NONFINITE", "LKS_E_CANCELLED", "LKS_E_MISMATCH",
    };
    return (size_t)status < LKSI_COUNT(names) ? names[status] : "unknown status";
}

const char *lksi_status_text(lks_status status, char text[40])
{
    if ((size_t)status < LKS_E_MISMATCH + 1)
        return lks_status_name(status);
    snprintf(text, 40, "the unknown status %d", (int)status);
    return text;
}

void lksi_error_clear(void)
{
    message[0] = '\0';
}

lks_status lksi_fail(lks_status status, const char *format, ...)
{
    /* Through a second buffer, since an argument may be the old message. */
    char text[sizeof message];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    memcpy(message, text, sizeof message);
    return status;
}

lks_status lksi_fail_prefix(lks_status status, const char *format, ...)
{
    char text[sizeof message];
    va_list ap;
    va_start(ap, format);
    int used = vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (used >= 0 && (size_t)used < sizeof text)
        snprintf(text + used, sizeof text - (size_t)used, "%s", message);
    memcpy(message, text, sizeof message);
    return status;
}

const char *lks_version(void)
{
    return LKSI_VERSION;
}

int lks_contract_version(void)
{
    return LKS_CONTRACT_VERSION;
}
