/*
 * lockstep.h - deterministic training of neural networks on OpenCL devices: the whole interface.
 */
#ifndef LOCKSTEP_LOCKSTEP_H
#define LOCKSTEP_LOCKSTEP_H

#include <lockstep/compare.h>
#include <lockstep/dataset.h>
#include <lockstep/device.h>
#include <lockstep/export.h>
#include <lockstep/graph.h>
#include <lockstep/log.h>
#include <lockstep/model.h>
#include <lockstep/status.h>
#include <lockstep/trainer.h>
#include <lockstep/version.h>

#endif
