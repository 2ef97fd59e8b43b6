/* Runs a command for which the kernel answers some calls with an error, as a sandbox or an old kernel does.
 *
 * refusing CALL:ERROR[:ARGUMENT:VALUE]... -- COMMAND: the call with this name fails with this error number (0 pretends
 * that it succeeded), only where the argument with this number has this value if one is given. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST 100

static const struct {
    const char *name;
    unsigned number;
} CALLS[] = {
    {"clone", SYS_clone},
    {"clone3", SYS_clone3},
    {"futex", SYS_futex},
    {"memfd_create", SYS_memfd_create},
    {"pidfd_open", SYS_pidfd_open},
    {"pidfd_send_signal", SYS_pidfd_send_signal},
    {"socketpair", SYS_socketpair},
    {"unlinkat", SYS_unlinkat},
#ifdef SYS_fork
    {"fork", SYS_fork},
    {"unlink", SYS_unlink},
    {"vfork", SYS_vfork},
#endif
};

/* The number of a call; one that no call has if this machine does not know it. */
static unsigned number_of(const char *name)
{
    for (size_t at = 0; at < sizeof CALLS / sizeof *CALLS; at++)
        if (strcmp(CALLS[at].name, name) == 0)
            return CALLS[at].number;
    return 0xffffffff;
}

int main(int count, char **words)
{
    struct sock_filter lines[MOST * 6];
    unsigned short next = 0;
    int word = 1;
    for (; word < count && word < MOST && strcmp(words[word], "--") != 0; word++) {
        char name[32];
        unsigned error, argument, value;
        int read = sscanf(words[word], "%31[^:]:%u:%u:%u", name, &error, &argument, &value);
        if (read != 2 && read != 4)
            return 2;
        unsigned call = number_of(name);
        struct sock_filter number = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
        struct sock_filter is_call = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, read == 4 ? 3 : 1);
        lines[next++] = number;
        lines[next++] = is_call;
        if (read == 4) {
            struct sock_filter given =
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * argument);
            struct sock_filter is_value = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
            lines[next++] = given;
            lines[next++] = is_value;
        }
        struct sock_filter refused = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
        lines[next++] = refused;
    }
    struct sock_filter allowed = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    lines[next++] = allowed;
    struct sock_fprog program = {next, lines};
    if (word + 1 >= count || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("refusing");
        return 2;
    }
    execvp(words[word + 1], words + word + 1);
    perror(words[word + 1]);
    return 127;
}
