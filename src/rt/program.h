/*
 * program.h - what program.c and kernel.c know of a program.
 */
#ifndef LKSI_PROGRAM_H
#define LKSI_PROGRAM_H

#include "rt/rt_cl.h"

/* One cl_program: one unit, or all units with the same options. */
struct lksi_part {
    const struct lksi_unit **unit; /* during the build only */
    size_t n_units, unit_capacity;
    char *text, *options;
    cl_program program;
    char key[LKSI_SHA256_HEX];
    struct lksi_entry entry; /* its `binary` is set only while it is read or stored */
    bool grown;              /* launched in a way that the stored binary does not hold */
};

struct lksi_program {
    struct lksi_dev *dev;
    struct lksi_part *part; /* n_units of them, n_parts in use */
    size_t n_parts, n_units;
    struct lksi_place {
        size_t part, index; /* of the unit: which part, and its number in the part's text */
    } * place;
};

/* Notes a launch of a late-compiled kernel, `variant` hashing what it is compiled for. */
void lksi_part_launched(struct lksi_part *part, uint64_t variant);

#endif
