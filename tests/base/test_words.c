/*
 * test_words.c - which word is guessed for another.
 */
#include "base/words.h"
#include "helpers.h"

static const char *const words[] = {"relu",  "conv2d", "maxpool", "bn", "batch_norm", "dense",
                                    "exp",   "softmax_cross_entropy"};

static void expect(const char *text, const char *word)
{
    const char *near = lksi_nearest_word(text, words, LKSI_COUNT(words));
    cr_assert(near == word || (near != NULL && word != NULL && strcmp(near, word) == 0),
              "`%s`: `%s` instead of `%s`", text, near != NULL ? near : "nothing",
              word != NULL ? word : "nothing");
}

Test(words, slips)
{
    expect("rleu", "relu");
    expect("conv2", "conv2d");
    expect("max_pool", "maxpool");
    expect("desne", "dense");
}

Test(words, other_spellings_and_names)
{
    expect("BatchNorm2d", "batch_norm");
    expect("batch-norm", "batch_norm");
    expect("Conv2D", "conv2d");
    expect("convolution", "conv2d");
    expect("fc", "dense");
    expect("cross_entropy", "softmax_cross_entropy");
    expect("maxpooling", "maxpool");
}

Test(words, nothing_near)
{
    expect("", NULL);
    expect("_", NULL);
    expect("xx", NULL);
    expect("expand", NULL); /* a word of three letters is no hint */
    expect("transformer", NULL);
    expect("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL);
}

Test(words, lists)
{
    struct lksi_str s = {0};
    lksi_list_words(&s, words, 1);
    lksi_str_add(&s, "; ");
    lksi_list_words(&s, words, 3);
    cr_assert(strcmp(s.text, "`relu`; `relu`, `conv2d` and `maxpool`") == 0, "%s", s.text);
    free(s.text);
}
