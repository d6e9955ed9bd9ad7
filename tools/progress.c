/*
 * progress.c - the bar, the lines, and the estimate of the time left.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "progress.h"

#define REDRAW_SECONDS 0.1
#define LINE_SECONDS   10.0 /* between two lines in a pipe */
#define RATE_SECONDS   1.0  /* one measurement of the speed */
#define SMOOTH         0.1  /* weight of the newest step in loss and accuracy */

double seconds_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

void progress_init(struct progress *p, const struct form *form, bool quiet, uint64_t total,
                   uint64_t per_epoch, uint32_t epochs)
{
    const char *term = getenv("TERM");
    *p = (struct progress){.form = *form,
                           .quiet = quiet,
                           .total = total,
                           .per_epoch = per_epoch,
                           .epochs = epochs};
    p->terminal = isatty(STDERR_FILENO) && (term == NULL || strcmp(term, "dumb") != 0);
    p->epoch_start = p->rate_at = p->line_at = seconds_now();
}

void progress_clear(struct progress *p)
{
    if (p->drawn)
        fprintf(stderr, "\r\033[K");
    p->drawn = false;
}

static int columns(void)
{
    struct winsize w;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col >= 20)
        return w.ws_col;
    return 80;
}

static void duration(double s, char *text, size_t size)
{
    uint64_t t = s > 0 && s < 1e9 ? (uint64_t)(s + 0.5) : 0;
    if (t >= 3600)
        snprintf(text, size, "%" PRIu64 ":%02u:%02u", t / 3600, (unsigned)(t / 60 % 60),
                 (unsigned)(t % 60));
    else
        snprintf(text, size, "%u:%02u", (unsigned)(t / 60), (unsigned)(t % 60));
}

void progress_build(struct progress *p, size_t done, size_t total)
{
    if (p->quiet)
        return;
    if (p->terminal) {
        progress_clear(p);
        if (done < total) {
            fprintf(stderr, "building kernels: %zu of %zu (kept for the next run)", done, total);
            p->drawn = true;
        }
        fflush(stderr);
    } else if (!p->told_build) {
        fprintf(stderr, "preparing %zu kernels; the first run on a device takes longest\n", total);
    }
    p->told_build = true;
}

static void draw(struct progress *p, const struct lks_step_info *info, const char *numbers)
{
    enum { MOST = 40 };
    static const char full[] = "########################################";
    static const char rest[] = "........................................";
    char left[48];
    int lead =
        snprintf(left, sizeof left, "epoch %" PRIu32 "/%" PRIu32 " ", info->epoch + 1, p->epochs);
    int room = columns() - 1 - lead - (int)strlen(numbers) - 3;
    int width = room > MOST ? MOST : room;
    progress_clear(p);
    if (width >= 8) {
        uint64_t in_epoch = info->step % p->per_epoch + 1;
        int done = (int)((double)width * (double)in_epoch / (double)p->per_epoch);
        fprintf(stderr, "%s[%s%.*s%s%s%.*s%s] %s", left, color_bold(2), done, full, color_off(2),
                color_dim(2), width - done, rest, color_off(2), numbers);
    } else {
        fprintf(stderr, "%.*s", columns() - 1, numbers);
    }
    fflush(stderr);
    p->drawn = true;
}

static void measure(struct progress *p, const struct lks_step_info *info, double now)
{
    double accuracy = info->labels > 0 ? (double)info->hits / info->labels : 0;
    if (!p->any) { /* the first step may have compiled kernels, so it tells no speed */
        for (size_t k = 0; k < p->form.n_loss; k++)
            p->loss[k] = (double)info->losses[k];
        p->accuracy = accuracy;
        p->any = true;
        p->rate_at = now;
        return;
    }
    for (size_t k = 0; k < p->form.n_loss; k++)
        p->loss[k] += SMOOTH * ((double)info->losses[k] - p->loss[k]);
    p->accuracy += SMOOTH * (accuracy - p->accuracy);
    p->rate_samples += info->samples;
    /* Steps are told in bunches, so a speed is only known over a while. */
    if (now - p->rate_at >= RATE_SECONDS) {
        double rate = (double)p->rate_samples / (now - p->rate_at);
        p->rate = p->rate > 0 ? 0.5 * (p->rate + rate) : rate;
        p->rate_at = now;
        p->rate_samples = 0;
    }
}

/* "loss 0.1234  g_loss 0.5678", and the accuracy if there is one; `part` is "" or "test ". */
static void add_numbers(const struct progress *p, const char *part, const double *losses,
                        double accuracy, char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t k = 0; k < p->form.n_loss && used < room; k++)
        used += (size_t)snprintf(text + used, room - used, "%s%s%s %.4f", k > 0 ? "  " : "", part,
                                 p->form.loss[k], losses[k]);
    if (p->form.positions > 0 && used < room)
        snprintf(text + used, room - used, "  %saccuracy %s%.4f%s", part,
                 part[0] != '\0' ? color_bold(1) : "", accuracy,
                 part[0] != '\0' ? color_off(1) : "");
}

void progress_step(struct progress *p, const struct lks_step_info *info)
{
    double now = seconds_now();
    char numbers[512], shown[400], left[24] = "-:--", rate[24] = "-";
    measure(p, info, now);
    bool due = p->terminal ? now - p->drawn_at >= REDRAW_SECONDS : now - p->line_at >= LINE_SECONDS;
    if (p->quiet || !due)
        return;
    if (p->rate > 0) {
        snprintf(rate, sizeof rate, "%.0f", p->rate);
        duration((double)(p->total - info->step - 1) * info->samples / p->rate, left, sizeof left);
    }
    add_numbers(p, "", p->loss, p->accuracy, shown, sizeof shown);
    snprintf(numbers, sizeof numbers, "%s  %s samples/s  %s left", shown, rate, left);
    if (p->terminal) {
        draw(p, info, numbers);
        p->drawn_at = now;
    } else {
        fprintf(stderr, "step %" PRIu64 " of %" PRIu64 "  %s\n", info->step + 1, p->total, numbers);
        p->line_at = now;
    }
}

void progress_epoch(struct progress *p, const struct lks_epoch_info *info)
{
    double now = seconds_now();
    if (!p->quiet) {
        progress_clear(p);
        char text[400];
        add_numbers(p, "", info->train_losses, info->train_accuracy, text, sizeof text);
        printf("epoch %" PRIu32 "/%" PRIu32 "  %s", info->epoch + 1, p->epochs, text);
        add_numbers(p, "test ", info->test_losses, info->test_accuracy, text, sizeof text);
        if (!isnan(info->test_loss))
            printf("  %s", text);
        printf("  %s(%.1f s)%s\n", color_dim(1), now - p->epoch_start, color_off(1));
        fflush(stdout);
    }
    /* The evaluation shall not count as slow training. */
    p->epoch_start = p->rate_at = p->line_at = now;
    p->rate_samples = 0;
}
