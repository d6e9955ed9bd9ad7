/*
 * message.c - what the program says: errors, the library's log, colours, units.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lockstep/lockstep.h>

#include "cli.h"

static int color_mode;

void set_color(int mode)
{
    color_mode = mode;
}

static bool colored(int stream)
{
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
    if (color_mode != 0)
        return color_mode == 1;
    return isatty(stream) && (no == NULL || no[0] == '\0') && term != NULL &&
           strcmp(term, "dumb") != 0;
}

const char *color_bold(int stream)
{
    return colored(stream) ? "\033[1m" : "";
}

const char *color_dim(int stream)
{
    return colored(stream) ? "\033[2m" : "";
}

const char *color_red(int stream)
{
    return colored(stream) ? "\033[31m" : "";
}

const char *color_off(int stream)
{
    return colored(stream) ? "\033[0m" : "";
}

static void say(const char *color, const char *word, const char *text)
{
    char line[2304];
    snprintf(line, sizeof line, "%s", text);
    for (char *p = line; *p != '\0'; p++) /* a path may hold anything; a message is one line */
        if ((unsigned char)*p < ' ')
            *p = ' ';
    fflush(stdout);
    fprintf(stderr, "%slockstep:%s %s%s\n", color, color_off(2), word, line);
}

static void say_error_va(const char *format, va_list ap)
{
    char text[2304];
    vsnprintf(text, sizeof text, format, ap);
    say(color_red(2), "", text);
}

void say_error(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say_error_va(format, ap);
    va_end(ap);
}

int fail_usage(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say_error_va(format, ap);
    va_end(ap);
    return EXIT_INPUT;
}

int exit_status_of(lks_status st)
{
    static const int map[] = {
        [LKS_OK] = EXIT_OK,
        [LKS_E_ARGUMENT] = EXIT_INPUT,
        [LKS_E_INPUT] = EXIT_INPUT,
        [LKS_E_IO] = EXIT_INPUT,
        [LKS_E_MEMORY] = EXIT_DEVICE,
        [LKS_E_DEVICE] = EXIT_DEVICE,
        [LKS_E_NUMERICS] = EXIT_DEVICE,
        [LKS_E_NONFINITE] = EXIT_NO,
        [LKS_E_CANCELLED] = EXIT_NO,
        [LKS_E_MISMATCH] = EXIT_NO,
    };
    return (size_t)st < LKSI_COUNT(map) ? map[st] : EXIT_DEVICE;
}

int fail_library(lks_status st)
{
    const char *text = lks_error_message();
    say_error("%s", text[0] != '\0' ? text : lks_status_name(st));
    return exit_status_of(st);
}

static void on_log(void *user, lks_log_level level, const char *message)
{
    (void)user;
    say(level <= LKS_LOG_WARNING ? color_red(2) : color_dim(2),
        level == LKS_LOG_WARNING ? "warning: " : "", message);
}

void log_to_stderr(bool verbose)
{
    lks_log_set(on_log, NULL, verbose ? LKS_LOG_INFO : LKS_LOG_WARNING);
}

const char *human_bytes(uint64_t bytes, char *text, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t u = 0;
    while (value >= 1024.0 && u + 1 < LKSI_COUNT(units)) {
        value /= 1024.0;
        u++;
    }
    snprintf(text, size, u == 0 ? "%.0f %s" : "%.1f %s", value, units[u]);
    return text;
}
