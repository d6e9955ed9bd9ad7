/*
 * plan_table.h - what a plan does, launch by launch: `lockstep summary --plan`.
 */
#ifndef LKS_TOOLS_PLAN_TABLE_H
#define LKS_TOOLS_PLAN_TABLE_H

#include <lockstep/lockstep.h>

#include "cli.h"

/* Prints the plan of the trainer's training step over its data: as a table, with `verbose` the
 * launches of each operator and why earlier schedules decline too, or (`json`) as one object. */
lks_status print_plan(lks_trainer *trainer, bool verbose, bool json);

#endif
