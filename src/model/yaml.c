/*
 * yaml.c - libyaml's events made into a document tree. The getters are in yaml_get.c.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/file.h"
#include "model/yaml.h"

/* All memory of a document: one list of blocks. */
struct block {
    struct block *next;
};

struct lksi_yaml {
    struct block *blocks;
    const char *file;
    struct lksi_node *root;
};

/* A mapping or sequence that is still open, with its growing lists. */
struct level {
    struct lksi_node *node;
    struct lksi_node **items;
    int *key_lines;
    size_t item_room, line_room;
    const char *key; /* mapping: the key whose value comes next, or NULL */
    int key_line;
};

struct builder {
    struct lksi_yaml *doc;
    yaml_parser_t parser;
    struct level levels[LKSI_YAML_MAX_DEPTH];
    size_t depth;
};

/* Zeroed memory that lives as long as the document. */
static void *doc_alloc(struct lksi_yaml *doc, size_t count, size_t size)
{
    struct block *b;
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) ||
        __builtin_add_overflow(bytes, sizeof(max_align_t), &bytes)) {
        lksi_fail(LKS_E_MEMORY, "out of host memory: %zu items of %zu bytes", count, size);
        return NULL;
    }
    b = lksi_alloc(bytes, 1);
    if (b == NULL)
        return NULL;
    b->next = doc->blocks;
    doc->blocks = b;
    return (char *)b + sizeof(max_align_t);
}

static const char *doc_text(struct lksi_yaml *doc, const char *text, size_t length)
{
    char *copy = doc_alloc(doc, length + 1, 1);
    return copy != NULL ? memcpy(copy, text, length) : NULL;
}

static int line_of(const yaml_event_t *e)
{
    return (int)e->start_mark.line + 1;
}

#define FAIL_EVENT(b, e, ...) fail_at((b)->doc->file, (e)->start_mark, __VA_ARGS__)

LKSI_PRINTF(3, 4)
static lks_status fail_at(const char *file, yaml_mark_t mark, const char *format, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return lksi_fail(LKS_E_INPUT, "%s:%zu:%zu: %s", file, mark.line + 1, mark.column + 1, text);
}

/* What libyaml says about a text that is no YAML. */
static lks_status fail_parser(const struct builder *b)
{
    const yaml_parser_t *p = &b->parser;
    if (p->error == YAML_MEMORY_ERROR)
        return lksi_fail(LKS_E_MEMORY, "out of host memory while reading %s", b->doc->file);
    if (p->error == YAML_READER_ERROR)
        return lksi_fail(LKS_E_INPUT, "%s: byte %zu: %s; save the file as UTF-8 text", b->doc->file,
                         p->problem_offset, p->problem != NULL ? p->problem : "unreadable text");
    return fail_at(b->doc->file, p->problem_mark, "not valid YAML: %s%s%s",
                   p->problem != NULL ? p->problem : "syntax error", p->context != NULL ? ", " : "",
                   p->context != NULL ? p->context : "");
}

/* The key of a node about to be added: the mapping's current key or "parent[index]". */
static const char *key_for(struct builder *b)
{
    struct lksi_str s = {0};
    const char *key = NULL;
    struct level *l;
    if (b->depth == 0)
        return "";
    l = &b->levels[b->depth - 1];
    if (l->node->kind == LKSI_NODE_MAPPING)
        return l->key;
    lksi_str_add(&s, "%s[%zu]", l->node->key, l->node->count);
    if (!s.failed)
        key = doc_text(b->doc, s.text, s.length);
    free(s.text);
    return key;
}

/* Puts a node where it belongs: the root, the next item, or the value of the current key. */
static lks_status attach(struct builder *b, struct lksi_node *node)
{
    if (b->depth == 0) {
        b->doc->root = node;
        return LKS_OK;
    }
    struct level *l = &b->levels[b->depth - 1];
    size_t n = l->node->count;
    if (!lksi_grow(&l->items, &l->item_room, n + 1, sizeof(struct lksi_node *)) ||
        !lksi_grow(&l->key_lines, &l->line_room, n + 1, sizeof(int)))
        return LKS_E_MEMORY;
    l->items[n] = node;
    l->key_lines[n] = l->key_line;
    l->node->count = n + 1;
    l->key = NULL;
    return LKS_OK;
}

