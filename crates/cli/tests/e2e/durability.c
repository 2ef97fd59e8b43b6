/* Preloaded into tenure: writes down which files are flushed and renamed, in their order, and does it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void note(const char *what, const char *one, const char *other) {
    const char *file = getenv("TENURE_TEST_STEPS");
    if (!file) return;
    int fd = syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) abort();
    dprintf(fd, "%s\t%s\t%s\n", what, one, other);
    close(fd);
}

static int flush(long call, int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    int done = syscall(call, fd);
    if (done == 0) note("flush", path, "");
    return done;
}

int fsync(int fd) { return flush(SYS_fsync, fd); }

int fdatasync(int fd) { return flush(SYS_fdatasync, fd); }

/* The path with its directory's own name: that may be spelt as a descriptor. */
static void whole(const char *path, char *out) {
    char dir[4096], own[PATH_MAX];
    const char *base = strrchr(path, '/');
    if (!base || base == path) {
        snprintf(out, 4096, "%s", path);
        return;
    }
    snprintf(dir, sizeof dir, "%.*s", (int)(base - path), path);
    snprintf(out, 4096, "%s%s", realpath(dir, own) ? own : dir, base);
}

int rename(const char *from, const char *to) {
    char old[4096], new[4096];
    int done = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    whole(from, old);
    whole(to, new);
    if (done == 0) note("rename", old, new);
    return done;
}
