/*
 * rates.c - prints learning rates for rates_oracle.py: for each schedule its settings, then a line
 * "step bits" for every step, bits being those of the double.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <lockstep/optimizer.h>

struct schedule {
    struct lks_lr_schedule s;
    uint64_t total, epoch;
};

static const struct schedule schedules[] = {
    {{.kind = LKS_SCHEDULE_CONSTANT}, 7, 3},
    {{.kind = LKS_SCHEDULE_CONSTANT, .warmup = 5}, 9, 3},
    {{.kind = LKS_SCHEDULE_LINEAR}, 100, 10},
    {{.kind = LKS_SCHEDULE_LINEAR, .min = 0.001, .warmup = 7}, 64, 10},
    {{.kind = LKS_SCHEDULE_STEP, .every = 4}, 50, 10},
    {{.kind = LKS_SCHEDULE_STEP, .every = 3, .every_epochs = true, .factor = 0.7, .warmup = 2}, 200, 9},
    {{.kind = LKS_SCHEDULE_COSINE}, 1, 1},
    {{.kind = LKS_SCHEDULE_COSINE}, 211, 10},
    {{.kind = LKS_SCHEDULE_COSINE, .min = 0.003, .warmup = 11}, 411, 10},
    {{.kind = LKS_SCHEDULE_ONE_CYCLE}, 1, 1},
    {{.kind = LKS_SCHEDULE_ONE_CYCLE}, 2, 1},
    {{.kind = LKS_SCHEDULE_ONE_CYCLE}, 100, 10},
    {{.kind = LKS_SCHEDULE_ONE_CYCLE, .rise = 0.45, .start = 10, .end = 100, .warmup = 3}, 173, 10},
};

int main(void)
{
    struct lks_optimizer o = lks_optimizer_default(LKS_OPTIMIZER_SGD);
    o.lr = 0.05;
    for (size_t k = 0; k < sizeof schedules / sizeof schedules[0]; k++) {
        const struct schedule *c = &schedules[k];
        o.schedule = c->s;
        printf("%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %.17g %" PRIu64 " %d %.17g %.17g %.17g %.17g\n",
               lks_schedule_name(c->s.kind), c->total, c->epoch, c->s.warmup, c->s.min, c->s.every,
               c->s.every_epochs, c->s.factor, c->s.rise, c->s.start, c->s.end);
        for (uint64_t s = 0; s < c->total; s++) {
            double lr = lks_learning_rate(&o, s, c->total, c->epoch);
            uint64_t bits;
            memcpy(&bits, &lr, sizeof bits);
            printf("%" PRIu64 " %016" PRIx64 "\n", s, bits);
        }
    }
    return 0;
}
