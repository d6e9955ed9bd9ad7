/*
 * device.c - discovery and choice of devices. open.c opens what is chosen here.
 */
#include <ctype.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/fenv.h"
#include "rt/rt_cl.h"

/* ---- what the loader found, when it found nothing ---- */

static char note_text[640];
static pthread_mutex_t note_lock = PTHREAD_MUTEX_INITIALIZER;

static int count_icds(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    if (d == NULL)
        return -1;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        size_t length = strlen(e->d_name);
        n += length > 4 && strcmp(e->d_name + length - 4, ".icd") == 0;
    }
    closedir(d);
    return n;
}

static const char *no_platform_note(void)
{
    const char *set = getenv("OCL_ICD_VENDORS");
    bool own = set != NULL && set[0] != '\0';
    const char *where = own ? set : "/etc/OpenCL/vendors";
    int icds = count_icds(where);
    char found[64];
    if (icds < 0)
        snprintf(found, sizeof found, "which is no folder that can be read");
    else if (icds == 0)
        snprintf(found, sizeof found, "which holds no .icd file");
    else
        snprintf(found, sizeof found, "where none of %d .icd files gave a platform", icds);
    pthread_mutex_lock(&note_lock);
    snprintf(note_text, sizeof note_text,
             "no OpenCL platform: the loader looked in %.300s%s, %s. The Debian package "
             "pocl-opencl-icd brings an implementation for the CPU; a GPU needs its vendor's "
             "OpenCL package, and a container needs the vendor's .icd file in that folder",
             where, own ? " (OCL_ICD_VENDORS)" : "", found);
    pthread_mutex_unlock(&note_lock);
    return note_text;
}

static const char no_device_note[] =
    "OpenCL platforms are installed, but none of them shows a device: PoCL shows none if it cannot "
    "write to its cache ($XDG_CACHE_HOME, else ~/.cache), a GPU's driver if it cannot open the "
    "device files in /dev";

/* ---- what a device says about itself ---- */

static void get_text(cl_device_id id, cl_device_info what, char *text, size_t bytes)
{
    size_t need = 0;
    char *all = NULL;
    text[0] = '\0';
    if (clGetDeviceInfo(id, what, 0, NULL, &need) != CL_SUCCESS || need == 0)
        return;
    all = malloc(need + 1);
    if (all != NULL && clGetDeviceInfo(id, what, need, all, NULL) == CL_SUCCESS) {
        const char *start = all;
        all[need] = '\0';
        while (isspace((unsigned char)*start))
            start++;
        snprintf(text, bytes, "%s", start);
        for (size_t n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]);)
            text[--n] = '\0';
    }
    free(all);
}

static uint64_t get_number(cl_device_id id, cl_device_info what, size_t bytes)
{
    cl_ulong wide = 0;
    cl_uint narrow = 0;
    size_t size = 0;
    if (bytes == sizeof(cl_uint))
        return clGetDeviceInfo(id, what, sizeof narrow, &narrow, NULL) == CL_SUCCESS ? narrow : 0;
    if (bytes == sizeof(cl_ulong))
        return clGetDeviceInfo(id, what, sizeof wide, &wide, NULL) == CL_SUCCESS ? wide : 0;
    return clGetDeviceInfo(id, what, sizeof size, &size, NULL) == CL_SUCCESS ? size : 0;
}

static void describe_cl(struct lksi_limits *l, cl_platform_id platform, cl_device_id id)
{
    cl_device_type type = 0;
    cl_device_fp_config fp = 0;
    cl_bool unified = CL_FALSE;
    size_t item[8] = {1, 1, 1};
    if (clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof l->platform, l->platform, NULL) !=
        CL_SUCCESS)
        snprintf(l->platform, sizeof l->platform, "platform %d", l->platform_index);
    get_text(id, CL_DEVICE_NAME, l->name, sizeof l->name);
    get_text(id, CL_DEVICE_VENDOR, l->vendor, sizeof l->vendor);
    get_text(id, CL_DRIVER_VERSION, l->driver, sizeof l->driver);
    get_text(id, CL_DEVICE_VERSION, l->version, sizeof l->version);
    get_text(id, CL_DEVICE_EXTENSIONS, l->extensions, sizeof l->extensions);
    clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    l->type = type & CL_DEVICE_TYPE_GPU   ? LKSI_DEV_GPU
              : type & CL_DEVICE_TYPE_CPU ? LKSI_DEV_CPU
                                          : LKSI_DEV_OTHER;
    l->vendor_id = (uint32_t)get_number(id, CL_DEVICE_VENDOR_ID, sizeof(cl_uint));
    l->compute_units = (uint32_t)get_number(id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(cl_uint));
    l->memory = get_number(id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(cl_ulong));
    l->max_alloc = get_number(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(cl_ulong));
    l->local_memory = get_number(id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof(cl_ulong));
    clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof l->max_group, &l->max_group, NULL);
    clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof item, item, NULL);
    memcpy(l->max_item, item, sizeof l->max_item);
    l->base_align = (uint32_t)get_number(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(cl_uint)) / 8;
    if (l->base_align == 0)
        l->base_align = 128;
    clGetDeviceInfo(id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof fp, &fp, NULL);
    l->native_divsqrt = (fp & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
    l->has_fma = (fp & CL_FP_FMA) != 0;
    l->has_denorm = (fp & CL_FP_DENORM) != 0;
    clGetDeviceInfo(id, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof unified, &unified, NULL);
    l->unified_memory = unified != CL_FALSE;
}

