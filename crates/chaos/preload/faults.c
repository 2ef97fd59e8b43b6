// A disk that fails, for the workers of a chaos run; loaded before libc with LD_PRELOAD.
//
// Covered are the files below TENURE_FAULTS_DIR that are opened through libc, as SQLite does: its database and its logs, not
// its shared memory, which is mapped. Everything that happens to them is appended to TENURE_FAULTS_LOG before it happens,
// each as one record with one call, so that crates/chaos/src/faults.rs can tell what a power cut at any moment leaves.
//
// Of TENURE_FAULTS_ONE_IN writes, syncs, cuts and renames one fails, with EIO or ENOSPC; 0 is never. A write that fails
// may have written its first part. TENURE_FAULTS_SEED decides together with the pid, and is printed by the run. With
// TENURE_FAULTS_AT it is the call of that number and no other, counted from 1.
//
// Crash: a record whose change did not happen is left; it stands for a write that the disk lost, or kept. A process that is
// killed while it appends leaves part of a record, whose change did not happen: a whole one has both marks.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind { OPENED = 1, WRITTEN, CUT, SYNC_BEGINS, SYNCED, REMOVED, RENAMED, FAILED };

// As faults.rs reads it; the bytes follow.
struct record {
    uint32_t kind, pid, length, mark;
    uint64_t at, file;
    int64_t offset;
};

enum { MAX_FILES = 4096 };
static const uint32_t BEGINS = 0xf417b361, ENDS = 0xf417e9d5;

static uint64_t files[MAX_FILES]; // which file each descriptor is; 0 is one of no concern
static const char *dir;
static size_t dir_length;
static int journal = -1;
static uint64_t one_in, only_at, calls, dice;
static pid_t dice_of;

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static uint64_t number(const char *name) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : 0;
}

static int raw_open(const char *path, int flags) { return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600); }

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("TENURE_FAULTS_LOG");
    const char *below = getenv("TENURE_FAULTS_DIR");
    if (!path || !below) return;
    journal = raw_open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC);
    if (journal < 0) abort();
    // Out of the way of descriptors that programs number themselves.
    int high = fcntl(journal, F_DUPFD_CLOEXEC, MAX_FILES);
    if (high >= 0) {
        syscall(SYS_close, journal);
        journal = high;
    }
    dir = strdup(below);
    dir_length = strlen(dir);
    one_in = number("TENURE_FAULTS_ONE_IN");
    only_at = number("TENURE_FAULTS_AT");
}

