/*
 * curves.c - two panels side by side: loss (logarithmic when it falls far) and accuracy; without
 * labels one wide panel of losses. Training is drawn twice: a faint line of at most POINTS points,
 * and on it one of FEW points, each an average over neighbouring steps. Test results are dots, one
 * an epoch. Of several losses each has a colour.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "curves.h"

enum { WIDTH = 960, HEIGHT = 400, POINTS = 240, FEW = 40, TICKS = 6 };

#define INK        "#1f2937"
#define FAINT      "#6b7280"
#define GRID       "#e5e7eb"
#define TRAIN_LINE "#2563eb"
#define TEST_LINE  "#d97706"

struct axis {
    double low, high; /* in data; of a logarithmic axis both are powers or multiples of ten */
    double step;      /* between ticks, unless logarithmic */
    bool log;
    double from, to; /* pixels */
};

/* A panel shows `n` series from `first` on: the losses by their numbers, or the accuracy alone. */
enum { ACCURACY = FORM_LOSSES };
struct panel {
    const char *name;
    struct axis x, y;
    size_t first, n;
};

static const char *const colors[FORM_LOSSES] = {TRAIN_LINE, "#059669", "#7c3aed", "#db2777",
                                                "#0891b2"};

/* Averages of consecutive steps: their middle, and the mean of each series. */
struct curve {
    double x[POINTS], y[ACCURACY + 1][POINTS];
    size_t n;
};

static double place(const struct axis *a, double v)
{
    double t =
        a->log ? log10(v / a->low) / log10(a->high / a->low) : (v - a->low) / (a->high - a->low);
    return a->from + t * (a->to - a->from);
}

/* 1, 2 or 5 times a power of ten, at least `v`. */
static double nice(double v)
{
    double power = pow(10.0, floor(log10(v)));
    double m = v / power;
    return (m <= 1.0 ? 1.0 : m <= 2.0 ? 2.0 : m <= 5.0 ? 5.0 : 10.0) * power;
}

static void axis_linear(struct axis *a, double low, double high)
{
    if (!(high > low))
        high = low + 1.0;
    a->log = false;
    a->step = nice((high - low) / TICKS);
    a->low = floor(low / a->step) * a->step;
    a->high = ceil(high / a->step - 1e-9) * a->step;
}

static void axis_of_loss(struct axis *a, double low, double high)
{
    if (!(low > 0.0) || high / low < 20.0) {
        axis_linear(a, fmin(low, 0.0), high);
        return;
    }
    a->log = true;
    double power = pow(10.0, floor(log10(low)));
    double m = low / power;
    a->low = (m >= 5.0 ? 5.0 : m >= 2.0 ? 2.0 : 1.0) * power;
    a->high = nice(high);
}

static void average(const struct history *h, size_t most, struct curve *c)
{
    size_t points = h->n_step < most ? h->n_step : most;
    c->n = 0;
    for (size_t p = 0; p < points; p++) {
        size_t first = h->n_step * p / points, end = h->n_step * (p + 1) / points;
        double loss[FORM_LOSSES] = {0.0}, hits = 0.0, samples = 0.0;
        for (size_t i = first; i < end; i++) {
            const struct step_row *s = &h->step[i];
            for (size_t k = 0; k < h->form.n_loss; k++)
                loss[k] += (double)s->loss[k] * s->samples;
            hits += s->hits;
            samples += s->samples;
        }
        c->x[p] = 0.5 * (double)(first + 1 + end);
        for (size_t k = 0; k < h->form.n_loss; k++)
            c->y[k][p] = loss[k] / samples;
        c->y[ACCURACY][p] = hits / (samples * (double)h->form.positions);
        c->n++;
    }
}

static double test_of(size_t series, const struct lks_epoch_info *e)
{
    return series == ACCURACY ? e->test_accuracy : e->test_losses[series];
}

static void widen(double v, double *low, double *high)
{
    if (isfinite(v)) {
        *low = fmin(*low, v);
        *high = fmax(*high, v);
    }
}

static void set_axes(struct panel *p, const struct history *h, const struct curve *c)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t s = p->first; s < p->first + p->n; s++) {
        for (size_t i = 0; i < c->n; i++)
            widen(c->y[s][i], &low, &high);
        for (size_t i = 0; i < h->n_epoch; i++)
            widen(test_of(s, &h->epoch[i]), &low, &high);
    }
    if (!isfinite(low) || !isfinite(high)) {
        low = 0.0;
        high = 1.0;
    }
    axis_linear(&p->x, 0.0, (double)h->n_step);
    p->x.high = h->n_step > 0 ? (double)h->n_step : 1.0; /* no empty space on the right */
    if (p->first == ACCURACY)
        axis_linear(&p->y, low, 1.0);
    else
        axis_of_loss(&p->y, low, high);
}

