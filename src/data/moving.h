/*
 * moving.h - sequences of pictures in which images of an IDX file move and bounce at the borders.
 *
 * Every sample is a function of its number and the seed alone, in integers; docs/models.md has the
 * rule. It is drawn when it is gathered.
 */
#ifndef LKSI_DATA_MOVING_H
#define LKSI_DATA_MOVING_H

#include <lockstep/dataset.h>

#include "data/dataset.h"

/* Samples [frames][height][width][1] without labels; errors as lks_dataset_open_moving_digits. */
lks_status lksi_moving_dataset(const struct lks_moving_digits_params *params,
                               const struct lksi_normalize *normalize, struct lksi_dataset **out);

#endif
