/*
 * moving.c - sequences of moving images, drawn in integers from Philox words.
 */
#include <stdlib.h>
#include <string.h>

#include "base/stream.h"
#include "contract/philox.h"
#include "data/idx.h"
#include "data/moving.h"

#define PART 16 /* places a pixel */
#define MAX_SIZE 32768

enum { IMAGE, PLACE_Y, PLACE_X, SPEED_Y, SPEED_X, WORDS }; /* the words of a digit */

struct moving {
    uint32_t frames, height, width, digits, speed, stream;
    uint64_t seed;
    uint32_t images, h, w; /* the file's */
    float table[256];
    uint8_t pixels[];
};

struct digit {
    const uint8_t *pixels;
    int64_t y, x, dy, dx; /* at frame 0, and a frame; in parts of a pixel */
};

/* Digit k of a sample. */
static void choose(const struct moving *m, uint32_t sample, uint32_t k, struct digit *d)
{
    uint32_t word[WORDS];
    uint32_t range[WORDS] = {m->images, PART * (m->height - m->h) + 1, PART * (m->width - m->w) + 1,
                             2 * PART * m->speed + 1, 2 * PART * m->speed + 1};
    for (uint32_t i = 0; i < WORDS; i++)
        word[i] = lks_mul_high(
            lks_random_word(m->seed, m->stream, sample, (uint64_t)k * WORDS + i), range[i]);
    d->pixels = m->pixels + (size_t)word[IMAGE] * m->h * m->w;
    d->y = word[PLACE_Y];
    d->x = word[PLACE_X];
    d->dy = (int64_t)word[SPEED_Y] - PART * (int64_t)m->speed;
    d->dx = (int64_t)word[SPEED_X] - PART * (int64_t)m->speed;
}

/* A place on a line, reflected at 0 and `end` until it lies between. */
static uint32_t bounce(int64_t place, int64_t end)
{
    if (end == 0)
        return 0;
    place %= 2 * end;
    if (place < 0)
        place += 2 * end;
    return (uint32_t)(place <= end ? place : 2 * end - place);
}

/* Row r, column c of an image, 0 around it. */
static uint32_t pixel(const struct moving *m, const uint8_t *image, uint32_t r, uint32_t c)
{
    return r < m->h && c < m->w ? image[(size_t)r * m->w + c] : 0;
}

/* The image between the pixels, by its four neighbours; what is brighter stays. */
static void draw(const struct moving *m, const uint8_t *image, uint32_t y, uint32_t x,
                 uint8_t *frame)
{
    uint32_t fy = y % PART, fx = x % PART, rows = m->h + (fy > 0), columns = m->w + (fx > 0);
    uint8_t *out = frame + (size_t)(y / PART) * m->width + x / PART;
    for (uint32_t r = 0; r < rows; r++, out += m->width)
        for (uint32_t c = 0; c < columns; c++) {
            /* r - 1 and c - 1 wrap to a large number at 0, which is outside. */
            uint32_t sum = (PART - fy) * (PART - fx) * pixel(m, image, r, c) +
                           (PART - fy) * fx * pixel(m, image, r, c - 1) +
                           fy * (PART - fx) * pixel(m, image, r - 1, c) +
                           fy * fx * pixel(m, image, r - 1, c - 1);
            uint8_t v = (uint8_t)((sum + PART * PART / 2) / (PART * PART));
            if (v > out[c])
                out[c] = v;
        }
}

static lks_status fill(void *user, size_t index, float *x, int32_t *label)
{
    const struct moving *m = user;
    size_t one = (size_t)m->height * m->width, n = m->frames * one;
    uint8_t *bytes = (uint8_t *)x + 3 * n; /* each is read before its float reaches it */
    struct digit d;
    (void)label;
    memset(bytes, 0, n);
    for (uint32_t k = 0; k < m->digits; k++) {
        choose(m, (uint32_t)index, k, &d);
        for (uint32_t t = 0; t < m->frames; t++)
            draw(m, d.pixels, bounce(d.y + t * d.dy, PART * (int64_t)(m->height - m->h)),
                 bounce(d.x + t * d.dx, PART * (int64_t)(m->width - m->w)), bytes + t * one);
    }
    for (size_t i = 0; i < n; i++)
        x[i] = m->table[bytes[i]];
    return LKS_OK;
}

