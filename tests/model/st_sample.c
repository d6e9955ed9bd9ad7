/*
 * st_sample.c - writes the sample tensors: st_sample FILE. Used by safetensors_oracle.py.
 */
#include <stdio.h>

#include "st_sample.h"

int main(int argc, char **argv)
{
    if (argc != 2 || lksi_safetensors_write(argv[1], sample_tensors, SAMPLE_TENSORS, sample_meta,
                                            SAMPLE_META) != LKS_OK) {
        fprintf(stderr, "st_sample: %s\n", lks_error_message());
        return 1;
    }
    return 0;
}
