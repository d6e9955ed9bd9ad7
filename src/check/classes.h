/*
 * classes.h - whether any typical device would run a schedule.
 */
#ifndef LKSI_CHECK_CLASSES_H
#define LKSI_CHECK_CLASSES_H

#include "op/op.h"

bool lksi_classes_accept(const struct lksi_schedule *schedule, const struct lksi_call *call);

#endif
