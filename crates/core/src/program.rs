//! Which process an unknown program is, from a hook that it started.
//!
//! A hook of a known agent recognises that agent by its appearance. Any other program is found by what is
//! certain, the nearest first, because a wrong process is worse than none:
//!
//! - the process that the event names, if it is an ancestor of the hook;
//! - a process that is already a session, whatever it is;
//! - a program that is not a shell and started the hook itself, or through one `sh -c` whose command does
//!   nothing but call the hook;
//! - a shell that runs a script file: the script is the program.
//!
//! A shell's own fork (a subshell, a part of a pipeline) stands for the shell. Everything else is unclear: an
//! interactive shell, a shell that reads its commands from a pipe, `sh -c 'work; hook; more'`, and programs
//! that only start others (cron, timeout, tmux), because two of their jobs would become one session. An unclear
//! process is never skipped for one further up.

use serde::{Deserialize, Serialize};

use crate::agent;
use crate::process::{Ancestor, ProcessAppearance};

/// The ancestors of a hook of any program, nearest first, and the pid that the event names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Program {
    /// The ancestors of the hook, as far as they can decide.
    pub above: Vec<Ancestor>,
    /// The process that the event names.
    pub pid: Option<u32>,
}

/// Which process a program is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramProcess<'a> {
    Process(&'a Ancestor),
    /// None for certain, for this reason.
    Unclear(String),
}

impl Program {
    /// Finds the program's own process; `is_session` returns whether a process belongs to a session now.
    pub fn find(&self, is_session: impl Fn(&Ancestor) -> bool) -> ProgramProcess<'_> {
        if let Some(pid) = self.pid {
            let named = self.above.iter().find(|above| above.process.pid == pid);
            return named.map_or_else(
                || ProgramProcess::Unclear(format!("pid {pid} is not an ancestor of this hook")),
                ProgramProcess::Process,
            );
        }
        let mut passed_a_shell = false;
        let mut fork: Option<&Ancestor> = None;
        for above in &self.above {
            if is_session(above) {
                return ProgramProcess::Process(above);
            }
            // A subshell that outlived its shell was reparented to another process.
            if fork.is_some_and(|fork| fork.looks.exe != above.looks.exe) {
                return unclear(above, "is not the shell of the subshell below it");
            }
            let kind = kind(above);
            fork = (kind == AncestorKind::Fork).then_some(above);
            match kind {
                AncestorKind::Worker => return ProgramProcess::Process(above),
                AncestorKind::Fork => {}
                AncestorKind::HookShell if !passed_a_shell => passed_a_shell = true,
                AncestorKind::HookShell => {
                    return unclear(above, "is a second shell around the hook");
                }
                AncestorKind::Unclear(why) => return unclear(above, why),
            }
        }
        ProgramProcess::Unclear("no ancestor of this hook is visible".into())
    }
}

fn unclear<'a>(above: &Ancestor, why: &str) -> ProgramProcess<'a> {
    ProgramProcess::Unclear(format!("pid {} {why}", above.process.pid))
}

/// Whether no process above this one can decide.
pub fn decides(above: &Ancestor, named: Option<u32>) -> bool {
    match named {
        Some(pid) => above.process.pid == pid,
        None => matches!(kind(above), AncestorKind::Worker | AncestorKind::Unclear(_)),
    }
}

/// What an ancestor of a hook is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AncestorKind {
    /// The program itself.
    Worker,
    /// A shell's own fork: its parent is the same shell.
    Fork,
    /// A shell that exists only to call the hook.
    HookShell,
    /// Unknown, for this reason.
    Unclear(&'static str),
}

/// Programs that start others and do no work themselves.
const STARTERS: &[&str] = &[
    "abduco",
    "anacron",
    "atd",
    "bwrap",
    "catatonit",
    "conmon",
    "containerd-shim",
    "containerd-shim-runc-v2",
    "cron",
    "crond",
    "crun",
    "doas",
    "docker-init",
    "dtach",
    "dumb-init",
    "env",
    "fcron",
    "firejail",
    "flock",
    "gmake",
    "init",
    "launchd",
    "login",
    "make",
    "nice",
    "ninja",
    "nohup",
    "nsenter",
    "parallel",
    "runc",
    "runsv",
    "screen",
    "script",
    "setsid",
    "sshd",
    "sshd-session",
    "stdbuf",
    "su",
    "sudo",
    "supervisord",
    "systemd",
    "tenure",
    "time",
    "timeout",
    "tini",
    "tmux",
    "unshare",
    "watch",
    "xargs",
];

/// Shells with POSIX options.
const POSIX_SHELLS: &[&str] = &["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"];

