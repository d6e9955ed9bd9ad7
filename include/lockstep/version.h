/*
 * version.h - the version of the library and of the contract of the bits.
 */
#ifndef LOCKSTEP_VERSION_H
#define LOCKSTEP_VERSION_H

#include <lockstep/export.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LKS_VERSION_MAJOR 0
#define LKS_VERSION_MINOR 1
#define LKS_VERSION_PATCH 0

/* Two runs can have the same bits only if they follow the same contract version. */
#define LKS_CONTRACT_VERSION 2

/* The version of the loaded library, for example "0.1.0". Thread-safe. */
LKS_API const char *lks_version(void);

/* The contract version of the loaded library. Thread-safe. */
LKS_API int lks_contract_version(void);

#ifdef __cplusplus
}
#endif
#endif
