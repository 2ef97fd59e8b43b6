/* Shifts the wall clock of a process by TENURE_TEST_SKEW seconds. The steady clocks stay as they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long skew(void)
{
    const char *text = getenv("TENURE_TEST_SKEW");
    return text ? strtol(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t which, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int answer = real(which, now);
    if (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)
        now->tv_sec += skew();
    return answer;
}

int gettimeofday(struct timeval *now, void *zone)
{
    struct timespec exact;
    int answer = clock_gettime(CLOCK_REALTIME, &exact);
    (void)zone;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return answer;
}

time_t time(time_t *out)
{
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (out)
        *out = exact.tv_sec;
    return exact.tv_sec;
}
