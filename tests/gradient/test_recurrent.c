/*
 * test_recurrent.c - a ConvLSTM unrolled over a short sequence: its loss against loops written here
 * in double, and the gradients of its shared parameters against differences of those loops, for
 * batches of one and of several blocks.
 */
#include "net.h"

enum { T = 4, H = 4, W = 3, HID = 2, IN = 1 + HID, GATES = 4 * HID, POS = H * W };

/* ---- the network ---- */

static lks_value gate(lks_graph *g, lks_value all, int k, bool squash)
{
    lks_value y;
    EXPECT_OK(lks_graph_slice(
        g, all, lks_slice_params(.begin = {0, 0, k * HID}, .end = {0, 0, (k + 1) * HID}), &y));
    if (squash)
        EXPECT_OK(lks_graph_sigmoid(g, y, &y));
    else
        EXPECT_OK(lks_graph_tanh(g, y, &y));
    return y;
}

/* Predicts frames 1 to T - 1, each from those before it; the loss is the mean squared error. */
static lks_graph *conv_lstm(void)
{
    lks_graph *g;
    lks_value video, x, h, c, all, kept, new, out[T - 1], target, loss;
    EXPECT_OK(lks_graph_create(&g, NULL));
    EXPECT_OK(lks_graph_input(g, "video", 4, (int64_t[]){T, H, W, 1}, &video));
    EXPECT_OK(lks_graph_constant(g, 0, 3, (int64_t[]){H, W, HID}, &h));
    c = h;
    for (int t = 0; t < T - 1; t++) {
        bool first = t == 0;
        EXPECT_OK(lks_graph_select(g, video, 0, t, &x));
        EXPECT_OK(lks_graph_concat(g, 2, (lks_value[]){x, h}, -1, &x));
        EXPECT_OK(lks_graph_conv2d(
            g, x, lks_conv2d_params(.name = first ? "cell" : NULL, .share = first ? NULL : "cell",
                                    .out = GATES, .kernel = 3, .pad = 1), &all));
        EXPECT_OK(lks_graph_mul(g, gate(g, all, 1, true), c, &kept));
        EXPECT_OK(lks_graph_mul(g, gate(g, all, 0, true), gate(g, all, 3, false), &new));
        EXPECT_OK(lks_graph_add(g, kept, new, &c));
        EXPECT_OK(lks_graph_tanh(g, c, &h));
        EXPECT_OK(lks_graph_mul(g, gate(g, all, 2, true), h, &h));
        EXPECT_OK(lks_graph_conv2d(
            g, h, lks_conv2d_params(.name = first ? "out" : NULL, .share = first ? NULL : "out",
                                    .out = 1, .kernel = 1), &out[t]));
    }
    EXPECT_OK(lks_graph_stack(g, T - 1, out, 0, &x));
    EXPECT_OK(lks_graph_slice(g, video, lks_slice_params(.begin = {1}), &target));
    EXPECT_OK(lks_graph_loss_to(g, LKS_LOSS_MSE, x, target, 0, &loss));
    EXPECT_OK(lks_graph_add_loss(g, "loss", loss, 1.0));
    return g;
}

/* ---- the same by loops ---- */

struct weights {
    const double *video, *cell, *cell_bias, *out, *out_bias;
};

static double sigma(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

/* One position of the convolution of [x, h], 3x3 with a border of zeros. */
static double conv(const struct weights *w, const double *x, const double *h, int y0, int x0, int k)
{
    double sum = w->cell_bias[k];
    for (int r = 0; r < 3; r++)
        for (int s = 0; s < 3; s++) {
            int y = y0 + r - 1, xx = x0 + s - 1;
            const double *tap = w->cell + ((k * 3 + r) * 3 + s) * IN;
            if (y < 0 || y >= H || xx < 0 || xx >= W)
                continue;
            sum += tap[0] * x[y * W + xx];
            for (int j = 0; j < HID; j++)
                sum += tap[1 + j] * h[(y * W + xx) * HID + j];
        }
    return sum;
}

/* Squared errors of one sequence, summed. */
static double errors(const struct weights *w, const double *video)
{
    double h[POS * HID] = {0}, c[POS * HID] = {0}, next[POS * HID], sum = 0;
    for (int t = 0; t < T - 1; t++) {
        for (int p = 0; p < POS; p++) {
            double y = w->out_bias[0], a[GATES];
            for (int k = 0; k < GATES; k++)
                a[k] = conv(w, video + t * POS, h, p / W, p % W, k);
            for (int j = 0; j < HID; j++) {
                int e = p * HID + j;
                c[e] = sigma(a[HID + j]) * c[e] + sigma(a[j]) * tanh(a[3 * HID + j]);
                next[e] = sigma(a[2 * HID + j]) * tanh(c[e]);
                y += w->out[j] * next[e];
            }
            double d = y - video[(t + 1) * POS + p];
            sum += d * d;
        }
        memcpy(h, next, sizeof h);
    }
    return sum;
}

static double mean_error(const struct weights *w, size_t batch)
{
    double sum = 0;
    for (size_t n = 0; n < batch; n++)
        sum += errors(w, w->video + n * T * POS);
    return sum / (double)(batch * (T - 1) * POS);
}

static double *doubles_of(struct net *t, const char *name)
{
    lksi_value v = lksi_graph_find(t->g, name);
    cr_assert(v != LKSI_NONE, "no %s", name);
    return t->d[v];
}

static void compare(struct net *t, const struct weights *w, double *value, size_t batch, size_t at,
                    size_t e)
{
    double kept = value[e], up, down, want, got = (double)t->f[t->grad[at]][e];
    value[e] = kept + STEP;
    up = mean_error(w, batch);
    value[e] = kept - STEP;
    down = mean_error(w, batch);
    value[e] = kept;
    want = (up - down) / (2 * STEP);
    cr_expect(fabs(got - want) < 1e-6, "%s[%zu], batch %zu: gradient %.9g, by differences %.9g",
              value_name(t, t->wanted[at]), e, batch, got, want);
}

Test(recurrent, conv_lstm)
{
    const uint32_t batch[] = {1, 4, 5, 11}, leaf[] = {8, 4, 2, 4};
    for (size_t k = 0; k < LKSI_COUNT(batch); k++) {
        struct net t;
        size_t compared = 0;
        double largest = 0;
        net_open(&t, conv_lstm(), batch[k], leaf[k]);
        net_all_gradients(&t);
        net_run(&t);
        struct weights w = {doubles_of(&t, "video"), doubles_of(&t, "cell.weight"),
                            doubles_of(&t, "cell.bias"), doubles_of(&t, "out.weight"),
                            doubles_of(&t, "out.bias")};
        double loss = mean_error(&w, batch[k]);
        cr_expect(fabs(t.d[t.g->loss][0] - loss) < 1e-12 * loss);
        cr_expect(fabs((double)t.f[t.g->loss][0] - loss) < 1e-6 * loss);
        for (size_t at = 0; at < t.n_wanted; at++)
            for (size_t e = 0; e < size_of(&t, t.wanted[at]); e++, compared++) {
                compare(&t, &w, t.d[t.wanted[at]], batch[k], at, e);
                largest = fmax(largest, fabs((double)t.f[t.grad[at]][e]));
            }
        cr_expect_eq(compare_gradients(&t), 27);
        cr_expect_eq(compared, GATES * 9 * IN + GATES + HID + 1);
        cr_expect(largest > 1e-2, "gradients up to %g say nothing", largest);
        net_close(&t);
    }
}
