/* Preloaded into tenure: its steady clock runs a thousand times as fast. Sleeps take as long as ever. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t which, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    static struct timespec first;
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int answer = real(which, now);
    if (which != CLOCK_MONOTONIC || answer != 0)
        return answer;
    if (first.tv_sec == 0)
        first = *now;
    long long since = (now->tv_sec - first.tv_sec) * 1000000000LL + now->tv_nsec - first.tv_nsec;
    since = since * 1000 + first.tv_nsec;
    now->tv_sec = first.tv_sec + since / 1000000000LL;
    now->tv_nsec = since % 1000000000LL;
    return answer;
}
