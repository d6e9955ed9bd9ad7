/*
 * leak.c - loses memory, to see that the sanitizer would say so.
 */
#include <stdlib.h>

int main(void)
{
    volatile char *lost = malloc(4711);
    lost[0] = 1;
    lost = NULL;
    return 0;
}
