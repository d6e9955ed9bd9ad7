/*
 * resume_command.c - the command that goes on with a training, see resume_command.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "resume_command.h"

static void add_quoted(struct lksi_str *s, const char *word)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_-./:=,+@%";
    if (word[0] != '\0' && strspn(word, safe) == strlen(word)) {
        lksi_str_add(s, " %s", word);
        return;
    }
    lksi_str_add(s, " '");
    for (const char *p = word; *p != '\0'; p++)
        if (*p == '\'')
            lksi_str_add(s, "'\\''");
        else
            lksi_str_append(s, p, 1);
    lksi_str_add(s, "'");
}

char *make_resume_command(int argc, char **argv)
{
    struct lksi_str s = {0};
    lksi_str_add(&s, "%s", program_invocation_name);
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--resume") == 0 || strcmp(argv[i], "-r") == 0 ||
            strcmp(argv[i], "--overwrite") == 0)
            continue;
        if ((strcmp(argv[i], "--weights") == 0 || strcmp(argv[i], "-w") == 0) && i + 1 < argc) {
            i++;
            continue;
        }
        if (strncmp(argv[i], "--weights=", 10) != 0)
            add_quoted(&s, argv[i]);
    }
    lksi_str_add(&s, " --resume");
    if (s.failed) {
        free(s.text);
        return NULL;
    }
    return s.text;
}
