/*
 * rt_help.h - what the tests of the run time share: a device without a cache, captured log lines,
 * one-kernel programs.
 */
#ifndef LKS_TESTS_RT_HELP_H
#define LKS_TESTS_RT_HELP_H

#include "helpers.h"
#include "rt/rt.h"

/* Log lines so far, joined by newlines. */
static char log_text[16384];

static inline void keep_log(void *user, lks_log_level level, const char *message)
{
    size_t used = strlen(log_text);
    (void)user, (void)level;
    snprintf(log_text + used, sizeof log_text - used, "%s\n", message);
}

static inline void capture_log(void)
{
    log_text[0] = '\0';
    lks_log_set(keep_log, NULL, LKS_LOG_DEBUG);
}

static inline int count_log(const char *part)
{
    int n = 0;
    for (const char *p = log_text; (p = strstr(p, part)) != NULL; p++)
        n++;
    return n;
}

static inline bool has_cpu(void)
{
    struct lksi_limits *list;
    size_t count;
    bool found = false;
    EXPECT_OK(lksi_dev_list(&list, &count, NULL));
    for (size_t i = 0; i < count; i++)
        found = found || list[i].type == LKSI_DEV_CPU;
    free(list);
    return found;
}

#define OPEN_CPU(dev, ...)                                                                         \
    do {                                                                                           \
        struct lksi_dev_params params_ = {.select = "cpu", .cache_dir = "", __VA_ARGS__};          \
        if (!has_cpu())                                                                            \
            cr_skip_test("no OpenCL CPU device: install pocl-opencl-icd");                         \
        EXPECT_OK(lksi_dev_open(&(dev), &params_));                                                \
    } while (0)

/* Builds one unit of literal text. */
static inline lks_status build_text(struct lksi_program **program, struct lksi_dev *dev,
                                    const char *text, const char *defines)
{
    const struct lksi_unit unit = {.text = text, .defines = defines, .options = ""};
    const struct lksi_build_progress silent = {0};
    return lksi_program_build(program, dev, &unit, 1, silent);
}

/* Launches kernel `name` of unit `index` over `items` with one buffer as its argument. */
static inline void run_kernel(struct lksi_program *program, size_t index, const char *name,
                              struct lksi_buf *buf, size_t items, size_t group)
{
    struct lksi_kernel *kernel;
    EXPECT_OK(lksi_kernel_create(&kernel, program, index, name));
    EXPECT_OK(lksi_kernel_set_buf(kernel, 0, buf));
    EXPECT_OK(lksi_kernel_launch(kernel, 1, &items, &group));
    lksi_kernel_destroy(&kernel);
}

#endif