fn kind(above: &Ancestor) -> AncestorKind {
    let Some((name, argv)) = called(&above.looks) else {
        return AncestorKind::Unclear("cannot be read");
    };
    if STARTERS.contains(&name) {
        return AncestorKind::Unclear("only starts other programs");
    }
    if !POSIX_SHELLS.contains(&name) && !agent::is_shell_name(name) {
        return AncestorKind::Worker;
    }
    if above.forked {
        return AncestorKind::Fork;
    }
    match invocation(name, argv) {
        Invocation::Script => AncestorKind::Worker,
        Invocation::Command(line) if only_calls_the_hook(line) => AncestorKind::HookShell,
        Invocation::Command(_) => {
            AncestorKind::Unclear("is a shell whose command does more than the hook")
        }
        Invocation::Typed => {
            AncestorKind::Unclear("is a shell that reads its commands from standard input")
        }
    }
}

/// The name that a process was called by, and its command line from there on. For a multi-call binary (busybox,
/// coreutils), the applet.
fn called(looks: &ProcessAppearance) -> Option<(&str, &[String])> {
    let name = agent::base(&looks.exe);
    if name.is_empty() {
        return None;
    }
    if !matches!(name, "busybox" | "toybox" | "coreutils") {
        return Some((name, &looks.argv));
    }
    let first = agent::base(looks.argv.first()?).trim_start_matches('-');
    match first {
        "busybox" | "toybox" | "coreutils" => {
            Some((agent::base(looks.argv.get(1)?), &looks.argv[1..]))
        }
        applet => Some((applet, &looks.argv)),
    }
}

/// How a shell gets its commands.
#[derive(Debug, PartialEq, Eq)]
enum Invocation<'a> {
    /// From a file.
    Script,
    /// From its command line.
    Command(&'a str),
    /// From a person or a pipe.
    Typed,
}

fn invocation<'a>(name: &str, argv: &'a [String]) -> Invocation<'a> {
    let mut words = argv.iter().skip(1).map(String::as_str);
    let is_login = argv.first().is_some_and(|word| word.starts_with('-'));
    if !POSIX_SHELLS.contains(&name) {
        let first = words.next().filter(|word| !word.starts_with('-'));
        return match first {
            Some(_) if !is_login => Invocation::Script,
            _ => Invocation::Typed,
        };
    }
    let (mut from_words, mut from_stdin) = (false, false);
    let mut operand = None;
    while let Some(word) = words.next() {
        match word {
            "-" | "--" => {
                operand = words.next();
                break;
            }
            "--rcfile" | "--init-file" => drop(words.next()),
            long if long.starts_with("--") => {}
            flags if flags.len() > 1 && flags.starts_with(['-', '+']) => {
                for flag in flags.chars().skip(1) {
                    match flag {
                        'c' => from_words = true,
                        's' => from_stdin = true,
                        'o' | 'O' => drop(words.next()),
                        _ => {}
                    }
                }
            }
            word => {
                operand = Some(word);
                break;
            }
        }
    }
    match operand {
        Some(line) if from_words => Invocation::Command(line),
        Some(_) if !from_stdin => Invocation::Script,
        _ => Invocation::Typed,
    }
}

/// Whether a command line calls the hook and otherwise does no work.
fn only_calls_the_hook(line: &str) -> bool {
    let Some(commands) = simple_commands(line) else {
        return false;
    };
    let is_hook = |words: &Vec<String>| words.iter().skip(1).any(|word| word == "hook");
    let mut hooks = false;
    for words in &commands {
        match words.first().map(|word| agent::base(word)) {
            Some("tenure") if is_hook(words) => hooks = true,
            None => {}
            Some("command") if words.get(1).is_some_and(|word| word == "-v") => {}
            Some(
                ":" | "true" | "false" | "exit" | "echo" | "printf" | "cat" | "test" | "[" | "cd"
                | "export" | "set" | "umask",
            ) => {}
            Some(_) => return false,
        }
    }
    hooks
}

/// The commands of a line, each by its words without assignments, redirections and `exec`; `None` for anything
/// that is not a plain list or pipeline.
fn simple_commands(line: &str) -> Option<Vec<Vec<String>>> {
    let mut reader = WordReader::default();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => reader.end_word(),
            ';' | '\n' => reader.end_command(),
            '|' => {
                chars.next_if_eq(&'|');
                reader.end_command();
            }
            '&' => {
                chars.next_if_eq(&'&')?;
                reader.end_command();
            }
            '<' | '>' => {
                reader.end_descriptor();
                if chars.next_if_eq(&c).is_some() && c == '<' {
                    return None;
                }
                chars.next_if_eq(&'&');
                reader.redirects = true;
            }
            '\'' => loop {
                match chars.next()? {
                    '\'' => break reader.begin_word(),
                    other => reader.push(other),
                }
            },
            '"' => loop {
                match chars.next()? {
                    '"' => break reader.begin_word(),
                    '`' => return None,
                    '$' if chars.peek() == Some(&'(') => return None,
                    '\\' => reader.push(chars.next()?),
                    other => reader.push(other),
                }
            },
            '\\' => reader.push(chars.next()?),
            '`' | '(' | ')' | '#' => return None,
            other => reader.push(other),
        }
    }
    reader.end_command();
    Some(reader.commands)
}

