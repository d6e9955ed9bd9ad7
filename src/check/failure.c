/*
 * failure.c - a failure of the harness in words.
 */
#include "check/check.h"

static const char *const words[] = {
    "no fault",
    "differs from the contract",
    "leaves an element unwritten",
    "differs from its own first run",
    "writes outside its buffers",
    "changes an input",
    "cannot run",
    "has a contract that breaks a rule",
    "is reached by no case",
};

static void add_bits(struct lksi_str *s, const struct lksi_check_failure *f)
{
    const struct lksi_diff *d = &f->diff;
    lksi_str_add(s, "  output %d, element %llu: got 0x%08x (%.9g), contract 0x%08x (%.9g), ",
                 d->output, (unsigned long long)d->index, d->got, (double)lks_float(d->got),
                 d->want, (double)lks_float(d->want));
    if (d->ulp == UINT64_MAX)
        lksi_str_add(s, "one is a NaN\n");
    else
        lksi_str_add(s, "%llu ulp apart\n", (unsigned long long)d->ulp);
}

void lksi_check_failure_text(const struct lksi_check_failure *f, struct lksi_str *s)
{
    lksi_str_add(s, "schedule `%s` of `%s` %s on %s\n", f->schedule, f->op->name, words[f->fault],
                 f->device);
    if (f->shapes[0] != '\0')
        lksi_str_add(s, "  %s\n", f->shapes);
    if (f->located)
        add_bits(s, f);
    if (f->text[0] != '\0')
        lksi_str_add(s, "  %s\n", f->text);
    lksi_str_add(s, "  repeat: lockstep check --device '%s' --op %s --schedule %s", f->device,
                 f->op->name, f->schedule);
    if (f->fault != LKSI_FAULT_UNREACHED)
        lksi_str_add(s, " --case %d --regime %s --seed %llu%s", f->case_index,
                     lksi_regime_name(f->regime), (unsigned long long)f->seed,
                     f->long_run ? " --long" : "");
    lksi_str_add(s, "\n");
}
