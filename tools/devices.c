/*
 * devices.c - `lockstep devices`: every device of every platform, its limits, and whether it keeps
 * the bits. Each is opened, since only its own arithmetic can tell.
 */
#include <stdio.h>
#include <stdlib.h>

#include <lockstep/device.h>

#include "cli.h"

static const struct option_spec specs[] = {OPTION_COMMON};

static void print_device(const struct lks_device_info *d)
{
    static const char *const types[] = {"ref", "cpu", "gpu", "other"};
    char memory[32], allocation[32], local[32];
    lks_device *device;
    lks_status st = lks_device_open(&device, &(struct lks_device_params){.select = d->select});
    printf("%s%s%s  %s%s%s\n", color_bold(1), d->select, color_off(1), d->name,
           d->platform[0] != '\0' ? " on " : "", d->platform);
    printf("    type        %s\n", types[d->type]);
    if (d->driver[0] != '\0')
        printf("    driver      %s, %s\n", d->driver, d->version);
    printf("    memory      %s, largest allocation %s, local %s\n",
           human_bytes(d->memory, memory, sizeof memory),
           human_bytes(d->max_allocation, allocation, sizeof allocation),
           human_bytes(d->local_memory, local, sizeof local));
    printf("    size        %u compute units, work-groups up to %zu\n", d->compute_units,
           d->max_group);
    if (st == LKS_OK)
        printf("    admitted    yes\n");
    else
        printf("    admitted    %sno%s: %s\n", color_red(1), color_off(1), lks_error_message());
    if (st == LKS_OK)
        lks_device_close(&device);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct lks_device_info *list;
    const char *note;
    size_t count;
    char **rest;
    int n_rest, status, none;
    if (!parse_options(self, argc, argv, &none, &rest, &n_rest, &status))
        return status;
    if (n_rest != 0)
        return fail_usage("devices takes no `%s`", rest[0]);
    lks_status st = lks_device_list(&list, &count, &note);
    if (st != LKS_OK)
        return fail_library(st);
    for (size_t i = 0; i < count; i++)
        print_device(&list[i]);
    if (note[0] != '\0')
        say_error("%s", note);
    free(list);
    return EXIT_OK;
}

const struct command command_devices = {
    "devices",
    "",
    "list every device, its limits, and whether it is admitted",
    "The bold word in front is what --device takes for exactly this device. A device is admitted "
    "if\n"
    "its arithmetic keeps the contract of the bits; else the reason is given.",
    specs,
    LKSI_COUNT(specs),
    run,
};
