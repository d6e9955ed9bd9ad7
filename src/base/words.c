/*
 * words.c - guessing which word was meant, and lists of words for messages.
 */
#include <ctype.h>
#include <string.h>

#include "base/words.h"

enum { MOST = 32 };

/* What other programs call things. In folded letters. */
static const struct {
    const char *other, *ours;
} synonyms[] = {
    {"batchnormalization", "batch_norm"},
    {"cat", "concat"},
    {"concatenate", "concat"},
    {"conv", "conv2d"},
    {"convolution", "conv2d"},
    {"convtranspose", "conv_transpose2d"},
    {"deconv", "conv_transpose2d"},
    {"fc", "dense"},
    {"fullyconnected", "dense"},
    {"globalaveragepool", "global_avgpool"},
    {"groupnormalization", "group_norm"},
    {"he", "he_normal"},
    {"kaiming", "he_normal"},
    {"layernormalization", "layer_norm"},
    {"mae", "l1"},
    {"permute", "transpose"},
    {"swish", "silu"},
    {"unsqueeze", "reshape"},
    {"view", "reshape"},
    {"xavier", "glorot_uniform"},
};

/* Small letters and digits alone; "" if there is no room. */
static void fold(const char *text, char out[MOST])
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        if (isalnum((unsigned char)*text)) {
            if (n == MOST - 1) {
                n = 0;
                break;
            }
            out[n++] = (char)tolower((unsigned char)*text);
        }
    out[n] = '\0';
}

/* Edit distance with neighbours swapped counting as one, of words of less than MOST characters. */
static size_t distance(const char *a, const char *b)
{
    size_t d[MOST][MOST], m = strlen(a), n = strlen(b);
    if (m >= MOST || n >= MOST)
        return MOST;
    for (size_t i = 0; i <= m; i++)
        for (size_t j = 0; j <= n; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            size_t best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best)
                best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best)
                best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[m][n];
}

/* The same letters written otherwise: `BatchNorm2d`, `max-pool`. */
static const char *same_letters(const char *folded, const char *const *words, size_t count)
{
    char bare[MOST], word[MOST];
    size_t length = strlen(folded);
    memcpy(bare, folded, length + 1);
    if (length > 2 && bare[length - 1] == 'd' && isdigit((unsigned char)bare[length - 2]))
        bare[length - 2] = '\0';
    for (size_t i = 0; i < count; i++) {
        fold(words[i], word);
        if (word[0] != '\0' && (strcmp(word, folded) == 0 || strcmp(word, bare) == 0))
            return words[i];
    }
    for (size_t k = 0; k < LKSI_COUNT(synonyms); k++)
        for (size_t i = 0; i < count; i++)
            if (strcmp(synonyms[k].ours, words[i]) == 0 &&
                (strcmp(synonyms[k].other, folded) == 0 || strcmp(synonyms[k].other, bare) == 0))
                return words[i];
    return NULL;
}

/* The shortest word that holds the text, or the longest that it holds. */
static const char *part_of(const char *folded, const char *const *words, size_t count)
{
    const char *holds = NULL, *held = NULL;
    char word[MOST];
    if (strlen(folded) < 3)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        fold(words[i], word);
        if (strstr(word, folded) != NULL && (holds == NULL || strlen(words[i]) < strlen(holds)))
            holds = words[i];
        if (strlen(word) >= 4 && strstr(folded, word) != NULL &&
            (held == NULL || strlen(words[i]) > strlen(held)))
            held = words[i];
    }
    return holds != NULL ? holds : held;
}

const char *lksi_nearest_word(const char *text, const char *const *words, size_t count)
{
    const char *near = NULL, *same;
    size_t best = SIZE_MAX;
    char folded[MOST];
    fold(text, folded);
    same = same_letters(folded, words, count);
    if (same != NULL)
        return same;
    for (size_t i = 0; i < count; i++) {
        size_t d = distance(text, words[i]), limit = strlen(words[i]) / 3;
        if (d <= (limit > 1 ? limit : 1) && d < best && d < strlen(words[i])) {
            best = d;
            near = words[i];
        }
    }
    return near != NULL ? near : part_of(folded, words, count);
}

void lksi_list_words(struct lksi_str *s, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        lksi_str_add(s, "%s`%s`", i == 0 ? "" : i + 1 < count ? ", " : " and ", words[i]);
}