static lks_status check(const struct lks_moving_digits_params *p)
{
    const struct {
        const char *name;
        uint32_t value, low, high;
    } range[] = {{"frames", p->frames, 1, MAX_SIZE},
                 {"height", p->height, 1, MAX_SIZE},
                 {"width", p->width, 1, MAX_SIZE},
                 {"digits", p->digits, 0, 1024},
                 {"speed", p->speed, 0, MAX_SIZE}};
    for (size_t i = 0; i < LKSI_COUNT(range); i++)
        if (range[i].value < range[i].low || range[i].value > range[i].high)
            return lksi_fail(LKS_E_ARGUMENT, "%s is %u, expected %u to %u", range[i].name,
                             range[i].value, range[i].low, range[i].high);
    if (p->count < 1 || p->count > UINT32_MAX)
        return lksi_fail(LKS_E_ARGUMENT, "count is %zu, expected 1 to %u", p->count, UINT32_MAX);
    return LKS_OK;
}

/* The images and the numbers in one piece. */
static lks_status take(const struct lks_moving_digits_params *p, const struct lksi_idx *idx,
                       const struct lksi_normalize *normalize, struct moving **out)
{
    struct moving *m;
    float *table;
    lks_status st;
    if (idx->dim[1] > p->height || idx->dim[2] > p->width)
        return lksi_fail(LKS_E_INPUT, "%s: byte 8: its images of %u x %u do not fit into frames of "
                                      "%u x %u (height, width)",
                         p->images, idx->dim[1], idx->dim[2], p->height, p->width);
    st = lksi_normalize_table(normalize, 1, &table);
    if (st != LKS_OK)
        return st;
    m = lksi_alloc(1, sizeof *m + idx->count);
    if (m != NULL) {
        m->frames = p->frames;
        m->height = p->height;
        m->width = p->width;
        m->digits = p->digits > 0 ? p->digits : 2;
        m->speed = p->speed > 0 ? p->speed : 3;
        m->seed = p->seed;
        m->stream = lksi_stream_id("data", "moving_digits");
        m->images = idx->dim[0];
        m->h = idx->dim[1];
        m->w = idx->dim[2];
        memcpy(m->table, table, sizeof m->table);
        memcpy(m->pixels, idx->values, idx->count);
    }
    free(table);
    *out = m;
    return m != NULL ? LKS_OK : LKS_E_MEMORY;
}

/* What determines the samples, but for the normalisation, which belongs to the model. */
static lks_status describe(const struct moving *m, size_t count, struct lksi_str *s)
{
    char sha[LKSI_SHA256_HEX];
    lks_status st = lksi_sha256_bytes(m->pixels, (size_t)m->images * m->h * m->w, sha);
    if (st != LKS_OK)
        return st;
    lksi_str_add(s,
                 "lockstep-moving-digits-1\ncount %zu frames %u height %u width %u digits %u speed "
                 "%u seed %llu\nimages %u %u %u %s\n",
                 count, m->frames, m->height, m->width, m->digits, m->speed,
                 (unsigned long long)m->seed, m->images, m->h, m->w, sha);
    return s->failed ? LKS_E_MEMORY : LKS_OK;
}

lks_status lksi_moving_dataset(const struct lks_moving_digits_params *p,
                               const struct lksi_normalize *normalize, struct lksi_dataset **out)
{
    struct lksi_idx idx = {0};
    struct lksi_str content = {0};
    struct moving *m = NULL;
    struct lksi_dataset *ds = NULL;
    lks_status st;
    LKSI_TRY(check(p));
    LKSI_TRY(lksi_idx_read(p->images, 3, 3, &idx));
    LKSI_TRY(take(p, &idx, normalize, &m));
    LKSI_TRY(describe(m, p->count, &content));
    struct lksi_dataset_params params = {
        .count = p->count,
        .rank = 4,
        .dims = {p->frames, p->height, p->width, 1},
        .no_labels = true,
        .fill = fill,
        .user = m,
        .content = content.text,
    };
    LKSI_TRY(lksi_dataset_create(&ds, &params));
    ds->owned = m;
    m = NULL;
    *out = ds;
fail:
    free(content.text);
    free(idx.values);
    free(m);
    return st;
}