static void describe_ref(struct lksi_limits *l)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    memset(l, 0, sizeof *l);
    l->type = LKSI_DEV_REF;
    snprintf(l->platform, sizeof l->platform, "lockstep");
    snprintf(l->name, sizeof l->name, "ref");
    snprintf(l->vendor, sizeof l->vendor, "lockstep");
    snprintf(l->driver, sizeof l->driver, "%s", LKSI_VERSION);
    snprintf(l->version, sizeof l->version, "plain C");
    l->platform_index = l->device_index = -1;
    l->compute_units = cpus > 0 ? (uint32_t)cpus : 1;
    l->memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_C(1) << 32;
    l->max_alloc = l->memory;
    l->max_group = l->max_item[0] = l->max_item[1] = l->max_item[2] = 1;
    l->base_align = 64;
    l->native_divsqrt = l->has_fma = l->has_denorm = l->unified_memory = true;
}

/* ---- listing ---- */

static lks_status list_platform(struct lksi_cl_device **list, size_t *count, size_t *capacity,
                                cl_platform_id platform, int platform_index)
{
    cl_device_id id[64];
    cl_uint n = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, LKSI_COUNT(id), id, &n) != CL_SUCCESS)
        return LKS_OK; /* a platform without devices reports an error */
    if (n > LKSI_COUNT(id))
        n = LKSI_COUNT(id);
    if (!lksi_grow(list, capacity, *count + n, sizeof **list))
        return LKS_E_MEMORY;
    for (cl_uint i = 0; i < n; i++) {
        struct lksi_cl_device *d = &(*list)[(*count)++];
        d->platform = platform;
        d->id = id[i];
        d->limits.platform_index = platform_index;
        d->limits.device_index = (int)i;
        describe_cl(&d->limits, platform, id[i]);
    }
    return LKS_OK;
}

lks_status lksi_cl_list(bool only_ref, struct lksi_cl_device **list, size_t *count,
                        const char **note)
{
    struct lksi_cl_device *found = NULL;
    size_t n_found = 0, capacity = 0;
    cl_platform_id platform[32];
    cl_uint n = 0;
    lks_status st = LKS_OK;
    if (!only_ref && clGetPlatformIDs(LKSI_COUNT(platform), platform, &n) != CL_SUCCESS)
        n = 0;
    if (n > LKSI_COUNT(platform))
        n = LKSI_COUNT(platform);
    for (cl_uint i = 0; i < n; i++)
        LKSI_TRY(list_platform(&found, &n_found, &capacity, platform[i], (int)i));
    if (!lksi_grow(&found, &capacity, n_found + 1, sizeof *found)) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    found[n_found].platform = NULL;
    found[n_found].id = NULL;
    describe_ref(&found[n_found++].limits);
    *list = found;
    *count = n_found;
    *note = only_ref || n_found > 1 ? "" : n == 0 ? no_platform_note() : no_device_note;
    return LKS_OK;
fail:
    free(found);
    return st;
}

lks_status lksi_dev_list(struct lksi_limits **list, size_t *count, const char **note)
{
    struct lksi_cl_device *all = NULL;
    struct lksi_limits *limits = NULL;
    struct lksi_fenv fenv;
    const char *text = "";
    size_t n = 0;
    lks_status st;
    lksi_fenv_enter(&fenv);
    LKSI_TRY(lksi_cl_list(false, &all, &n, &text));
    limits = lksi_alloc(n, sizeof *limits);
    if (limits == NULL) {
        st = LKS_E_MEMORY;
        goto fail;
    }
    for (size_t i = 0; i < n; i++)
        limits[i] = all[i].limits;
    *list = limits;
    *count = n;
    if (note != NULL)
        *note = text;
fail:
    free(all);
    lksi_fenv_leave(&fenv);
    return st;
}

