//! What hostile code leaves in a place, as scripts, so that the same is planted with and without a wrap.
//!
//! `$1` is the place, `$2` a repository of the user's, `$3` its head, `$4` a program that leaves a trace, `$5` the
//! port of a listener that nobody may call. A place has one commit of the agent's already.

/// Scripts that lead git into another repository. Nothing may be taken.
pub const ELSEWHERE: &[(&str, &str)] = &[
    (
        "a gitdir file",
        "rm -rf .git; echo \"gitdir: $2/.git\" > .git",
    ),
    ("a linked .git", "rm -rf .git; ln -s \"$2/.git\" .git"),
    ("commondir", "echo \"$2/.git\" > .git/commondir"),
    (
        "alternates",
        "echo \"$2/.git/objects\" > .git/objects/info/alternates; echo \"$3\" > .git/HEAD",
    ),
    (
        "linked objects and refs",
        "rm -rf .git/objects .git/refs; ln -s \"$2/.git/objects\" .git/objects; \
         ln -s \"$2/.git/refs\" .git/refs; echo 'ref: refs/heads/main' > .git/HEAD",
    ),
];

/// Scripts that name programs, proxies, addresses and files.
pub const ORDERS: &[(&str, &str)] = &[
    (
        "programs by their names",
        "for k in core.fsmonitor core.sshCommand core.pager core.editor core.askPass core.gitProxy \
         core.alternateRefsCommand sequence.editor diff.external interactive.diffFilter credential.helper \
         gpg.program gpg.ssh.defaultKeyCommand gc.recentObjectsHook uploadpack.packObjectsHook \
         remote.origin.uploadpack remote.origin.receivepack remote.origin.vcs alias.push \
         core.hooksPath; do git config $k \"$4\"; done; \
         for h in pre-push post-checkout reference-transaction post-index-change; do cp \"$4\" .git/hooks/$h; done",
    ),
    (
        "filters and drivers by any name",
        "git config filter.e.smudge \"$4\"; git config filter.e.clean \"$4\"; git config filter.e.process \"$4\"; \
         git config filter.e.required true; git config diff.d.command \"$4\"; git config diff.d.textconv \"$4\"; \
         git config merge.m.driver \"$4 %O\"; mkdir -p .git/info; \
         echo '* filter=e diff=d merge=m' > .git/info/attributes; \
         echo '* filter=e diff=d merge=m' > .gitattributes",
    ),
    (
        "an included file",
        "printf '[core]\\n\\tfsmonitor = %s\\n\\thooksPath = /x\\n' \"$4\" > .git/more; \
         git config include.path more; git config extensions.worktreeConfig true; \
         printf '[core]\\n\\tpager = %s\\n' \"$4\" > .git/config.worktree",
    ),
    (
        "proxies and rewritten addresses",
        "p=http://127.0.0.1:$5; git config http.proxy $p; git config remote.origin.proxy $p; \
         git config http.https://git.example.org.proxy $p; git config url.$p/.insteadOf https://git.example.org/; \
         git config url.$p/.pushInsteadOf /; git config url.ext::$4.insteadOf file://; \
         git config protocol.ext.allow always; git config fetch.bundleURI $p/b; git config remote.origin.url \"ext::$4\"",
    ),
    (
        "missing objects to be fetched",
        "git config extensions.partialClone origin; git config remote.origin.promisor true; \
         git config remote.origin.url \"ext::$4\"; git config protocol.ext.allow always; \
         git config remote.origin.uploadpack \"$4\"",
    ),
    ("a replaced commit", "git replace -f HEAD HEAD~1 || true"),
    ("a shallow file", "git rev-parse HEAD > .git/shallow"),
];

/// Scripts after which a program would wait for ever.
pub const PIPES: &[(&str, &str)] = &[
    ("HEAD", "rm -f .git/HEAD; mkfifo .git/HEAD"),
    ("config", "rm -f .git/config; mkfifo .git/config"),
    (
        "packed-refs",
        "rm -f .git/packed-refs; mkfifo .git/packed-refs",
    ),
    ("index", "rm -f .git/index; mkfifo .git/index"),
    ("included", "mkfifo .git/more; git config include.path more"),
];
