/*
 * yaml_get.c - reading values out of a document tree, and the complaints about them.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "model/yaml.h"

lks_status lksi_node_fail(const struct lksi_node *node, const char *format, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (node->key[0] == '\0')
        return lksi_fail(LKS_E_INPUT, "%s:%d: %s", node->file, node->line, text);
    return lksi_fail(LKS_E_INPUT, "%s:%d: key `%s`: %s", node->file, node->line, node->key, text);
}

bool lksi_node_is_null(const struct lksi_node *node)
{
    return node->kind == LKSI_NODE_SCALAR && !node->quoted &&
           (node->text[0] == '\0' || strcmp(node->text, "~") == 0 ||
            strcmp(node->text, "null") == 0);
}

const char *lksi_node_describe(const struct lksi_node *node, char *text, size_t room)
{
    enum { SHOWN = 40 };
    if (node->kind == LKSI_NODE_MAPPING)
        snprintf(text, room, "a mapping");
    else if (node->kind == LKSI_NODE_SEQUENCE)
        snprintf(text, room, "a sequence of %zu", node->count);
    else if (lksi_node_is_null(node))
        snprintf(text, room, "nothing");
    else {
        size_t length = strlen(node->text), shown = length;
        if (length > SHOWN) {
            /* Cut between characters, not inside one. */
            for (shown = SHOWN; ((unsigned char)node->text[shown] & 0xc0) == 0x80; shown--)
                ;
        }
        snprintf(text, room, node->quoted ? "the string \"%.*s%s\"" : "`%.*s%s`", (int)shown,
                 node->text, shown < length ? "..." : "");
    }
    return text;
}

lks_status lksi_node_expected(const struct lksi_node *node, const char *what, const char *example)
{
    char found[96];
    return lksi_node_fail(node, "expected %s, found %s; write e.g. `%s`", what,
                          lksi_node_describe(node, found, sizeof found), example);
}

static size_t skip_digits(const char **p)
{
    const char *start = *p;
    while (**p >= '0' && **p <= '9')
        (*p)++;
    return (size_t)(*p - start);
}

/* [+-] and decimal digits without leading zeros, or [+-]0x and hexadecimal digits. */
static bool parse_integer(const char *text, bool *negative, uint64_t *magnitude)
{
    const char *p = text;
    uint64_t value = 0, base = 10;
    *negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
        base = 16;
        p += 2;
    } else if (p[0] == '0' && p[1] != '\0') {
        return false;
    }
    if (*p == '\0')
        return false;
    for (; *p != '\0'; p++) {
        uint64_t digit;
        if (*p >= '0' && *p <= '9')
            digit = (uint64_t)(*p - '0');
        else if (base == 16 && *p >= 'a' && *p <= 'f')
            digit = (uint64_t)(*p - 'a') + 10;
        else if (base == 16 && *p >= 'A' && *p <= 'F')
            digit = (uint64_t)(*p - 'A') + 10;
        else
            return false;
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *magnitude = value;
    return true;
}

static bool is_plain(const struct lksi_node *node)
{
    return node->kind == LKSI_NODE_SCALAR && !node->quoted;
}

lks_status lksi_node_int(const struct lksi_node *node, int64_t low, int64_t high,
                         const char *example, int64_t *out)
{
    char what[96];
    bool negative = false;
    uint64_t magnitude = 0;
    int64_t value = 0;
    bool good = is_plain(node) && parse_integer(node->text, &negative, &magnitude) &&
                magnitude <= (uint64_t)INT64_MAX;
    if (good) {
        value = negative ? -(int64_t)magnitude : (int64_t)magnitude;
        if (value >= low && value <= high) {
            *out = value;
            return LKS_OK;
        }
    }
    if (low == 1 && high >= INT32_MAX && (value <= 0 || !good))
        snprintf(what, sizeof what, "a positive integer");
    else
        snprintf(what, sizeof what, "an integer from %" PRId64 " to %" PRId64, low, high);
    return lksi_node_expected(node, what, example);
}

lks_status lksi_node_u64(const struct lksi_node *node, const char *example, uint64_t *out)
{
    bool negative;
    uint64_t magnitude;
    if (is_plain(node) && parse_integer(node->text, &negative, &magnitude) &&
        (!negative || magnitude == 0)) {
        *out = magnitude;
        return LKS_OK;
    }
    return lksi_node_expected(node, "an integer from 0 to 18446744073709551615", example);
}

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* A decimal number in full. The grammar is checked here, so that strtod's own words (inf, nan,
 * hexadecimal) stay out; the C locale keeps the decimal point a point. */
static bool parse_float(const char *text, double *out)
{
    const char *p = text;
    size_t digits;
    if (*p == '-' || *p == '+')
        p++;
    digits = skip_digits(&p);
    if (*p == '.') {
        p++;
        digits += skip_digits(&p);
    }
    if (digits == 0)
        return false;
    if (*p == 'e' || *p == 'E') {
        p++;
        if (*p == '-' || *p == '+')
            p++;
        if (skip_digits(&p) == 0)
            return false;
    }
    if (*p != '\0')
        return false;
    pthread_once(&c_locale_once, make_c_locale);
    if (c_locale == (locale_t)0)
        return false;
    *out = strtod_l(text, NULL, c_locale);
    return isfinite(*out);
}