static lks_status add_node(struct builder *b, const yaml_event_t *e, enum lksi_node_kind kind,
                           struct lksi_node **out)
{
    const char *key = key_for(b);
    struct lksi_node *node = key != NULL ? doc_alloc(b->doc, 1, sizeof *node) : NULL;
    if (node == NULL)
        return LKS_E_MEMORY;
    *node = (struct lksi_node){
        .kind = kind,
        .file = b->doc->file,
        .line = line_of(e),
        .column = (int)e->start_mark.column + 1,
        .key = key,
    };
    *out = node;
    return attach(b, node);
}

/* A key that comes twice would silently win or lose, so it is refused. */
static lks_status set_key(struct builder *b, const yaml_event_t *e, const char *key)
{
    struct level *l = &b->levels[b->depth - 1];
    if (key[0] == '\0')
        return FAIL_EVENT(b, e, "%s", "a key is empty; write a word before the colon");
    if (l->node->count == LKSI_YAML_MAX_KEYS)
        return FAIL_EVENT(b, e, "more than %d keys in one mapping", LKSI_YAML_MAX_KEYS);
    for (size_t i = 0; i < l->node->count; i++)
        if (strcmp(l->items[i]->key, key) == 0)
            return lksi_fail(LKS_E_INPUT,
                             "%s:%d: key `%s` comes twice, first in line %d; remove one of the two",
                             b->doc->file, line_of(e), key, l->key_lines[i]);
    l->key = key;
    l->key_line = line_of(e);
    return LKS_OK;
}

static bool wants_key(const struct builder *b)
{
    const struct level *l = b->depth > 0 ? &b->levels[b->depth - 1] : NULL;
    return l != NULL && l->node->kind == LKSI_NODE_MAPPING && l->key == NULL;
}

static lks_status on_scalar(struct builder *b, const yaml_event_t *e)
{
    const char *value = (const char *)e->data.scalar.value;
    size_t length = e->data.scalar.length;
    struct lksi_node *node;
    const char *text;
    lks_status st;
    if (e->data.scalar.anchor != NULL)
        return FAIL_EVENT(b, e,
                          "anchors (`&%s`) are not supported; write the value out where it is "
                          "needed",
                          (const char *)e->data.scalar.anchor);
    if (e->data.scalar.tag != NULL)
        return FAIL_EVENT(b, e, "tags (`%s`) are not supported; remove it",
                          (const char *)e->data.scalar.tag);
    if (strlen(value) != length)
        return FAIL_EVENT(b, e, "%s", "a zero byte stands in the text; remove it");
    text = doc_text(b->doc, value, length);
    if (text == NULL)
        return LKS_E_MEMORY;
    if (wants_key(b))
        return set_key(b, e, text);
    LKSI_TRY(add_node(b, e, LKSI_NODE_SCALAR, &node));
    node->text = text;
    node->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
fail:
    return st;
}

static lks_status on_open(struct builder *b, const yaml_event_t *e, enum lksi_node_kind kind)
{
    bool map = kind == LKSI_NODE_MAPPING;
    const yaml_char_t *anchor = map ? e->data.mapping_start.anchor : e->data.sequence_start.anchor;
    const yaml_char_t *tag = map ? e->data.mapping_start.tag : e->data.sequence_start.tag;
    struct lksi_node *node;
    lks_status st;
    if (anchor != NULL)
        return FAIL_EVENT(b, e,
                          "anchors (`&%s`) are not supported; write the value out where it is "
                          "needed",
                          (const char *)anchor);
    if (tag != NULL)
        return FAIL_EVENT(b, e, "tags (`%s`) are not supported; remove it", (const char *)tag);
    if (wants_key(b))
        return FAIL_EVENT(b, e, "a key is a word, found %s",
                          map ? "a mapping (`{...}`)" : "a sequence (`[...]`)");
    if (b->depth == LKSI_YAML_MAX_DEPTH)
        return FAIL_EVENT(b, e, "more than %d mappings and sequences inside each other",
                          LKSI_YAML_MAX_DEPTH);
    LKSI_TRY(add_node(b, e, kind, &node));
    b->levels[b->depth] = (struct level){.node = node};
    b->depth++;
fail:
    return st;
}

