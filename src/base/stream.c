/*
 * stream.c - numbers of the random streams.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/stream.h"

static uint32_t fnv_add(uint32_t h, const void *data, size_t size)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < size; i++)
        h = (h ^ p[i]) * 16777619u;
    return h;
}

uint32_t lksi_fnv1a32(const void *data, size_t size)
{
    return fnv_add(2166136261u, data, size);
}

uint32_t lksi_stream_id(const char *use, const char *name)
{
    assert(strchr(use, ':') == NULL);
    uint32_t h = lksi_fnv1a32(use, strlen(use));
    h = fnv_add(h, ":", 1);
    return fnv_add(h, name, strlen(name));
}

lks_status lksi_streams_add(struct lksi_streams *s, const char *use, const char *name, uint32_t *id)
{
    struct lksi_str text = {0};
    uint32_t number = lksi_stream_id(use, name);
    size_t at = 0;
    lks_status st = LKS_OK;
    lksi_str_add(&text, "%s:%s", use, name);
    if (text.failed) {
        st = LKS_E_MEMORY;
        goto done;
    }
    while (at < s->count && s->items[at].id < number)
        at++;
    if (at < s->count && s->items[at].id == number) {
        if (strcmp(s->items[at].text, text.text) != 0)
            st = lksi_fail(LKS_E_INPUT,
                           "the random streams `%s` and `%s` have the same number 0x%08x and would "
                           "draw the same values; rename one of the two",
                           s->items[at].text, text.text, number);
    } else if (!lksi_grow(&s->items, &s->capacity, s->count + 1, sizeof s->items[0])) {
        st = LKS_E_MEMORY;
    } else {
        memmove(s->items + at + 1, s->items + at, (s->count - at) * sizeof s->items[0]);
        s->items[at] = (struct lksi_stream){.id = number, .text = text.text};
        s->count++;
        text.text = NULL;
    }
done:
    free(text.text);
    if (st == LKS_OK)
        *id = number;
    return st;
}

void lksi_streams_free(struct lksi_streams *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->items[i].text);
    free(s->items);
    *s = (struct lksi_streams){0};
}