lks_status lksi_node_float(const struct lksi_node *node, double low, double high,
                           const char *example, double *out)
{
    char what[96];
    double value;
    if (is_plain(node) && parse_float(node->text, &value) && value >= low && value <= high) {
        *out = value;
        return LKS_OK;
    }
    if (low == LKSI_POSITIVE && high == DBL_MAX)
        snprintf(what, sizeof what, "a positive number");
    else if (low == LKSI_POSITIVE)
        snprintf(what, sizeof what, "a number above 0, at most %.17g", high);
    else if (low == 0 && high == DBL_MAX)
        snprintf(what, sizeof what, "a number that is not negative");
    else if (low == -DBL_MAX && high == DBL_MAX)
        snprintf(what, sizeof what, "a number");
    else
        snprintf(what, sizeof what, "a number from %g to %g", low, high);
    return lksi_node_expected(node, what, example);
}

lks_status lksi_node_bool(const struct lksi_node *node, const char *example, bool *out)
{
    if (is_plain(node) && (strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0)) {
        *out = node->text[0] == 't';
        return LKS_OK;
    }
    return lksi_node_expected(node, "`true` or `false`", example);
}

lks_status lksi_node_string(const struct lksi_node *node, const char *example, const char **out)
{
    if (node->kind != LKSI_NODE_SCALAR || lksi_node_is_null(node))
        return lksi_node_expected(node, "a word or a text", example);
    *out = node->text;
    return LKS_OK;
}

lks_status lksi_node_is(const struct lksi_node *node, enum lksi_node_kind kind, const char *example)
{
    static const char *const names[] = {"a single value", "a sequence", "a mapping"};
    return node->kind == kind ? LKS_OK : lksi_node_expected(node, names[kind], example);
}

const struct lksi_node *lksi_node_get(const struct lksi_node *map, const char *key)
{
    assert(map->kind == LKSI_NODE_MAPPING);
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->items[i]->key, key) == 0)
            return map->items[i];
    return NULL;
}

lks_status lksi_node_need(const struct lksi_node *map, const char *key, const char *example,
                          const struct lksi_node **out)
{
    const struct lksi_node *node = lksi_node_get(map, key);
    if (node != NULL) {
        *out = node;
        return LKS_OK;
    }
    return lksi_fail(LKS_E_INPUT, "%s:%d: key `%s` is missing%s%s%s; write e.g. `%s`", map->file,
                     map->line, key, map->key[0] != '\0' ? " in `" : "", map->key,
                     map->key[0] != '\0' ? "`" : "", example);
}

lks_status lksi_node_check_keys(const struct lksi_node *map, const char *const *allowed,
                                size_t count)
{
    assert(map->kind == LKSI_NODE_MAPPING);
    for (size_t i = 0; i < map->count; i++) {
        const char *key = map->items[i]->key, *near;
        size_t at = 0;
        while (at < count && strcmp(allowed[at], key) != 0)
            at++;
        if (at < count)
            continue;
        struct lksi_str words = {0};
        near = lksi_nearest_word(key, allowed, count);
        lksi_list_words(&words, allowed, count);
        lksi_fail(LKS_E_INPUT, "%s:%d: unknown key `%s`%s%s; %s%s%s%s", map->file,
                  map->key_lines[i], key, map->key[0] != '\0' ? " in " : "", map->key,
                  near != NULL ? "did you mean `" : "", near != NULL ? near : "",
                  near != NULL ? "`? Allowed: " : "allowed: ",
                  words.failed || count == 0 ? "nothing" : words.text);
        free(words.text);
        return LKS_E_INPUT;
    }
    return LKS_OK;
}

lks_status lksi_node_choice(const struct lksi_node *node, const char *const *words, size_t count,
                            size_t *out)
{
    struct lksi_str list = {0};
    char found[96];
    const char *near = NULL;
    lks_status st;
    if (node->kind == LKSI_NODE_SCALAR) {
        for (size_t i = 0; i < count; i++)
            if (strcmp(words[i], node->text) == 0) {
                *out = i;
                return LKS_OK;
            }
        near = lksi_nearest_word(node->text, words, count);
    }
    lksi_list_words(&list, words, count);
    lksi_node_describe(node, found, sizeof found);
    st = near != NULL ? lksi_node_fail(node, "found %s; did you mean `%s`? Expected one of %s",
                                       found, near, list.failed ? "a few words" : list.text)
                      : lksi_node_fail(node, "found %s; expected one of %s", found,
                                       list.failed ? "a few words" : list.text);
    free(list.text);
    return st;
}

#define OPTIONAL(map, key, call)                                                                   \
    const struct lksi_node *node = lksi_node_get(map, key);                                        \
    return node != NULL ? (call) : LKS_OK

lks_status lksi_map_int(const struct lksi_node *map, const char *key, int64_t low, int64_t high,
                        const char *example, int64_t *out)
{
    OPTIONAL(map, key, lksi_node_int(node, low, high, example, out));
}

lks_status lksi_map_u64(const struct lksi_node *map, const char *key, const char *example,
                        uint64_t *out)
{
    OPTIONAL(map, key, lksi_node_u64(node, example, out));
}

lks_status lksi_map_float(const struct lksi_node *map, const char *key, double low, double high,
                          const char *example, double *out)
{
    OPTIONAL(map, key, lksi_node_float(node, low, high, example, out));
}

lks_status lksi_map_bool(const struct lksi_node *map, const char *key, const char *example,
                         bool *out)
{
    OPTIONAL(map, key, lksi_node_bool(node, example, out));
}

lks_status lksi_map_string(const struct lksi_node *map, const char *key, const char *example,
                           const char **out)
{
    OPTIONAL(map, key, lksi_node_string(node, example, out));
}