static void text_at(struct lksi_str *s, double x, double y, const char *anchor, const char *color,
                    int size, const char *text)
{
    lksi_str_add(s,
                 "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\" "
                 "font-size=\"%d\">",
                 x, y, anchor, color, size);
    for (const char *p = text; *p != '\0'; p++)
        if (*p == '&' || *p == '<' || *p == '>')
            lksi_str_add(s, *p == '&' ? "&amp;" : *p == '<' ? "&lt;" : "&gt;");
        else
            lksi_str_append(s, p, 1);
    lksi_str_add(s, "</text>\n");
}

static void line_at(struct lksi_str *s, double x1, double y1, double x2, double y2,
                    const char *color)
{
    lksi_str_add(s, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1,
                 y1, x2, y2, color);
}

static void y_tick(struct lksi_str *s, const struct panel *p, double v)
{
    char label[32];
    double y = place(&p->y, v);
    line_at(s, p->x.from, y, p->x.to, y, GRID);
    snprintf(label, sizeof label, "%.6g", fabs(v) < 1e-12 ? 0.0 : v);
    text_at(s, p->x.from - 8, y + 4, "end", FAINT, 11, label);
}

static void draw_y_ticks(struct lksi_str *s, const struct panel *p)
{
    static const double parts[] = {1.0, 2.0, 5.0};
    if (!p->y.log) {
        size_t n = (size_t)((p->y.high - p->y.low) / p->y.step + 0.5);
        for (size_t i = 0; i <= n; i++)
            y_tick(s, p, p->y.low + (double)i * p->y.step);
        return;
    }
    size_t n = log10(p->y.high / p->y.low) > 4.0 ? 1 : LKSI_COUNT(parts);
    for (double power = pow(10.0, floor(log10(p->y.low))); power <= p->y.high; power *= 10.0)
        for (size_t i = 0; i < n; i++) {
            double v = power * parts[i];
            if (v >= p->y.low * 0.999 && v <= p->y.high * 1.001)
                y_tick(s, p, v);
        }
}

static void draw_frame(struct lksi_str *s, const struct panel *p, const struct history *h)
{
    char label[32];
    text_at(s, p->x.from, p->y.to - 14, "start", INK, 14, p->name);
    draw_y_ticks(s, p);
    for (size_t i = 0; i < h->n_epoch && h->n_epoch <= 40; i++) {
        double x = place(&p->x, (double)h->epoch[i].steps);
        lksi_str_add(s,
                     "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                     "stroke-dasharray=\"2 3\"/>\n",
                     x, p->y.from, x, p->y.to, "#9ca3af");
    }
    for (double v = 0.0; v <= p->x.high * (1.0 + 1e-9); v += p->x.step) {
        double x = place(&p->x, v);
        line_at(s, x, p->y.from, x, p->y.from + 5, FAINT);
        snprintf(label, sizeof label, "%.9g", v);
        text_at(s, x, p->y.from + 19, "middle", FAINT, 11, label);
    }
    line_at(s, p->x.from, p->y.from, p->x.to, p->y.from, FAINT);
    line_at(s, p->x.from, p->y.from, p->x.from, p->y.to, FAINT);
    text_at(s, (p->x.from + p->x.to) / 2, p->y.from + 38, "middle", FAINT, 12,
            h->n_epoch > 0 ? "step (dashed: end of an epoch)" : "step");
}

static void draw_training(struct lksi_str *s, const struct panel *p, size_t series,
                          const struct curve *c, const char *look)
{
    lksi_str_add(s,
                 "<polyline fill=\"none\" stroke=\"%s\" %s stroke-linejoin=\"round\" "
                 "points=\"",
                 series == ACCURACY ? TRAIN_LINE : colors[series], look);
    for (size_t i = 0; i < c->n; i++)
        lksi_str_add(s, "%s%.1f,%.1f", i > 0 ? " " : "", place(&p->x, c->x[i]),
                     place(&p->y, c->y[series][i]));
    lksi_str_add(s, "\"/>\n");
}

