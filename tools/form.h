/*
 * form.h - what a model's losses tell: how many and which, and whether answers can be right or
 * wrong. Histories, curves, progress and the log have a column, a line, a word for each.
 */
#ifndef LKS_TOOLS_FORM_H
#define LKS_TOOLS_FORM_H

#include <lockstep/lockstep.h>

enum { FORM_LOSSES = 5 };

struct form {
    size_t n_loss;
    const char *loss[FORM_LOSSES]; /* the first is called "loss", the others by their names */
    size_t positions;              /* labels a sample; 0: there are none, and so no accuracy */
};

/* The names belong to the model. */
void form_of(const lks_model *model, struct form *form);

#endif
