/*
 * cache.c - the folder of program binaries and of small texts beside them.
 *
 * A file is written under a temporary name and renamed, so that several processes may share the
 * folder and a reader never sees half a file. Each file carries a SHA-256 of its content: what
 * does not fit is taken for absent, with one log line, and written again. A folder that cannot be
 * written costs only time: one log line.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "rt/rt_cl.h"

#define MAX_FILE (UINT64_C(1) << 30)

/* Before the variants (8 bytes each) and the binary. */
struct header {
    char magic[8];
    char check[64]; /* SHA-256 of everything behind this field */
    char digest[64];
    uint64_t n_variant, bytes;
};
static const char magic[8] = "LKSBIN1\n";

char *lksi_cache_folder(const char *given)
{
    struct lksi_str s = {0};
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (given != NULL)
        return given[0] != '\0' ? lksi_strdup(given) : NULL;
    if (base != NULL && base[0] == '/')
        lksi_str_add(&s, "%s/lockstep", base);
    else if (home != NULL && home[0] == '/')
        lksi_str_add(&s, "%s/.cache/lockstep", home);
    return s.text;
}

static char *entry_path(const struct lksi_dev *dev, const char *key, const char *end)
{
    struct lksi_str s = {0};
    lksi_str_add(&s, "%s/%s%s", dev->cache_dir, key, end);
    if (s.failed) {
        free(s.text);
        return NULL;
    }
    return s.text;
}

lks_status lksi_hash_texts(char hex[LKSI_SHA256_HEX], const char *const *text, size_t count)
{
    struct lksi_sha256 h;
    lks_status st;
    LKSI_TRY(lksi_sha256_init(&h));
    for (size_t i = 0; i < count; i++) /* with the zero, so that neighbours cannot run together */
        LKSI_TRY(lksi_sha256_update(&h, text[i], strlen(text[i]) + 1));
    return lksi_sha256_final(&h, hex);
fail:
    lksi_sha256_drop(&h);
    return st;
}

/* ---- files ---- */

struct piece {
    const void *data;
    size_t bytes;
};

static lks_status write_pieces(struct lksi_dev *dev, const char *path, const struct piece *piece,
                               size_t count)
{
    struct lksi_file_writer w;
    lks_status st;
    LKSI_TRY(lksi_make_dirs(dev->cache_dir));
    LKSI_TRY(lksi_file_begin(&w, path));
    for (size_t i = 0; i < count; i++) {
        st = lksi_file_put(&w, piece[i].data, piece[i].bytes);
        if (st != LKS_OK) {
            lksi_file_abort(&w);
            return st;
        }
    }
    st = lksi_file_commit(&w);
fail:
    return st;
}

/* Writes, or says once why not. */
static void write_whole(struct lksi_dev *dev, const char *path, const struct piece *piece,
                        size_t count)
{
    if (write_pieces(dev, path, piece, count) != LKS_OK &&
        !__atomic_exchange_n(&dev->cache_refused, true, __ATOMIC_RELAXED))
        lksi_log(LKS_LOG_WARNING,
                 "the cache folder %s cannot be written, so programs will be built in every run: "
                 "%s",
                 dev->cache_dir, lks_error_message());
}

/* ---- binaries ---- */

static bool parse_entry(const unsigned char *data, size_t bytes, struct lksi_entry *entry)
{
    struct header h;
    char check[LKSI_SHA256_HEX];
    const size_t skip = offsetof(struct header, digest);
    if (bytes < sizeof h)
        return false;
    memcpy(&h, data, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) != 0 || h.n_variant > MAX_FILE / 8 ||
        h.bytes > MAX_FILE || bytes != sizeof h + h.n_variant * 8 + h.bytes ||
        lksi_sha256_bytes(data + skip, bytes - skip, check) != LKS_OK ||
        memcmp(check, h.check, sizeof h.check) != 0)
        return false;
    memset(entry, 0, sizeof *entry);
    memcpy(entry->digest, h.digest, sizeof h.digest);
    entry->bytes = (size_t)h.bytes;
    entry->n_variant = (size_t)h.n_variant;
    entry->binary = malloc(entry->bytes + 1);
    if (entry->binary == NULL || !lksi_grow(&entry->variant, &entry->variant_capacity,
                                            entry->n_variant, sizeof *entry->variant)) {
        lksi_entry_free(entry);
        return false;
    }
    if (entry->n_variant > 0)
        memcpy(entry->variant, data + sizeof h, entry->n_variant * 8);
    memcpy(entry->binary, data + sizeof h + entry->n_variant * 8, entry->bytes);
    return true;
}

