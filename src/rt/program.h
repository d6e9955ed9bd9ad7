/*
 * program.h - what program.c, build.c and kernel.c know of a program.
 */
#ifndef LKSI_PROGRAM_H
#define LKSI_PROGRAM_H

#include "rt/rt_cl.h"

/* One cl_program: one unit, or all units with the same options. Programs share them. */
struct lksi_part {
    const struct lksi_unit **unit; /* during the build only */
    char **name;                   /* what each unit is, after the build */
    size_t n_units, unit_capacity;
    size_t users;           /* programs that hold it */
    struct lksi_part *next; /* in the device's list */
    char *text; /* after the build only where lksi_part_settle may need it */
    char *options;
    cl_program program;
    char key[LKSI_SHA256_HEX];
    struct lksi_entry entry; /* its `binary` is set only while it is read or stored */
    bool grown;              /* launched in a way that the stored binary does not hold */
    bool fresh;              /* built from source, and its binary not asked yet */
};

struct lksi_program {
    struct lksi_dev *dev;
    struct lksi_part **part; /* room for n_units, n_parts in use */
    size_t n_parts, n_units;
    struct lksi_place {
        size_t part, index; /* of the unit: which part, and its number in the part's text */
    } * place;
};

/* Assembles the text and builds it, through the cache. Called by one thread a part. */
lks_status lksi_part_build(struct lksi_dev *dev, struct lksi_part *part);
lks_status lksi_part_settle(struct lksi_dev *dev, struct lksi_part *part);
/* Notes a launch of a late-compiled kernel, `variant` hashing what it is compiled for. */
void lksi_part_launched(struct lksi_part *part, uint64_t variant);

#endif
