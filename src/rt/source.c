/*
 * source.c - makes the text of one program out of units.
 *
 * Contract headers come first, each once, before any macro of a unit can touch them. Then each
 * unit: its macros, LKS_KERNEL and LKS_FN for its number, its text; behind it, #undef of its
 * macros and of every macro that the text itself defines, so that two units with the same macro
 * names can stand in one program.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt/rt_cl.h"

#define NAME_MAX_LENGTH 80
#define MAX_DEPTH       16

struct assembly {
    const struct lksi_dev *dev;
    struct lksi_str out;
    struct lksi_str undef;         /* lines to stand behind the current unit */
    char (*once)[NAME_MAX_LENGTH]; /* contract headers already in `out` */
    size_t n_once, once_capacity;
};

/* ---- files ---- */

static lks_status read_file(const char *path, char **text)
{
    struct lksi_str s = {0};
    char piece[4096];
    size_t n;
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return lksi_fail(LKS_E_DEVICE, "kernel text %s cannot be read", path);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        lksi_str_append(&s, piece, n);
    lksi_str_append(&s, "", 0);
    fclose(f);
    if (s.failed) {
        free(s.text);
        return LKS_E_MEMORY;
    }
    *text = s.text;
    return LKS_OK;
}

lks_status lksi_source_file(const struct lksi_dev *dev, const char *name, const char **text,
                            char **owned)
{
    *owned = NULL;
    if (dev->kernel_dir != NULL) {
        struct lksi_str path = {0};
        lksi_str_add(&path, "%s/%s", dev->kernel_dir, name);
        lks_status st = path.failed ? LKS_E_MEMORY : read_file(path.text, owned);
        free(path.text);
        *text = *owned;
        return st;
    }
    for (const struct lksi_embedded *e = lksi_embedded_files; e->name != NULL; e++) {
        if (strcmp(e->name, name) == 0) {
            *text = e->text;
            return LKS_OK;
        }
    }
    return lksi_fail(LKS_E_DEVICE, "no kernel text '%s' in the library", name);
}

void lksi_source_name(const struct lksi_unit *unit, size_t index, char name[80])
{
    if (unit->source != NULL)
        snprintf(name, 80, "%s", unit->source);
    else
        snprintf(name, 80, "unit_%zu", index);
}

static bool is_contract(const char *name)
{
    return strncmp(name, "contract/", 9) == 0;
}

/* ---- lines ---- */

/* If the line is `# word rest`, returns rest, else NULL. */
static const char *directive(const char *line, const char *word)
{
    size_t length = strlen(word);
    while (*line == ' ' || *line == '\t')
        line++;
    if (*line++ != '#')
        return NULL;
    while (*line == ' ' || *line == '\t')
        line++;
    if (strncmp(line, word, length) != 0 || isalnum((unsigned char)line[length]))
        return NULL;
    for (line += length; *line == ' ' || *line == '\t';)
        line++;
    return line;
}

/* The full name that `#include "..."` means inside `from`; false if the line is no such include.
 * A header without a folder stands in contract/, anything else beside the file that includes it. */
static bool include_name(const char *line, const char *from, char name[NAME_MAX_LENGTH])
{
    const char *rest = directive(line, "include");
    const char *end, *slash = strchr(from, '/');
    int length, folder = slash != NULL ? (int)(slash - from) + 1 : 0;
    if (rest == NULL || *rest != '"' || (end = strpbrk(rest + 1, "\"\n")) == NULL || *end != '"')
        return false;
    length = (int)(end - rest) - 1;
    if (memchr(rest + 1, '/', (size_t)length) != NULL)
        snprintf(name, NAME_MAX_LENGTH, "%.*s", length, rest + 1);
    else if (folder > 0 && rest[length] != 'h')
        snprintf(name, NAME_MAX_LENGTH, "%.*s%.*s", folder, from, length, rest + 1);
    else
        snprintf(name, NAME_MAX_LENGTH, "contract/%.*s", length, rest + 1);
    return true;
}

static void note_define(struct assembly *a, const char *line)
{
    const char *name = directive(line, "define");
    size_t n = 0;
    if (name == NULL)
        return;
    while (isalnum((unsigned char)name[n]) || name[n] == '_')
        n++;
    if (n > 0)
        lksi_str_add(&a->undef, "#undef %.*s\n", (int)n, name);
}

/* ---- emission ---- */

