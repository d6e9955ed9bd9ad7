/*
 * main.c - the program `lockstep`: the table of subcommands, --help and --version.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <lockstep/lockstep.h>

#include "cli.h"

/* In the order of the help. */
static const struct command *const commands[] = {
    &command_train,   &command_eval,    &command_predict, &command_sample, &command_hash,
    &command_summary, &command_devices, &command_compare, &command_check,  &command_bench,
    &command_tune,
};

static void print_usage(void)
{
    printf("Usage: lockstep COMMAND [options]\n\n"
           "Trains neural networks on any OpenCL device, with the same bits on every device.\n\n"
           "Commands:\n");
    for (size_t i = 0; i < LKSI_COUNT(commands); i++)
        printf("  %s%-8s%s  %s\n", color_bold(1), commands[i]->name, color_off(1),
               commands[i]->summary);
    printf("\n`lockstep COMMAND --help` lists the options of a command; `lockstep --version` names "
           "the\nversion and the contract of the bits. See also the man page lockstep(1).\n");
}

static int find_and_run(int argc, char **argv)
{
    const char *names[LKSI_COUNT(commands)];
    for (size_t i = 0; i < LKSI_COUNT(commands); i++) {
        names[i] = commands[i]->name;
        if (strcmp(argv[0], names[i]) == 0)
            return commands[i]->run(commands[i], argc, argv);
    }
    const char *near = lksi_nearest_word(argv[0], names, LKSI_COUNT(names));
    if (near != NULL)
        return fail_usage("unknown command `%s`; did you mean `%s`?", argv[0], near);
    return fail_usage("unknown command `%s`; `lockstep --help` lists the commands", argv[0]);
}

static int run(int argc, char **argv)
{
    if (argc < 2)
        return fail_usage("no command given; `lockstep --help` lists the commands");
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("lockstep %s, contract %d\n", lks_version(), lks_contract_version());
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_usage();
        return EXIT_OK;
    }
    if (strcmp(argv[1], "help") == 0) { /* lockstep help train = lockstep train --help */
        char *help[] = {argv[argc > 2 ? 2 : 0], "--help", NULL};
        if (argc > 2)
            return find_and_run(2, help);
        print_usage();
        return EXIT_OK;
    }
    return find_and_run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    /* A limit on file sizes and a closed pipe shall be errors of a call, not a sudden death. */
    signal(SIGXFSZ, SIG_IGN);
    log_to_stderr(false);
    int status = run(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (status == EXIT_OK)
            status = fail_usage("cannot write to the standard output; check the disk or the pipe");
    }
    return status;
}