// splitmix64
static uint64_t next_random(void) {
    if (dice_of != getpid()) {
        dice_of = getpid();
        dice = number("TENURE_FAULTS_SEED") * 0x9e3779b97f4a7c15 + (uint64_t)dice_of * 0xd1342543de82ef95;
    }
    uint64_t z = dice += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static void note(enum kind kind, uint64_t file, int64_t offset, const void *bytes, size_t length) {
    int before = errno;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct record record = {
        .kind = kind,
        .pid = (uint32_t)getpid(),
        .length = (uint32_t)length,
        .mark = BEGINS,
        .at = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
        .file = file,
        .offset = offset,
    };
    struct iovec parts[3] = {{&record, sizeof record}, {(void *)bytes, length}, {(void *)&ENDS, sizeof ENDS}};
    if (writev(journal, parts, 3) != (ssize_t)(sizeof record + length + sizeof ENDS)) abort();
    errno = before;
}

// Zero, or the error with which this call is to fail.
static int fails(uint64_t file) {
    calls++;
    if (only_at ? calls != only_at : !one_in || next_random() % one_in) return 0;
    int error = next_random() % 2 ? EIO : ENOSPC;
    note(FAILED, file, error, NULL, 0);
    return error;
}

static uint64_t file_of(int fd) { return fd >= 0 && fd < MAX_FILES ? files[fd] : 0; }

static int is_ours(const char *path) { return dir && !strncmp(path, dir, dir_length); }

static void opened(int fd, const char *path, int flags) {
    struct stat found;
    if (fd < 0 || fd >= MAX_FILES) return;
    files[fd] = 0;
    if (!is_ours(path) || fstat(fd, &found) || !S_ISREG(found.st_mode)) return;
    files[fd] = found.st_ino;
    note(OPENED, found.st_ino, 0, path, strlen(path));
    if (flags & O_TRUNC) note(CUT, found.st_ino, 0, NULL, 0);
}

#define MODE(flags)                                                                                                    \
    mode_t mode = 0;                                                                                                   \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                                             \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode = va_arg(rest, mode_t);                                                                                   \
        va_end(rest);                                                                                                  \
    }

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...) {                                                                       \
        MODE(flags)                                                                                                    \
        int fd = REAL(name)(path, flags, mode);                                                                        \
        opened(fd, path, flags);                                                                                       \
        return fd;                                                                                                     \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                                                   \
    int name(int at, const char *path, int flags, ...) {                                                               \
        MODE(flags)                                                                                                    \
        int fd = REAL(name)(at, path, flags, mode);                                                                    \
        opened(fd, path, flags);                                                                                       \
        return fd;                                                                                                     \
    }
OPENAT(openat)
OPENAT(openat64)

int close(int fd) {
    if (fd >= 0 && fd < MAX_FILES) files[fd] = 0;
    return REAL(close)(fd);
}

static ssize_t write_at(int fd, const void *bytes, size_t length, off_t offset, int moves) {
    uint64_t file = file_of(fd);
    int error = fails(file);
    if (error) {
        // Its first part may have been written.
        length = next_random() % 2 ? length / 2 : 0;
    }
    if (length) note(WRITTEN, file, offset, bytes, length);
    ssize_t done = length ? pwrite(fd, bytes, length, offset) : 0;
    if (!error && moves && done > 0) lseek(fd, offset + done, SEEK_SET);
    if (!error) return done;
    errno = error;
    return -1;
}

// Without this, our own pwrite would come back here.
static __thread int inside;

#define PWRITE(name, offset_type)                                                                                      \
    ssize_t name(int fd, const void *bytes, size_t length, offset_type offset) {                                       \
        if (inside || !file_of(fd)) return REAL(name)(fd, bytes, length, offset);                                      \
        inside = 1;                                                                                                    \
        ssize_t done = write_at(fd, bytes, length, offset, 0);                                                         \
        inside = 0;                                                                                                    \
        return done;                                                                                                   \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

ssize_t write(int fd, const void *bytes, size_t length) {
    if (inside || !file_of(fd)) return REAL(write)(fd, bytes, length);
    inside = 1;
    int end = (fcntl(fd, F_GETFL) & O_APPEND) ? SEEK_END : SEEK_CUR;
    ssize_t done = write_at(fd, bytes, length, lseek(fd, 0, end), 1);
    inside = 0;
    return done;
}

#define SYNC(name)                                                                                                     \
    int name(int fd) {                                                                                                 \
        uint64_t file = file_of(fd);                                                                                   \
        if (!file) return REAL(name)(fd);                                                                              \
        note(SYNC_BEGINS, file, 0, NULL, 0);                                                                           \
        errno = fails(file);                                                                                           \
        if (errno || REAL(name)(fd)) return -1;                                                                        \
        note(SYNCED, file, 0, NULL, 0);                                                                                \
        return 0;                                                                                                      \
    }
SYNC(fsync)
SYNC(fdatasync)

#define TRUNCATE(name, offset_type)                                                                                    \
    int name(int fd, offset_type length) {                                                                             \
        uint64_t file = file_of(fd);                                                                                   \
        if (!file) return REAL(name)(fd, length);                                                                      \
        if ((errno = fails(file))) return -1;                                                                          \
        note(CUT, file, length, NULL, 0);                                                                              \
        return REAL(name)(fd, length);                                                                                 \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

int unlink(const char *path) {
    if (is_ours(path)) note(REMOVED, 0, 0, path, strlen(path));
    return REAL(unlink)(path);
}

int rename(const char *from, const char *to) {
    struct stat found;
    if (!is_ours(to) || stat(from, &found)) return REAL(rename)(from, to);
    if ((errno = fails(found.st_ino))) return -1;
    int done = REAL(rename)(from, to);
    if (!done) note(RENAMED, found.st_ino, 0, to, strlen(to));
    return done;
}