/* ---- choice ---- */

static const char *const type_words[] = {"ref", "cpu", "gpu", "other"};

static void add_candidates(struct lksi_str *s, const struct lksi_cl_device *list, size_t count,
                           const size_t *only)
{
    for (size_t i = 0; i < count; i++) {
        const struct lksi_limits *l = &list[only != NULL ? only[i] : i].limits;
        if (l->type == LKSI_DEV_REF)
            lksi_str_add(s, "%sref", i > 0 ? "; " : "");
        else
            lksi_str_add(s, "%s%d:%d = %s (%s, %s)", i > 0 ? "; " : "", l->platform_index,
                         l->device_index, l->name, type_words[l->type], l->platform);
    }
}

static lks_status refuse(const struct lksi_cl_device *list, size_t count, const size_t *only,
                         const char *note, const char *format, const char *select)
{
    struct lksi_str s = {0};
    char what[256];
    snprintf(what, sizeof what, format, select);
    add_candidates(&s, list, count, only);
    lks_status st =
        lksi_fail(LKS_E_DEVICE, "%s; %s: %s%s%s", what, only != NULL ? "candidates" : "there are",
                  s.text != NULL ? s.text : "?", note[0] != '\0' ? "; " : "", note);
    free(s.text);
    return st;
}

static bool contains(const char *text, const char *part, size_t length)
{
    for (; *text != '\0'; text++)
        if (strncasecmp(text, part, length) == 0)
            return true;
    return false;
}

static size_t of_type(const struct lksi_cl_device *list, size_t count, enum lksi_dev_type type,
                      size_t *order)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (list[i].limits.type == type)
            order[n++] = i;
    return n;
}

/* PLATFORM:N, PLATFORM being an index or part of a platform's (or its devices' version) text. */
static bool is_pair(const char *select, size_t *length, long *n)
{
    const char *colon = strrchr(select, ':');
    char *end;
    if (colon == NULL || colon == select || !isdigit((unsigned char)colon[1]))
        return false;
    *n = strtol(colon + 1, &end, 10);
    *length = (size_t)(colon - select);
    return *end == '\0';
}

static bool pair_matches(const struct lksi_limits *l, const char *select, size_t length, long n)
{
    char *end;
    long platform = strtol(select, &end, 10);
    if (l->type == LKSI_DEV_REF || l->device_index != n)
        return false;
    if (end == select + length)
        return l->platform_index == platform;
    return contains(l->platform, select, length) || contains(l->version, select, length);
}

static size_t by_name(const struct lksi_cl_device *list, size_t count, const char *select,
                      size_t *order)
{
    size_t n = 0, length = 0;
    long index = 0;
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(list[i].limits.name, select) == 0)
            order[n++] = i;
    if (n > 0)
        return n;
    if (is_pair(select, &length, &index)) {
        for (size_t i = 0; i < count; i++)
            if (pair_matches(&list[i].limits, select, length, index))
                order[n++] = i;
        return n;
    }
    for (size_t i = 0; i < count; i++) {
        const struct lksi_limits *l = &list[i].limits;
        if (l->type != LKSI_DEV_REF && (contains(l->name, select, strlen(select)) ||
                                        contains(l->platform, select, strlen(select)) ||
                                        contains(l->version, select, strlen(select))))
            order[n++] = i;
    }
    return n;
}

lks_status lksi_cl_select(const struct lksi_cl_device *list, size_t count, const char *note,
                          const char *select, size_t *order, size_t *n_order)
{
    size_t n = 0;
    if (select == NULL) {
        n = of_type(list, count, LKSI_DEV_GPU, order);
        n += of_type(list, count, LKSI_DEV_CPU, order + n);
        if (n == 0)
            return refuse(list, count, NULL, note, "no OpenCL GPU or CPU device%s", "");
        *n_order = n;
        return LKS_OK;
    }
    for (int t = LKSI_DEV_REF; t <= LKSI_DEV_GPU; t++) {
        if (strcasecmp(select, type_words[t]) != 0)
            continue;
        n = of_type(list, count, (enum lksi_dev_type)t, order);
        if (n == 0)
            return refuse(list, count, NULL, note, "no OpenCL device of type '%s'", select);
        *n_order = n;
        return LKS_OK;
    }
    n = select[0] != '\0' ? by_name(list, count, select, order) : 0;
    if (n == 0)
        return refuse(list, count, NULL, note, "no device is called '%s'", select);
    if (n > 1)
        return refuse(list, n, order, note, "'%s' fits several devices", select);
    *n_order = 1;
    return LKS_OK;
}
