/*
 * curves.h - curves.svg: losses and accuracy of a run over its steps. The same history gives the
 * same bytes.
 */
#ifndef LKS_TOOLS_CURVES_H
#define LKS_TOOLS_CURVES_H

#include "history.h"

/* `title` is shown on top (any text). Writes the file whole or not at all. */
lks_status curves_write(const struct history *h, const char *title, const char *path);

#endif
