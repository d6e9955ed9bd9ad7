/*
 * text.h - windows of a text: integers in, the next character at every position out.
 *
 * The bytes of a part of a file become numbers: the place of the byte in the sorted set of all bytes
 * of the file (its vocabulary). Sample i are `context` numbers from i * stride on, its labels the
 * same one further.
 */
#ifndef LKSI_DATA_TEXT_H
#define LKSI_DATA_TEXT_H

#include <lockstep/dataset.h>

#include "data/dataset.h"

/* A data set of tokens; `vocabulary` (or NULL) is another text whose vocabulary this one takes in
 * place of its own. Errors as lks_dataset_open_text. */
lks_status lksi_text_dataset(const struct lks_text_params *params,
                             const struct lksi_dataset *vocabulary, struct lksi_dataset **out);

#endif
