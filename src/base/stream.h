/*
 * stream.h - numbers of the random streams (rule 10): FNV-1a-32 of "use:name".
 *
 * Two streams with one number would draw the same randomness, so every plan collects its streams
 * in a registry, which refuses a second text with a number already taken.
 */
#ifndef LKSI_BASE_STREAM_H
#define LKSI_BASE_STREAM_H

#include "base/base.h"

/* FNV-1a with 32 bits: h = 2166136261; for each byte h = (h ^ byte) * 16777619 mod 2^32. */
uint32_t lksi_fnv1a32(const void *data, size_t size);

/* The stream of a use ("init", "shuffle", "dropout") and a name ("conv1.weight", "train"). `use`
 * holds no colon, so two pairs never make one text. */
uint32_t lksi_stream_id(const char *use, const char *name);

/* Zero-initialise; free with lksi_streams_free. One thread at a time. */
struct lksi_streams {
    struct lksi_stream {
        uint32_t id;
        char *text;
    } * items; /* sorted by id */
    size_t count, capacity;
};

/* Adds "use:name" and gives its number; adding the same text again gives the same number.
 * LKS_E_INPUT if another text has that number, LKS_E_MEMORY. */
lks_status lksi_streams_add(struct lksi_streams *s, const char *use, const char *name,
                            uint32_t *id);
void lksi_streams_free(struct lksi_streams *s);

#endif
