/*
 * words.h - guessing which word was meant, and lists of words for messages.
 */
#ifndef LKSI_BASE_WORDS_H
#define LKSI_BASE_WORDS_H

#include "base/base.h"

/* The word nearest to `text`, or NULL if none is near: the same letters, a name from elsewhere
 * (`fc` for `dense`), a slip of the pen, a part of a word. */
const char *lksi_nearest_word(const char *text, const char *const *words, size_t count);

/* Appends "`a`, `b` and `c`". */
void lksi_list_words(struct lksi_str *s, const char *const *words, size_t count);

#endif
