/* Preloaded into tenure: another program writes to TENURE_TEST_CHANGED whenever tenure is about to replace it, and in
 * the middle of what tenure appends to it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *file(void) { return getenv("TENURE_TEST_CHANGED"); }

static void add(const char *line)
{
    int fd = open(file(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || syscall(SYS_write, fd, line, strlen(line)) < 0)
        abort();
    close(fd);
}

int chmod(const char *path, mode_t mode)
{
    if (file())
        add("#\n");
    return syscall(SYS_fchmodat, AT_FDCWD, path, mode);
}

ssize_t write(int fd, const void *bytes, size_t count)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = file() && count > 1 ? readlink(link, path, sizeof path - 1) : 0;
    path[length < 0 ? 0 : length] = 0;
    if (length <= 0 || strcmp(path, file()) != 0)
        return syscall(SYS_write, fd, bytes, count);
    ssize_t written = syscall(SYS_write, fd, bytes, count / 2);
    add("{\"n\":9}\n");
    return written;
}
