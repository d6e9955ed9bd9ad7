/*
 * export.h - which symbols leave the shared library.
 */
#ifndef LOCKSTEP_EXPORT_H
#define LOCKSTEP_EXPORT_H

#if defined(__GNUC__)
#define LKS_API __attribute__((visibility("default")))
#else
#define LKS_API
#endif

#endif