bool lksi_cache_load(struct lksi_dev *dev, const char *key, struct lksi_entry *entry)
{
    struct lksi_bytes file = {0};
    char *path = dev->cache_dir != NULL ? entry_path(dev, key, ".bin") : NULL;
    bool there = path != NULL && lksi_file_read(path, MAX_FILE, &file) == LKS_OK;
    bool good = there && parse_entry(file.data, file.size, entry);
    if (there && !good)
        lksi_log(LKS_LOG_WARNING, "cache entry %s is damaged; building from source", path);
    free(file.data);
    free(path);
    return good;
}

/* SHA-256 of a header behind its field `check`, and of what follows it. */
static lks_status entry_check(const struct header *h, const struct piece *piece, size_t count,
                              char check[LKSI_SHA256_HEX])
{
    struct lksi_sha256 sha;
    const size_t skip = offsetof(struct header, digest);
    lks_status st;
    LKSI_TRY(lksi_sha256_init(&sha));
    LKSI_TRY(lksi_sha256_update(&sha, (const char *)h + skip, sizeof *h - skip));
    for (size_t i = 0; i < count; i++)
        LKSI_TRY(lksi_sha256_update(&sha, piece[i].data, piece[i].bytes));
    return lksi_sha256_final(&sha, check);
fail:
    lksi_sha256_drop(&sha);
    return st;
}

void lksi_cache_store(struct lksi_dev *dev, const char *key, const struct lksi_entry *entry)
{
    struct header h = {.n_variant = entry->n_variant, .bytes = entry->bytes};
    const struct piece pieces[] = {
        {&h, sizeof h}, {entry->variant, entry->n_variant * 8}, {entry->binary, entry->bytes}};
    char check[LKSI_SHA256_HEX];
    char *path;
    if (dev->cache_dir == NULL)
        return;
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.digest, entry->digest, sizeof h.digest);
    path = entry_path(dev, key, ".bin");
    if (path != NULL && entry_check(&h, pieces + 1, 2, check) == LKS_OK) {
        memcpy(h.check, check, sizeof h.check);
        write_whole(dev, path, pieces, LKSI_COUNT(pieces));
    }
    free(path);
}

void lksi_entry_free(struct lksi_entry *entry)
{
    free(entry->binary);
    free(entry->variant);
    memset(entry, 0, sizeof *entry);
}

/* ---- texts: 64 digits of SHA-256, a newline, the text ---- */

/* The file of a text: its key is hashed together with the device. */
static char *text_path(struct lksi_dev *dev, const char *key)
{
    const char *const texts[] = {dev->identity, key};
    char name[LKSI_SHA256_HEX];
    return lksi_hash_texts(name, texts, 2) == LKS_OK ? entry_path(dev, name, ".txt") : NULL;
}

static bool text_is_whole(const struct lksi_bytes *file)
{
    char check[LKSI_SHA256_HEX];
    return file->size >= 65 && file->data[64] == '\n' &&
           memchr(file->data, '\0', file->size) == NULL &&
           lksi_sha256_bytes(file->data + 65, file->size - 65, check) == LKS_OK &&
           memcmp(check, file->data, 64) == 0;
}

lks_status lksi_cache_get(struct lksi_dev *dev, const char *key, char **text)
{
    struct lksi_bytes file = {0};
    char *path, *found = NULL;
    lks_status st = LKS_OK;
    if (dev->cache_dir == NULL) {
        *text = NULL;
        return LKS_OK;
    }
    path = text_path(dev, key);
    if (path == NULL)
        return LKS_E_MEMORY;
    if (lksi_file_read(path, MAX_FILE, &file) == LKS_OK) {
        if (!text_is_whole(&file))
            lksi_log(LKS_LOG_WARNING, "cache entry %s is damaged; ignored", path);
        else if ((found = lksi_strdup((const char *)file.data + 65)) == NULL)
            st = LKS_E_MEMORY;
    }
    if (st == LKS_OK)
        *text = found;
    free(file.data);
    free(path);
    return st;
}

lks_status lksi_cache_put(struct lksi_dev *dev, const char *key, const char *text)
{
    char check[LKSI_SHA256_HEX];
    char *path;
    lks_status st;
    if (dev->cache_dir == NULL)
        return LKS_OK;
    st = lksi_sha256_bytes(text, strlen(text), check);
    if (st != LKS_OK)
        return st;
    path = text_path(dev, key);
    if (path == NULL)
        return LKS_E_MEMORY;
    check[64] = '\n';
    const struct piece pieces[] = {{check, 65}, {text, strlen(text)}};
    write_whole(dev, path, pieces, LKSI_COUNT(pieces));
    free(path);
    return LKS_OK;
}
