/*
 * threads.c - trainings in several threads at once on one physical device, each with its own
 * handles, opened, built, trained and closed at the same time; every digest must be that of the
 * training alone. Meanwhile the log callback is exchanged. Also run under the thread sanitizer.
 *
 * Usage: threads DEVICE [ROUNDS]; status 77 without the device.
 */
#include <pthread.h>

#include "net.h"

#define THREADS 3

struct job {
    pthread_t thread;
    const char *select;
    uint64_t seed;
    lks_status status;
    char sha256[65], message[512];
};

static void on_log(void *user, lks_log_level level, const char *message)
{
    (void)level;
    if (message[0] == '\0')
        fprintf(stderr, "an empty line from %s\n", (const char *)user);
}

static lks_status train(struct net *n, struct job *j)
{
    double loss, accuracy;
    NET_TRY(net_open(n, j->select, j->seed, 4));
    NET_TRY(lks_trainer_fit(n->trainer, lks_fit_params(.train = n->data)));
    NET_TRY(lks_trainer_evaluate(n->trainer, n->data, &loss, &accuracy));
    return lks_trainer_weights_sha256(n->trainer, j->sha256);
}

static void *run(void *user)
{
    static char names[2][8] = {"odd", "even"};
    struct job *j = user;
    struct net n = {0};
    lks_log_set(j->seed % 2 != 0 ? on_log : NULL, names[j->seed % 2], LKS_LOG_DEBUG);
    j->status = train(&n, j);
    if (j->status != LKS_OK)
        snprintf(j->message, sizeof j->message, "%s", lks_error_message());
    net_close(&n);
    return NULL;
}

int main(int argc, char **argv)
{
    struct job alone[THREADS] = {0};
    int bad = 0, rounds = argc > 2 ? atoi(argv[2]) : 2;
    for (int i = 0; i < THREADS; i++) {
        alone[i].select = argc > 1 ? argv[1] : "ref";
        alone[i].seed = (uint64_t)i + 1;
        run(&alone[i]);
        if (alone[i].status == LKS_E_DEVICE && i == 0)
            return 77;
        if (alone[i].status != LKS_OK) {
            fprintf(stderr, "alone: %s\n", alone[i].message);
            return 1;
        }
    }
    if (strcmp(alone[0].sha256, alone[1].sha256) == 0) {
        fprintf(stderr, "two seeds, one digest: this test shows nothing\n");
        return 1;
    }
    for (int r = 0; r < rounds; r++) {
        struct job job[THREADS];
        memcpy(job, alone, sizeof job);
        for (int i = 0; i < THREADS; i++) {
            job[i].sha256[0] = '\0';
            if (pthread_create(&job[i].thread, NULL, run, &job[i]) != 0)
                return 1;
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(job[i].thread, NULL);
        for (int i = 0; i < THREADS; i++)
            if (job[i].status != LKS_OK || strcmp(job[i].sha256, alone[i].sha256) != 0) {
                fprintf(stderr, "round %d, seed %d: %s\n", r, i + 1,
                        job[i].status != LKS_OK ? job[i].message : "other bits");
                bad++;
            }
    }
    printf("%s: %d rounds of %d threads, %d wrong\n", alone[0].select, rounds, THREADS, bad);
    return bad != 0;
}
