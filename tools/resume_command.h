/*
 * resume_command.h - the command that goes on with a training.
 */
#ifndef LKS_TOOLS_RESUME_COMMAND_H
#define LKS_TOOLS_RESUME_COMMAND_H

/* The words of this call of `train`, ready for a shell, with --resume in place of --overwrite. The
 * start weights are in the checkpoint. Called before the options are read, since that sorts argv.
 * NULL if memory is out; the caller frees. */
char *make_resume_command(int argc, char **argv);

#endif
