/*
 * memory.c - allocation with overflow checks, and growing arrays and strings.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

void *lksi_alloc(size_t count, size_t size)
{
    void *p = calloc(count > 0 ? count : 1, size > 0 ? size : 1);
    if (p == NULL)
        lksi_fail(LKS_E_MEMORY, "out of host memory: %zu items of %zu bytes", count, size);
    return p;
}

void *lksi_alloc_aligned(size_t bytes)
{
    size_t rounded = (bytes + 63) / 64 * 64;
    if (bytes == 0)
        rounded = 64;
    void *p = rounded >= bytes ? aligned_alloc(64, rounded) : NULL;
    if (p == NULL) {
        lksi_fail(LKS_E_MEMORY, "out of host memory: %zu bytes", bytes);
        return NULL;
    }
    return memset(p, 0, rounded);
}

char *lksi_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = lksi_alloc(bytes, 1);
    return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

bool lksi_grow(void *array, size_t *capacity, size_t need, size_t size)
{
    void *old, *grown;
    size_t want = *capacity > 0 ? *capacity : 8;
    if (need <= *capacity)
        return true;
    while (want < need)
        want *= 2;
    memcpy(&old, array, sizeof old);
    grown = want <= SIZE_MAX / size ? realloc(old, want * size) : NULL;
    if (grown == NULL) {
        lksi_fail(LKS_E_MEMORY, "out of host memory: %zu items of %zu bytes", want, size);
        return false;
    }
    memset((char *)grown + *capacity * size, 0, (want - *capacity) * size);
    memcpy(array, &grown, sizeof grown);
    *capacity = want;
    return true;
}

void lksi_str_append(struct lksi_str *s, const char *text, size_t length)
{
    if (s->failed || !lksi_grow(&s->text, &s->capacity, s->length + length + 1, 1)) {
        s->failed = true;
        return;
    }
    memcpy(s->text + s->length, text, length);
    s->length += length;
    s->text[s->length] = '\0';
}

void lksi_str_add(struct lksi_str *s, const char *format, ...)
{
    va_list ap, again;
    va_start(ap, format);
    va_copy(again, ap);
    int need = vsnprintf(NULL, 0, format, ap);
    if (need < 0 || s->failed ||
        !lksi_grow(&s->text, &s->capacity, s->length + (size_t)need + 1, 1)) {
        s->failed = true;
    } else {
        vsnprintf(s->text + s->length, (size_t)need + 1, format, again);
        s->length += (size_t)need;
    }
    va_end(again);
    va_end(ap);
}