static bool seen_once(struct assembly *a, const char *name)
{
    for (size_t i = 0; i < a->n_once; i++)
        if (strcmp(a->once[i], name) == 0)
            return true;
    if (lksi_grow(&a->once, &a->once_capacity, a->n_once + 1, sizeof *a->once))
        snprintf(a->once[a->n_once++], NAME_MAX_LENGTH, "%s", name);
    else
        a->out.failed = true;
    return false;
}

static lks_status emit_file(struct assembly *a, const char *name, int depth, bool contracts);

/*
 * Walks a text called `name`. With `contracts`, emits only the contract headers that it includes
 * (directly or through other files), and if it is such a header, all of it; otherwise emits the
 * text without contract headers, and notes what it defines.
 */
static lks_status emit_text(struct assembly *a, const char *name, const char *text, int depth,
                            bool contracts)
{
    bool whole = contracts == is_contract(name);
    char inner[NAME_MAX_LENGTH];
    unsigned number = 1;
    lks_status st = LKS_OK;
    if (depth > MAX_DEPTH)
        return lksi_fail(LKS_E_DEVICE, "%s: includes stand too deep", name);
    if (whole)
        lksi_str_add(&a->out, "#line 1 \"%s\"\n", name);
    while (*text != '\0') {
        const char *end = strchr(text, '\n');
        size_t length = end != NULL ? (size_t)(end - text) + 1 : strlen(text);
        number++;
        if (include_name(text, name, inner)) {
            if (contracts || !is_contract(inner))
                LKSI_TRY(emit_file(a, inner, depth + 1, contracts));
            if (whole)
                lksi_str_add(&a->out, "#line %u \"%s\"\n", number, name);
        } else if (whole) {
            lksi_str_append(&a->out, text, length);
            if (!contracts)
                note_define(a, text);
        }
        text += length;
    }
    if (whole)
        lksi_str_append(&a->out, "\n", 1);
fail:
    return st;
}

static lks_status emit_file(struct assembly *a, const char *name, int depth, bool contracts)
{
    const char *text = NULL;
    char *owned = NULL;
    lks_status st;
    if (contracts && is_contract(name) && seen_once(a, name))
        return LKS_OK;
    LKSI_TRY(lksi_source_file(a->dev, name, &text, &owned));
    st = emit_text(a, name, text, depth, contracts);
fail:
    free(owned);
    return st;
}

static lks_status emit_unit(struct assembly *a, const struct lksi_unit *unit, size_t index,
                            bool contracts)
{
    char name[NAME_MAX_LENGTH];
    lksi_source_name(unit, index, name);
    return unit->source != NULL ? emit_file(a, name, 0, contracts)
                                : emit_text(a, name, unit->text, 0, contracts);
}

/* "MR=6 RELU" as #define lines, and their #undef. */
static void emit_defines(struct assembly *a, const char *defines)
{
    const char *p = defines != NULL ? defines : "";
    while (*(p += strspn(p, " ")) != '\0') {
        size_t length = strcspn(p, " ");
        const char *equals = memchr(p, '=', length);
        size_t name = equals != NULL ? (size_t)(equals - p) : length;
        lksi_str_add(&a->out, "#define %.*s %.*s\n", (int)name, p,
                     equals != NULL ? (int)(length - name - 1) : 1,
                     equals != NULL ? equals + 1 : "1");
        lksi_str_add(&a->undef, "#undef %.*s\n", (int)name, p);
        p += length;
    }
}

lks_status lksi_source_program(const struct lksi_dev *dev, const struct lksi_unit *const *units,
                               size_t count, char **text)
{
    struct assembly a = {.dev = dev};
    lks_status st = LKS_OK;
    lksi_str_add(&a.out, "#pragma OPENCL FP_CONTRACT OFF\n");
    for (size_t i = 0; i < count; i++)
        LKSI_TRY(emit_unit(&a, units[i], i, true));
    for (size_t i = 0; i < count; i++) {
        a.undef.length = 0;
        lksi_str_add(&a.out, "#define LKS_KERNEL(n) n##_u%zu\n#define LKS_FN(n) n##_f%zu\n", i, i);
        emit_defines(&a, units[i]->defines);
        LKSI_TRY(emit_unit(&a, units[i], i, false));
        lksi_str_add(&a.out, "%s#undef LKS_KERNEL\n#undef LKS_FN\n",
                     a.undef.length > 0 ? a.undef.text : "");
    }
    if (a.out.failed || a.undef.failed) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    *text = a.out.text;
    a.out.text = NULL;
fail:
    free(a.out.text);
    free(a.undef.text);
    free(a.once);
    return st;
}
