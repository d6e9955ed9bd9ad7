/*
 * admission.c - does admission see what the harness sees? For each case of one schedule: the
 * verdict of the harness (all regimes) and that of admission, which looks at a sample of one run.
 *
 *     admission DEVICE OPERATOR SCHEDULE
 *
 * The last line sums up: "wrong W of N cases, struck off on S". Status 0 if S is W, or if S is not
 * 0: one strike takes the schedule out of a plan for good.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/oracle.h"
#include "plan/bind.h"
#include "plan/plan.h"

static void keep_row(void *user, const struct lksi_check_row *row)
{
    *(struct lksi_check_row *)user = *row;
}

static lks_status admit(struct lksi_dev *dev, const struct lksi_oracle *o, const char *schedule,
                        bool *right)
{
    const struct lksi_build_progress quiet = {NULL, NULL};
    struct lksi_program *program = NULL;
    struct lksi_stage stage;
    lks_status st = lksi_stage_choose(&stage, dev, &o->call, schedule, NULL, NULL);
    if (st != LKS_OK)
        return st;
    st = lksi_stages_build(&program, dev, &stage, 1, quiet);
    if (st == LKS_OK)
        st = lksi_admit(&stage, program, right);
    lksi_stage_close(&stage);
    lksi_program_destroy(&program);
    return st;
}

int main(int argc, char **argv)
{
    const struct lksi_dev_params params = {.select = argc > 1 ? argv[1] : NULL, .cache_dir = ""};
    struct lksi_dev *dev = NULL;
    const struct lksi_op *op = argc == 4 ? lksi_op_find(argv[2]) : NULL;
    int cases = 0, wrong = 0, struck = 0;
    bool found = true;
    lks_status st = LKS_OK;
    if (op == NULL) {
        fprintf(stderr, "usage: admission DEVICE OPERATOR SCHEDULE\n");
        return 2;
    }
    LKSI_TRY(lksi_dev_open(&dev, &params));
    for (int i = 0; found; i++) {
        const struct lksi_check_options options = {
            .op = op->name, .schedule = argv[3], .only_case = 1 + i, .seed = 1};
        struct lksi_check_row row = {0};
        struct lksi_oracle oracle;
        bool admitted = true;
        LKSI_TRY(lksi_oracle_open(&oracle, op, i, false, &found));
        if (!found)
            break;
        st = lksi_check_run(dev, &options, keep_row, &row, NULL);
        if (st == LKS_OK && row.cases > 0)
            st = admit(dev, &oracle, argv[3], &admitted);
        lksi_oracle_close(&oracle);
        if (st != LKS_OK)
            goto fail;
        if (row.cases == 0)
            continue;
        cases++;
        wrong += row.verdict == LKSI_CHECK_FAILED;
        struck += !admitted;
        printf("case %d: the harness says %s, admission %s\n", i,
               row.verdict == LKSI_CHECK_FAILED ? "wrong" : "right", admitted ? "right" : "wrong");
    }
    printf("wrong %d of %d cases, struck off on %d\n", wrong, cases, struck);
    lksi_dev_close(&dev);
    return wrong > 0 && struck == 0;
fail:
    fprintf(stderr, "admission: %s\n", lks_error_message());
    lksi_dev_close(&dev);
    return 2;
}