/* In a colour of its own, or of several losses in that of the loss, dashed. */
static void draw_test(struct lksi_str *s, const struct panel *p, size_t series,
                      const struct history *h)
{
    const char *join = "", *color = p->n > 1 ? colors[series] : TEST_LINE;
    lksi_str_add(s, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s points=\"", color,
                 p->n > 1 ? " stroke-dasharray=\"6 3\"" : "");
    for (size_t i = 0; i < h->n_epoch; i++)
        if (isfinite(test_of(series, &h->epoch[i]))) {
            lksi_str_add(s, "%s%.1f,%.1f", join, place(&p->x, (double)h->epoch[i].steps),
                         place(&p->y, test_of(series, &h->epoch[i])));
            join = " ";
        }
    lksi_str_add(s, "\"/>\n");
    for (size_t i = 0; i < h->n_epoch; i++)
        if (isfinite(test_of(series, &h->epoch[i])))
            lksi_str_add(s,
                         "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.6\" fill=\"%s"
                         "\" stroke=\"#ffffff\"/>\n",
                         place(&p->x, (double)h->epoch[i].steps),
                         place(&p->y, test_of(series, &h->epoch[i])), color);
}

/* Several losses have colours of their own; their test is dashed. */
static void draw_legend(struct lksi_str *s, double right, double y, bool several)
{
    const char *train = several ? FAINT : TRAIN_LINE, *test = several ? FAINT : TEST_LINE;
    lksi_str_add(s,
                 "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s"
                 "\" stroke-width=\"2\"/>\n",
                 right - 128, y - 4, right - 106, y - 4, train);
    text_at(s, right - 100, y, "start", INK, 12, "train");
    lksi_str_add(
        s,
        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s"
        "\" stroke-width=\"2\"%s/>\n<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.6\" fill=\"%s"
        "\" stroke=\"#ffffff\"/>\n",
        right - 54, y - 4, right - 32, y - 4, test, several ? " stroke-dasharray=\"6 3\"" : "",
        right - 43, y - 4, test);
    text_at(s, right - 26, y, "start", INK, 12, "test");
}

/* Of several losses: their names, each in its colour, above the panel. */
static void draw_names(struct lksi_str *s, const struct panel *p, const struct form *f)
{
    double room = fmin((p->x.to - p->x.from - 60) / (double)f->n_loss, 110);
    for (size_t k = 0; k < f->n_loss; k++)
        text_at(s, p->x.from + 60 + room * (double)k, p->y.to - 14, "start", colors[k], 12,
                f->loss[k]);
}

static void draw_panel(struct lksi_str *s, struct panel *p, const struct history *h,
                       const struct curve c[2])
{
    set_axes(p, h, c);
    draw_frame(s, p, h);
    if (p->n > 1)
        draw_names(s, p, &h->form);
    for (size_t series = p->first; series < p->first + p->n; series++) {
        if (c[0].n > c[1].n)
            draw_training(s, p, series, &c[0], "stroke-opacity=\"0.25\"");
        draw_training(s, p, series, &c[1], "stroke-width=\"2\"");
        draw_test(s, p, series, h);
    }
}

lks_status curves_write(const struct history *h, const char *title, const char *path)
{
    struct panel panels[2] = {
        {.name = "Loss",
         .x = {.from = 70, .to = h->form.positions > 0 ? 460 : 940},
         .y = {.from = 330, .to = 80},
         .n = h->form.n_loss},
        {.name = "Accuracy",
         .x = {.from = 550, .to = 940},
         .y = {.from = 330, .to = 80},
         .first = ACCURACY,
         .n = 1},
    };
    struct curve *c = lksi_alloc(2, sizeof *c); /* fine and coarse */
    struct lksi_str s = {0};
    lks_status st;
    if (c == NULL)
        return LKS_E_MEMORY;
    average(h, POINTS, &c[0]);
    average(h, FEW, &c[1]);
    lksi_str_add(&s,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                 "viewBox=\"0 0 %d %d\" font-family=\"Helvetica, Arial, sans-serif\">\n"
                 "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
                 WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT);
    text_at(&s, 70, 34, "start", INK, 17, title);
    draw_legend(&s, 940, 34, h->form.n_loss > 1);
    for (size_t i = 0; i < (h->form.positions > 0 ? 2 : 1); i++)
        draw_panel(&s, &panels[i], h, c);
    lksi_str_add(&s, "</svg>\n");
    st = s.failed ? LKS_E_MEMORY : lksi_file_write_atomic(path, s.text, s.length);
    free(s.text);
    free(c);
    return st;
}