/* Moves the lists of the innermost open node into the document. */
static lks_status on_close(struct builder *b)
{
    struct level *l = &b->levels[--b->depth];
    struct lksi_node *node = l->node;
    lks_status st = LKS_OK;
    if (node->count > 0) {
        node->items = doc_alloc(b->doc, node->count, sizeof *node->items);
        node->key_lines = doc_alloc(b->doc, node->count, sizeof *node->key_lines);
        if (node->items == NULL || node->key_lines == NULL) {
            st = LKS_E_MEMORY;
        } else {
            memcpy(node->items, l->items, node->count * sizeof *node->items);
            memcpy(node->key_lines, l->key_lines, node->count * sizeof *node->key_lines);
        }
    }
    free(l->items);
    free(l->key_lines);
    return st;
}

static lks_status on_event(struct builder *b, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return on_scalar(b, e);
    case YAML_SEQUENCE_START_EVENT:
        return on_open(b, e, LKSI_NODE_SEQUENCE);
    case YAML_MAPPING_START_EVENT:
        return on_open(b, e, LKSI_NODE_MAPPING);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return on_close(b);
    case YAML_ALIAS_EVENT:
        return FAIL_EVENT(b, e, "aliases (`*%s`) are not supported; write the value out",
                          (const char *)e->data.alias.anchor);
    case YAML_DOCUMENT_START_EVENT:
        if (b->doc->root != NULL)
            return FAIL_EVENT(b, e, "%s", "a second document starts here; keep one in a file");
        return LKS_OK;
    default:
        return LKS_OK;
    }
}

static lks_status build(struct builder *b)
{
    bool more = true;
    while (more) {
        yaml_event_t event;
        if (!yaml_parser_parse(&b->parser, &event))
            return fail_parser(b);
        lks_status st = on_event(b, &event);
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (st != LKS_OK)
            return st;
    }
    if (b->doc->root == NULL)
        return lksi_fail(LKS_E_INPUT, "%s:1: the file is empty", b->doc->file);
    return LKS_OK;
}

lks_status lksi_yaml_parse(const char *name, const char *text, size_t length,
                           struct lksi_yaml **out)
{
    struct builder *b = lksi_alloc(1, sizeof *b);
    struct lksi_yaml *doc = lksi_alloc(1, sizeof *doc);
    bool started = false;
    lks_status st = LKS_E_MEMORY;
    if (b == NULL || doc == NULL)
        goto fail;
    b->doc = doc;
    doc->file = doc_text(doc, name, strlen(name));
    if (doc->file == NULL)
        goto fail;
    if (length > LKSI_YAML_MAX_BYTES) {
        st = lksi_fail(LKS_E_INPUT,
                       "%s: %zu bytes are too many for a model file, at most %d are read", name,
                       length, LKSI_YAML_MAX_BYTES);
        goto fail;
    }
    if (!yaml_parser_initialize(&b->parser)) {
        st = lksi_fail(LKS_E_MEMORY, "out of host memory while reading %s", name);
        goto fail;
    }
    started = true;
    yaml_parser_set_input_string(&b->parser, (const unsigned char *)text, length);
    st = build(b);
fail:
    if (started)
        yaml_parser_delete(&b->parser);
    while (b != NULL && b->depth > 0) {
        b->depth--;
        free(b->levels[b->depth].items);
        free(b->levels[b->depth].key_lines);
    }
    free(b);
    if (st == LKS_OK)
        *out = doc;
    else
        lksi_yaml_destroy(&doc);
    return st;
}

lks_status lksi_yaml_load(const char *path, struct lksi_yaml **out)
{
    struct lksi_bytes bytes;
    lks_status st = lksi_file_read(path, LKSI_YAML_MAX_BYTES, &bytes);
    if (st != LKS_OK)
        return st;
    st = lksi_yaml_parse(path, (const char *)bytes.data, bytes.size, out);
    free(bytes.data);
    return st;
}

const struct lksi_node *lksi_yaml_root(const struct lksi_yaml *doc)
{
    return doc->root;
}

void lksi_yaml_destroy(struct lksi_yaml **doc)
{
    if (*doc == NULL)
        return;
    for (struct block *b = (*doc)->blocks; b != NULL;) {
        struct block *next = b->next;
        free(b);
        b = next;
    }
    free(*doc);
    *doc = NULL;
}
