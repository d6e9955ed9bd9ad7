/*
 * build.c - one program: from the cache or from source, and back into the cache.
 *
 * A program's key is the SHA-256 of its text, its options and everything that tells the compiler
 * (lksi_dev.identity). Its digest, the key of admission verdicts, is the SHA-256 of the binary;
 * where kernels are compiled late the binary grows with use, and the digest is the key itself.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt/grid.h"
#include "rt/program.h"

static bool relaxed(const char *options)
{
    static const char *const words[] = {
        "fast-relaxed",     "unsafe-math", "mad-enable",      "finite-math",
        "denorms-are-zero", "fast-math",   "no-signed-zeros", "single-precision-constant"};
    for (size_t i = 0; i < LKSI_COUNT(words); i++)
        if (strstr(options, words[i]) != NULL)
            return true;
    return false;
}

static lks_status make_key(const struct lksi_dev *dev, struct lksi_part *part)
{
    const char *const texts[] = {dev->identity, part->options, part->text};
    return lksi_hash_texts(part->key, texts, LKSI_COUNT(texts));
}

/* "op/vec.h:20", where the log's first error lies; compilers write "error: FILE:LINE:" or
 * "FILE:LINE:COLUMN: error:". False if none is told so. */
static bool error_place(const char *log, char place[96])
{
    for (const char *line = log; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t length = strcspn(line, "\n");
        const char *error = strstr(line, "error: "), *from = line, *colon;
        if (error == NULL || error >= line + length)
            continue;
        if (strncmp(line, "error: ", 7) == 0)
            from += 7;
        colon = memchr(from, ':', length - (size_t)(from - line));
        if (colon == NULL || colon == from || !isdigit((unsigned char)colon[1]))
            continue;
        snprintf(place, 96, "%.*s", (int)(colon + 1 + strspn(colon + 1, "0123456789") - from), from);
        return true;
    }
    return false;
}

/* The first lines of the log, each once: a fault in a shared header comes with each of its users. */
static void shorten(char *log)
{
    char *to = log, *line = log;
    for (int lines = 0; *line != '\0' && lines < 6;) { /* the rest are mostly consequences */
        size_t length = strcspn(line, "\n") + 1;
        bool last = line[length - 1] == '\0', told = false;
        for (char *old = log; old < to && !told; old += strcspn(old, "\n") + 1)
            told = strcspn(old, "\n") + 1 == length && memcmp(old, line, length) == 0;
        if (!told) {
            memmove(to, line, length);
            to += length;
            lines++;
        }
        if (last)
            break;
        line += length;
    }
    if (to > log)
        to[-1] = '\0';
}

/* What the compiler said; NULL: no memory. free(). */
static char *build_log(const struct lksi_dev *dev, cl_program program)
{
    size_t bytes = 0;
    clGetProgramBuildInfo(program, dev->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
    char *log = calloc(bytes + 1, 1);
    if (log != NULL)
        clGetProgramBuildInfo(program, dev->id, CL_PROGRAM_BUILD_LOG, bytes, log, NULL);
    return log;
}

/* Of a program that did build. Users need none of it; a test wants it to be nothing. */
static void tell_log(const struct lksi_dev *dev, const struct lksi_part *part, cl_program program)
{
    char *log = lksi_log_wanted(LKS_LOG_DEBUG) ? build_log(dev, program) : NULL;
    if (log != NULL && log[strspn(log, " \n")] != '\0')
        lksi_log(LKS_LOG_DEBUG, "program %.12s, the compiler says: %s", part->key, log);
    free(log);
}

/* Fails with the place that the build log names, and its first lines. */
static lks_status build_failed(const struct lksi_dev *dev, const struct lksi_part *part,
                               cl_program program, cl_int error)
{
    char *log = build_log(dev, program), name[80], place[96];
    lks_status st;
    lksi_source_name(part->unit[0], 0, name);
    if (log == NULL || !error_place(log, place))
        snprintf(place, sizeof place, "%s%s", name, part->n_units > 1 ? " and others" : "");
    if (log != NULL)
        shorten(log);
    st = lksi_fail(LKS_E_DEVICE, "%s: clBuildProgram failed on %s: %s (%d), options %s: %.1500s",
                   place, dev->limits.name, lksi_cl_name(error), error, part->options,
                   log != NULL ? log : "(no log)");
    free(log);
    return st;
}

static bool from_binary(struct lksi_dev *dev, struct lksi_part *part)
{
    struct lksi_entry entry;
    const unsigned char *binary;
    cl_int e, state = CL_SUCCESS;
    if (dev->keeps_kernels || !lksi_cache_load(dev, part->key, &entry))
        return false;
    binary = entry.binary;
    part->program =
        clCreateProgramWithBinary(dev->context, 1, &dev->id, &entry.bytes, &binary, &state, &e);
    if (e == CL_SUCCESS && state == CL_SUCCESS)
        e = clBuildProgram(part->program, 1, &dev->id, part->options, NULL, NULL);
    else if (e == CL_SUCCESS)
        e = state;
    free(entry.binary);
    entry.binary = NULL;
    if (e != CL_SUCCESS) {
        lksi_log(LKS_LOG_WARNING, "%s refuses its cached binary: %s (%d); building from source",
                 dev->limits.name, lksi_cl_name(e), e);
        if (part->program != NULL)
            clReleaseProgram(part->program);
        part->program = NULL;
        lksi_entry_free(&entry);
        return false;
    }
    part->entry = entry;
    lksi_log(LKS_LOG_DEBUG, "program %.12s with %zu units taken from the cache", part->key,
             part->n_units);
    return true;
}

static lks_status get_binary(struct lksi_dev *dev, cl_program program, struct lksi_entry *entry)
{
    size_t bytes = 0, kernels = 0;
    unsigned char *binary = NULL;
    if (dev->late && clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof kernels, &kernels,
                                      NULL) == CL_SUCCESS)
        lksi_grid_loaded(kernels);
    cl_int e = clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL);
    if (e == CL_SUCCESS && bytes > 0) {
        binary = lksi_alloc(bytes, 1);
        if (binary == NULL)
            return LKS_E_MEMORY;
        e = clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL);
    }
    if (e != CL_SUCCESS || bytes == 0) {
        free(binary);
        return lksi_cl_fail(e, "clGetProgramInfo", "the binary of a program on %s",
                            dev->limits.name);
    }
    free(entry->binary);
    entry->binary = binary;
    entry->bytes = bytes;
    return LKS_OK;
}

