/*
 * Records what tenure prints, for TENURE_SEEN. It is loaded into every program that a test starts, and does something
 * only in tenure and tenure-server: so it sees commands inside shells, terminals and namespaces too, whose place in the
 * tree of processes a wrapper would change.
 *
 * When the program exits, one line of JSON is appended: its arguments, exit code and both outputs. A success that wrote
 * nothing to stderr is not recorded.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More of an output is not recorded. */
#define MOST 65536

static char said[2][MOST];
static size_t lengths[2];
static pid_t owner;
static int count;
static char **words;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static ssize_t real_write(int fd, const void *bytes, size_t length)
{
    static ssize_t (*real)(int, const void *, size_t);
    if (!real)
        real = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    return real(fd, bytes, length);
}

ssize_t write(int fd, const void *bytes, size_t length)
{
    ssize_t written = real_write(fd, bytes, length);
    /* Not in a child between fork and exec. */
    if (!owner || (fd != 1 && fd != 2) || written <= 0 || owner != getpid())
        return written;
    pthread_mutex_lock(&guard);
    size_t *filled = &lengths[fd - 1];
    size_t more = (size_t)written;
    if (more > MOST - *filled)
        more = MOST - *filled;
    memcpy(said[fd - 1] + *filled, bytes, more);
    *filled += more;
    pthread_mutex_unlock(&guard);
    return written;
}

/* Appends a JSON string. */
static char *quoted(char *to, const char *bytes, size_t length)
{
    *to++ = '"';
    for (size_t at = 0; at < length; at++) {
        unsigned char one = (unsigned char)bytes[at];
        if (one < 0x20 || one == '"' || one == '\\')
            to += sprintf(to, "\\u%04x", one);
        else
            *to++ = (char)one;
    }
    *to++ = '"';
    return to;
}

static void record(int code, void *unused)
{
    (void)unused;
    const char *file = getenv("TENURE_SEEN");
    if (owner != getpid() || !file || (code == 0 && lengths[1] == 0))
        return;
    size_t room = 6 * (lengths[0] + lengths[1]) + 128;
    for (int word = 1; word < count; word++)
        room += 6 * strlen(words[word]) + 3;
    char *line = malloc(room);
    if (!line)
        return;
    char *to = line + sprintf(line, "{\"args\":[");
    for (int word = 1; word < count; word++) {
        if (word > 1)
            *to++ = ',';
        to = quoted(to, words[word], strlen(words[word]));
    }
    to += sprintf(to, "],\"code\":%d,\"stdout\":", code);
    to = quoted(to, said[0], lengths[0]);
    to += sprintf(to, ",\"stderr\":");
    to = quoted(to, said[1], lengths[1]);
    to += sprintf(to, "}\n");
    /* One write, so that several processes can share the file; other users too. */
    int fd = open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd >= 0) {
        real_write(fd, line, (size_t)(to - line));
        close(fd);
    }
    free(line);
}

__attribute__((constructor)) static void begin(int argc, char **argv)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0)
        return;
    path[length] = 0;
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    if (strcmp(name, "tenure") != 0 && strcmp(name, "tenure-server") != 0)
        return;
    count = argc;
    words = argv;
    owner = getpid();
    on_exit(record, NULL);
}