/// The words of a command line while it is read.
#[derive(Default)]
struct WordReader {
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    word: Option<String>,
    /// The next word is the file of a redirection.
    redirects: bool,
}

impl WordReader {
    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn begin_word(&mut self) {
        self.word.get_or_insert_default();
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else {
            return;
        };
        let assigns = word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        let is_before_name = self.words.is_empty() && (assigns || word == "exec");
        if !std::mem::take(&mut self.redirects) && !is_before_name {
            self.words.push(word);
        }
    }

    /// `2` in `2>file` is not a word.
    fn end_descriptor(&mut self) {
        let is_number = |word: &String| word.chars().all(|c| c.is_ascii_digit());
        if self.word.as_ref().is_some_and(is_number) {
            self.word = None;
        }
        self.end_word();
    }

    fn end_command(&mut self) {
        self.end_word();
        self.redirects = false;
        self.commands.push(std::mem::take(&mut self.words));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;

    fn process(pid: u32, exe: &str, argv: &[&str]) -> Ancestor {
        Ancestor {
            process: Process::sample(pid),
            looks: ProcessAppearance {
                exe: exe.into(),
                argv: argv.iter().map(|word| (*word).to_owned()).collect(),
                comm: String::new(),
            },
            leads_terminal: false,
            forked: false,
        }
    }

    fn kind_of(exe: &str, argv: &[&str]) -> AncestorKind {
        kind(&process(7, exe, argv))
    }

    /// The pid that is found if these pids are sessions.
    fn found(above: &[Ancestor], pid: Option<u32>, sessions: &[u32]) -> Option<u32> {
        let program = Program {
            above: above.to_vec(),
            pid,
        };
        match program.find(|above| sessions.contains(&above.process.pid)) {
            ProgramProcess::Process(above) => Some(above.process.pid),
            ProgramProcess::Unclear(_) => None,
        }
    }

    #[test]
    fn a_script_is_the_program_itself() {
        for argv in [
            &["bash", "nightly.sh"][..],
            &["/bin/sh", "./x"],
            &["bash", "--norc", "script"],
            &["bash", "-eu", "x.sh", "-c"],
            &["bash", "-o", "pipefail", "x.sh"],
            &["bash", "--rcfile", "c", "-x", "x.sh"],
            &["sh", "--", "x.sh"],
        ] {
            assert_eq!(
                kind_of("/usr/bin/bash", argv),
                AncestorKind::Worker,
                "{argv:?}"
            );
        }
        assert_eq!(
            kind_of("/usr/bin/fish", &["fish", "x.fish"]),
            AncestorKind::Worker
        );
        assert_eq!(
            kind_of("/bin/busybox", &["sh", "/x.sh"]),
            AncestorKind::Worker
        );
    }

    #[test]
    fn shells_that_read_their_commands_and_jobs_are_unclear() {
        for argv in [
            &["bash"][..],
            &["-bash"],
            &["bash", "-i"],
            &["bash", "--norc", "--noprofile", "-i"],
            &["sh", "-s"],
            &["sh", "-s", "word"],
            &["bash", "--login"],
            &["sh", "-c", "work; tenure hook generic; more"],
            &["sh", "-ec", "make && tenure hook generic"],
            &["sh", "-c"],
        ] {
            assert!(
                matches!(kind_of("/bin/bash", argv), AncestorKind::Unclear(_)),
                "{argv:?}"
            );
        }
        for (exe, argv) in [
            ("/usr/bin/fish", &["fish", "-c", "x"][..]),
            ("/usr/bin/zsh", &["zsh"]),
            ("/bin/busybox", &["-sh"]),
            ("/bin/busybox", &["busybox", "sh"]),
            ("/bin/busybox", &["timeout", "9", "x"]),
            ("/usr/sbin/cron", &["cron", "-f"]),
            ("/usr/bin/timeout", &["timeout", "9", "x"]),
            ("", &["x"]),
        ] {
            assert!(
                matches!(kind_of(exe, argv), AncestorKind::Unclear(_)),
                "{argv:?}"
            );
        }
    }

    #[test]
    fn a_command_that_only_calls_the_hook_is_known_by_its_text() {
        for line in [
            "tenure hook generic",
            "tenure hook generic || true",
            "exec /usr/local/bin/tenure hook generic 2>/dev/null",
            "command -v tenure >/dev/null && tenure hook generic; exit 0",
            "echo '{\"event\":\"busy\"}' | tenure hook generic",
            "printf '%s' \"{\\\"session_id\\\":\\\"$ID\\\"}\" | A=1 tenure hook generic >> log 2>&1",
            "[ -x '/opt/my tools/tenure' ] && '/opt/my tools/tenure' hook generic || :",
            "cd /repo; tenure --json hook generic < event; exit $?",
        ] {
            assert!(only_calls_the_hook(line), "{line}");
            assert_eq!(
                kind_of("/bin/dash", &["sh", "-c", line]),
                AncestorKind::HookShell
            );
        }
        for line in [
            "",
            "true",
            "make",
            "tenure claim wp:1",
            "echo hook",
            "work; tenure hook generic",
            "tenure hook generic; work",
            "tenure hook generic & work",
            "tenure hook generic &",
            "(work); tenure hook generic",
            "echo \"$(work)\" | tenure hook generic",
            "echo `work` | tenure hook generic",
            "tenure hook generic <<EOF\n{}\nEOF",
            "if work; then tenure hook generic; fi",
            "tenure hook generic # done",
            "tenure hook 'generic",
            "nottenure hook generic",
        ] {
            assert!(!only_calls_the_hook(line), "{line}");
        }
    }

    #[test]
    fn the_nearest_process_that_is_certain_is_the_program() {
        let hook = |pid| process(pid, "/bin/sh", &["sh", "-c", "tenure hook generic || :"]);
        let job = |pid| process(pid, "/bin/sh", &["sh", "-c", "a; tenure hook generic; b"]);
        let python = process(9, "/usr/bin/python3", &["python3", "x.py"]);
        assert_eq!(found(std::slice::from_ref(&python), None, &[]), Some(9));
        assert_eq!(found(&[hook(1), python.clone()], None, &[]), Some(9));
        assert_eq!(found(&[hook(1), hook(2), python.clone()], None, &[]), None);
        assert_eq!(found(&[job(1), python.clone()], None, &[]), None);
        // A session is certain, whatever it is, and an unclear process below it is not skipped.
        assert_eq!(found(&[job(1), python.clone()], None, &[1]), Some(1));
        assert_eq!(found(&[job(1), python.clone()], None, &[9]), None);
        let shell = process(3, "/bin/bash", &["bash"]);
        assert_eq!(found(&[shell.clone(), python.clone()], None, &[]), None);
        assert_eq!(found(&[shell], None, &[3]), Some(3));
        assert_eq!(found(&[], None, &[]), None);
        // The pid in the event counts only above the hook.
        assert_eq!(found(&[job(1), python.clone()], Some(1), &[]), Some(1));
        assert_eq!(found(&[job(1), python.clone()], Some(9), &[]), Some(9));
        assert_eq!(found(&[job(1), python], Some(5), &[1]), None);
    }

    #[test]
    fn a_part_of_a_shell_stands_for_the_shell() {
        let script = process(2, "/bin/bash", &["bash", "x.sh"]);
        let part = Ancestor {
            forked: true,
            ..process(1, "/bin/bash", &["bash", "x.sh"])
        };
        assert_eq!(found(&[part.clone(), script], None, &[]), Some(2));
        let typed = process(2, "/bin/bash", &["bash"]);
        assert_eq!(found(&[part.clone(), typed.clone()], None, &[]), None);
        assert_eq!(found(&[part.clone(), typed], None, &[2]), Some(2));
        // A subshell that outlived its shell shows nothing about its new parent.
        let server = process(2, "/usr/bin/node", &["node", "server.js"]);
        assert_eq!(found(&[part.clone(), server.clone()], None, &[]), None);
        assert_eq!(found(&[part, server], None, &[2]), Some(2));
        // A worker forked from a program is a separate process.
        let worker = Ancestor {
            forked: true,
            ..process(1, "/usr/bin/python3", &["python3", "x.py"])
        };
        let pool = process(2, "/usr/bin/python3", &["python3", "x.py"]);
        assert_eq!(found(&[worker, pool], None, &[]), Some(1));
    }

    #[test]
    fn what_only_runs_jobs_is_none_of_them() {
        let hook = process(1, "/bin/sh", &["sh", "-c", "tenure hook generic"]);
        for (exe, argv) in [
            ("/usr/bin/make", ["make", "-j4"]),
            ("/usr/bin/ninja", ["ninja", "all"]),
            ("/usr/local/bin/tenure", ["tenure", "lock"]),
            ("/usr/bin/coreutils", ["timeout", "60"]),
        ] {
            let starter = process(2, exe, &argv);
            assert_eq!(found(&[hook.clone(), starter], None, &[]), None, "{exe}");
        }
    }
}