static lks_status compile(struct lksi_dev *dev, struct lksi_part *part, cl_program *program)
{
    const char *text = part->text;
    cl_int e;
    *program = clCreateProgramWithSource(dev->context, 1, &text, NULL, &e);
    if (e != CL_SUCCESS)
        return lksi_cl_fail(e, "clCreateProgramWithSource", "%s", dev->limits.name);
    e = clBuildProgram(*program, 1, &dev->id, part->options, NULL, NULL);
    if (e != CL_SUCCESS)
        return build_failed(dev, part, *program, e);
    tell_log(dev, part, *program);
    return LKS_OK;
}

static lks_status from_source(struct lksi_dev *dev, struct lksi_part *part)
{
    lks_status st;
    LKSI_TRY(compile(dev, part, &part->program));
    lksi_log(LKS_LOG_DEBUG, "program %.12s with %zu units built from source", part->key,
             part->n_units);
    if (dev->late) {
        memcpy(part->entry.digest, part->key, sizeof part->key);
        part->fresh = true;
        return LKS_OK; /* stored by lksi_part_settle, when kernels have been compiled */
    }
    LKSI_TRY(get_binary(dev, part->program, &part->entry));
    LKSI_TRY(lksi_sha256_bytes(part->entry.binary, part->entry.bytes, part->entry.digest));
    lksi_cache_store(dev, part->key, &part->entry);
    free(part->entry.binary);
    part->entry.binary = NULL;
fail:
    return st;
}

lks_status lksi_part_build(struct lksi_dev *dev, struct lksi_part *part)
{
    const char *extra = part->unit[0]->options != NULL ? part->unit[0]->options : "";
    struct lksi_str options = {0};
    lks_status st;
    if (relaxed(extra))
        return lksi_fail(LKS_E_ARGUMENT, "build option '%s' would change bits", extra);
    LKSI_TRY(lksi_source_program(dev, part->unit, part->n_units, &part->text));
    lksi_str_add(&options, "%s%s%s", dev->options, extra[0] != '\0' ? " " : "", extra);
    if (options.failed)
        return LKS_E_MEMORY;
    part->options = options.text;
    LKSI_TRY(make_key(dev, part));
    if (!from_binary(dev, part))
        st = from_source(dev, part);
    if (!dev->late || dev->keeps_kernels || dev->cache_dir == NULL) {
        free(part->text);
        part->text = NULL;
    }
fail:
    return st;
}

/* ---- binaries that grow with use ---- */

void lksi_part_launched(struct lksi_part *part, uint64_t variant)
{
    struct lksi_entry *e = &part->entry;
    for (size_t i = 0; i < e->n_variant; i++)
        if (e->variant[i] == variant)
            return;
    if (!lksi_grow(&e->variant, &e->variant_capacity, e->n_variant + 1, sizeof *e->variant))
        return; /* only the cache misses something */
    e->variant[e->n_variant++] = variant;
    part->grown = true;
}

/*
 * PoCL gives a program's binary once: one that came from a binary, or was asked before, tells
 * nothing of kernels compiled since. A new program of the same text does, since PoCL finds them
 * all in its own cache by the hash of the text.
 *
 * Nothing may run meanwhile: giving a binary, PoCL enters wider variants of all kernels into its
 * list of loaded ones, and a kernel in flight, when it ends, gives back the wrong entry and aborts
 * the process (seen with 3.1).
 */
lks_status lksi_part_settle(struct lksi_dev *dev, struct lksi_part *part)
{
    cl_program again = NULL;
    lks_status st = LKS_OK;
    if (!part->grown || dev->keeps_kernels || dev->cache_dir == NULL)
        return LKS_OK;
    LKSI_TRY(lksi_dev_wait(dev, 0));
    if (!part->fresh)
        LKSI_TRY(compile(dev, part, &again));
    LKSI_TRY(get_binary(dev, again != NULL ? again : part->program, &part->entry));
    lksi_cache_store(dev, part->key, &part->entry);
    part->grown = part->fresh = false;
fail:
    if (again != NULL)
        clReleaseProgram(again);
    free(part->entry.binary);
    part->entry.binary = NULL;
    return st;
}
