//! The coding agents as processes and as owners of transcripts: core's half of each agent's row.
//!
//! The appearance of a process decides what it is, never whether it is alive. A transcript rule decides which
//! file belongs to a conversation. Both decide identity, so they are here. Events, settings and command lines
//! are the other half, in the agents crate; its tests require that every row has both halves or states why not.

pub(crate) mod command_lines;
mod rows;

use crate::id::AgentName;
use crate::process::ProcessAppearance;
use crate::session::{Doing, Start};
use crate::start::{self, CommandLine};

/// Core's half of one agent's row.
#[derive(Debug)]
pub struct AgentSpec {
    pub name: &'static str,
    /// Names of its executable, or of its script if an interpreter runs it.
    pub executables: &'static [&'static str],
    /// The folders directly above its executable, if the file is named after its version: `claude/versions` for
    /// `…/claude/versions/2.1.325`.
    pub version_folders: &'static [&'static str],
    /// Endings of its script's path, if the script's own name is too generic.
    pub scripts: &'static [&'static str],
    /// Titles that it writes over its whole command line, if an interpreter runs it.
    pub titles: &'static [&'static str],
    /// Arguments that start a process as a fork of a conversation, if the fork's start event may still name its
    /// parent's conversation. A fork that starts under its own id needs none.
    pub fork_arguments: &'static [&'static str],
    /// The variable in which it passes the conversation's id to its tools.
    pub id_variable: Option<&'static str>,
    /// Whether one process of it hosts several conversations.
    pub hosts: bool,
    /// Words that start a process that hosts several conversations.
    pub host_arguments: &'static [&'static str],
    /// Consecutive words that start its executable as something else: a sandbox, a command that supervises a
    /// daemon.
    pub helpers: &'static [&'static [&'static str]],
    /// Its daemon, if its windows may leave their conversations to one.
    pub daemon: Option<DaemonSpec>,
    /// First arguments with which its executable is not a working agent: a viewer of another process's session,
    /// a service, a command that exits by itself.
    pub other_verbs: &'static [&'static str],
    /// Words that start it as a spare process that waits for work. It becomes the agent once it gets some, and
    /// its arguments stay the same, so only its own registry shows the difference.
    pub spares: &'static [&'static str],
    /// The file in which it keeps a conversation; none if it keeps no files.
    pub transcripts: Option<TranscriptLayout>,
    /// How ids and files of its subagents differ from those of sessions.
    pub subagents: Option<Mark>,
    /// What it can stop doing without sending an event.
    pub silent_ends: &'static [Doing],
    /// How its command line is read.
    pub command_line: CommandLine,
    /// Whether it has a command to resume a conversation.
    pub resumes: bool,
    /// End reasons that it also gives for a hang-up and a signal.
    pub unclear_ends: &'static [&'static str],
    /// Whether it gives the reason of a normal exit for a signal too.
    pub ends_alike: bool,
    /// Whether it announces its exit instead of reporting its end.
    pub announces: bool,
    /// What its processes leave behind unless they exit by themselves.
    pub traces: Option<Traces>,
}

/// A directory that each process of an agent has for itself and removes when it exits by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traces {
    /// Where the directories are, in the agent's own directory.
    pub folder: &'static str,
    /// The file in it that the process holds locked.
    pub lock: &'static str,
    /// A link in it to the program that runs.
    pub link: &'static str,
    /// Where the daemon's program is, in the agent's own directory.
    pub daemon: &'static str,
}

/// An agent's daemon. It runs conversations and their hooks, and outlives the windows that people see.
///
/// Each window listens on its own port for the conversations that it opened, and the daemon reports the port of
/// a conversation. The process that listens there is the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaemonSpec {
    /// The flag that it is started with.
    pub flag: &'static str,
    /// The variable that overrides the agent's own directory.
    pub variable: &'static str,
    /// The agent's own directory below the home directory.
    pub home: &'static str,
    /// The daemon's socket in it: JSON-RPC over WebSocket.
    pub socket: &'static str,
    /// The method that returns the state of a conversation, and whether it is loaded.
    pub state: &'static str,
    /// The method that lists the servers of a conversation.
    pub method: &'static str,
    /// The server that is the window.
    pub server: &'static str,
}

/// What a process with an agent's executable or script is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The agent, as started by a person or a program.
    Agent,
    /// The agent's daemon: not an agent itself, but conversations run below it.
    Daemon,
    /// Neither.
    Helper,
}

/// Where an agent keeps its transcripts, and how they are named.
///
/// In a name, ID stands for the conversation's id, ID8 for its first eight characters, TIME for anything, and
/// DIR for the session's directory with a dash for every character that is neither a letter nor a digit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TranscriptLayout {
    /// The variable that overrides the agent's own directory.
    pub variable: Option<&'static str>,
    /// The agent's own directory below the home directory.
    pub home: &'static str,
    /// The directory of transcripts in it.
    pub folder: &'static str,
    /// How many folders deep the files may be.
    pub depth: usize,
    /// A file's name without its ending.
    pub name: &'static str,
    /// Where the file of a new conversation will be, if that is known.
    pub new_file: Option<&'static str>,
    /// Whether the agent does not find a conversation whose file is empty.
    pub empty_is_absent: bool,
}

impl TranscriptLayout {
    /// The agent's own directory, by the path of a transcript in it.
    pub fn home_of(&self, transcript: &str) -> Option<String> {
        let folder = format!("/{}/", self.folder);
        let (home, _) = transcript.rsplit_once(&folder)?;
        Some(home.to_owned())
    }
}

/// How a name shows that it belongs to a subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Begins(&'static str),
    Contains(&'static str),
}

impl Mark {
    pub(crate) fn is_in(self, name: &str) -> bool {
        match self {
            Mark::Begins(mark) => name.starts_with(mark),
            Mark::Contains(mark) => name.contains(mark),
        }
    }
}

pub use rows::AGENTS;

/// The agent of a person's shell.
pub const HUMAN: &str = "human";

/// Programs whose script counts as the executable.
const INTERPRETERS: &[&str] = &[
    "node", "nodejs", "bun", "deno", "python", "ruby", "perl", "sh", "bash", "dash", "zsh",
];

/// Processors in the name of a program that was built for one target.
const ARCHITECTURES: &[&str] = &["x86_64", "aarch64"];

/// Possible endings of an agent's script.
const SCRIPT_ENDINGS: &[&str] = &[".js", ".mjs", ".cjs"];

/// Programs that read commands from a person.
const SHELLS: &[&str] = &[
    "bash", "zsh", "fish", "sh", "dash", "ksh", "nu", "tcsh", "csh", "elvish", "xonsh", "pwsh",
];

/// The agent of a process, if it is one. Its daemon and its helpers are not.
pub fn recognise(looks: &ProcessAppearance) -> Option<&'static AgentSpec> {
    let (spec, role) = role_of(looks)?;
    (role == Role::Agent).then_some(spec)
}

/// The agent whose conversations run below a process: the agent itself, or its daemon.
pub fn agent_of(looks: &ProcessAppearance) -> Option<&'static AgentSpec> {
    let (spec, role) = role_of(looks)?;
    (role != Role::Helper).then_some(spec)
}

/// The agent whose daemon a process is.
pub fn daemon_of(looks: &ProcessAppearance) -> Option<&'static AgentSpec> {
    let (spec, role) = role_of(looks)?;
    (role == Role::Daemon).then_some(spec)
}

/// The name of the agent that has this daemon.
pub fn whose_daemon(daemon: &DaemonSpec) -> Option<&'static str> {
    let has_it = |spec: &&AgentSpec| spec.daemon.as_ref() == Some(daemon);
    AGENTS.iter().find(has_it).map(|spec| spec.name)
}

/// Which agent's executable or script a process runs, and in which role.
///
/// The file decides: its name, or its version and the folders directly above it. A folder further up, `argv[0]`
/// and the command name alone decide nothing, unless a title replaced all arguments of an interpreter.
pub fn role_of(looks: &ProcessAppearance) -> Option<(&'static AgentSpec, Role)> {
    if !is_interpreter(base(&looks.exe)) {
        let spec = spec_of_executable(&looks.exe)?;
        return Some((spec, started_as(spec, looks)));
    }
    if let Some(spec) = titled(looks) {
        return Some((spec, Role::Agent));
    }
    let script = script_of(looks)?;
    let name = plain_name(base(script));
    let stem = SCRIPT_ENDINGS
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
        .unwrap_or(name);
    let spec = AGENTS.iter().find(|spec| {
        spec.executables.contains(&name)
            || spec.executables.contains(&stem)
            || spec.scripts.iter().any(|ending| script.ends_with(ending))
    })?;
    Some((spec, started_as(spec, looks)))
}

fn titled(looks: &ProcessAppearance) -> Option<&'static AgentSpec> {
    let (title, rest) = looks.argv.split_first()?;
    let has_it = |spec: &&AgentSpec| spec.titles.contains(&title.as_str());
    let spec = AGENTS.iter().find(has_it)?;
    rest.iter().all(String::is_empty).then_some(spec)
}

/// Whether a process with this executable can be an agent at all. If not, nothing else about it is read.
pub fn may_be_agent(exe: &str) -> bool {
    is_interpreter(base(exe)) || spec_of_executable(exe).is_some()
}

/// The agent whose program this file is, in one of the layouts in which it is installed.
fn spec_of_executable(exe: &str) -> Option<&'static AgentSpec> {
    let name = base(exe);
    if is_version(name) {
        let folder = exe.rsplit_once('/').map_or("", |(folder, _)| folder);
        let is_in = |last: &&str| folder.ends_with(&format!("/{last}"));
        let mut all = AGENTS.iter();
        return all.find(|spec| spec.version_folders.iter().any(is_in));
    }
    let plain = plain_name(name);
    AGENTS.iter().find(|spec| spec.executables.contains(&plain))
}

/// Whether a file is named after a version, such as `2.1.325` or `2.2.0-beta.1`.
fn is_version(name: &str) -> bool {
    let number = name.split(['-', '+']).next().unwrap_or(name);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    number.contains('.') && number.split('.').all(is_number)
}

/// The row of an agent, if it has one.
pub fn spec_of(name: &AgentName) -> Option<&'static AgentSpec> {
    AGENTS.iter().find(|spec| spec.name == name.as_str())
}

/// What an agent can stop doing without sending an event.
pub fn silent_ends(name: &AgentName) -> &'static [Doing] {
    spec_of(name).map_or(&[], |spec| spec.silent_ends)
}

/// The role in which a process of this agent was started. A wrapper passes its words on, so it has the role of
/// what it starts.
fn started_as(spec: &AgentSpec, looks: &ProcessAppearance) -> Role {
    let words: Vec<&str> = looks.argv.iter().map(|word| base(word)).collect();
    let says = |helper: &&[&str]| words.windows(helper.len()).any(|part| part == *helper);
    if spec.helpers.iter().any(says) || has_other_verb(spec, looks) {
        return Role::Helper;
    }
    let is_daemon = |daemon: &DaemonSpec| words.contains(&daemon.flag);
    if spec.daemon.as_ref().is_some_and(is_daemon) {
        Role::Daemon
    } else {
        Role::Agent
    }
}

/// Its first argument shows that it is not a working agent. After a flag, the same word is a prompt.
fn has_other_verb(spec: &AgentSpec, looks: &ProcessAppearance) -> bool {
    let verb = looks.argv.get(1);
    verb.is_some_and(|verb| spec.other_verbs.contains(&verb.as_str()))
}

/// Whether a process of this agent was started as a spare, and may still be one.
pub fn is_spare(spec: &AgentSpec, looks: &ProcessAppearance) -> bool {
    let word = looks.argv.get(1);
    word.is_some_and(|word| spec.spares.contains(&word.as_str()))
}

/// Whether a process of this agent hosts several conversations. A verb is among the first words, a flag can be
/// anywhere.
pub fn hosts(spec: &AgentSpec, looks: &ProcessAppearance) -> bool {
    let says = |(at, word): (usize, &String)| {
        (at < 3 || word.starts_with("--")) && spec.host_arguments.contains(&word.as_str())
    };
    spec.hosts || looks.argv.iter().skip(1).enumerate().any(says)
}

/// Whether the process was started as a fork of a conversation.
pub fn started_as_fork(spec: &AgentSpec, looks: &ProcessAppearance) -> bool {
    looks
        .argv
        .iter()
        .skip(1)
        .any(|argument| spec.fork_arguments.contains(&argument.as_str()))
}

/// How a process of this agent was started; none if it does not look like one.
pub fn started(name: &AgentName, looks: &ProcessAppearance) -> Option<Start> {
    let spec = recognise(looks).filter(|spec| spec.name == name.as_str())?;
    let first = if is_interpreter(base(&looks.exe)) {
        script_at(looks)? + 1
    } else {
        1
    };
    let arguments = looks.argv.get(first..).unwrap_or_default();
    Some(start::read(&spec.command_line, arguments))
}

/// Whether the process is an interactive shell.
pub fn is_shell(looks: &ProcessAppearance) -> bool {
    is_shell_name(base(&looks.exe))
}

/// Whether a program of this name is a shell.
pub fn is_shell_name(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// A name for a program that is not a known agent: its script's or its executable's.
pub fn name_from_looks(looks: &ProcessAppearance) -> AgentName {
    let program = base(&looks.exe);
    let named = if is_interpreter(program) {
        script_of(looks).map_or(program, base)
    } else {
        program
    };
    let stem = named.rsplit_once('.').map_or(named, |(stem, _)| stem);
    let plain: String = stem
        .chars()
        .map(|c| c.to_ascii_lowercase())
        .filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-' || *c == '_')
        .skip_while(|c| !c.is_ascii_lowercase())
        .take(32)
        .collect();
    AgentName::parse(&plain).unwrap_or_else(|_| AgentName::known("program"))
}

/// The name of a program, without the directories above it.
pub fn base(path: &str) -> &str {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    path.rsplit('/').next().unwrap_or(path)
}

/// The name of a program without what its packaging adds: `codex` for `codex-x86_64-unknown-linux-musl`, and
/// `claude` for `.claude-wrapped`, where nix puts the program behind a wrapper.
fn plain_name(name: &str) -> &str {
    let inner = name.trim_end_matches('_').strip_suffix("-wrapped");
    let inner = inner.and_then(|inner| inner.strip_prefix('.'));
    let name = inner.unwrap_or(name);
    let Some((plain, rest)) = name.split_once('-') else {
        return name;
    };
    let is_system = |rest: &str| rest.starts_with('-') && rest[1..].contains('-');
    let mut all = ARCHITECTURES.iter();
    let is_target = all.any(|cpu| rest.strip_prefix(cpu).is_some_and(is_system));
    if is_target { plain } else { name }
}

/// `python3.11`, `node20` and `node-22` are interpreters too.
fn is_interpreter(program: &str) -> bool {
    let name = plain_name(program);
    let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let unversioned = if unversioned.len() < name.len() {
        let dashed = unversioned.strip_suffix("-v");
        dashed
            .or(unversioned.strip_suffix('-'))
            .unwrap_or(unversioned)
    } else {
        name
    };
    INTERPRETERS.contains(&unversioned)
}

/// The first argument that is not a flag. Interpreter flags that take their value as a separate word (`-c`,
/// `-e`) mean that there is no script.
fn script_at(looks: &ProcessAppearance) -> Option<usize> {
    for (at, argument) in looks.argv.iter().enumerate().skip(1) {
        match argument.as_str() {
            "-c" | "-e" | "-m" | "-p" | "--eval" | "--print" => return None,
            "run" => {}
            flag if flag.starts_with('-') => {}
            _ => return Some(at),
        }
    }
    None
}

fn script_of(looks: &ProcessAppearance) -> Option<&str> {
    script_at(looks).map(|at| looks.argv[at].as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(exe: &str, argv: &[&str]) -> ProcessAppearance {
        ProcessAppearance {
            exe: exe.into(),
            argv: argv.iter().map(|a| (*a).to_owned()).collect(),
            comm: String::new(),
        }
    }

    fn name_of(exe: &str, argv: &[&str]) -> Option<&'static str> {
        recognise(&looks(exe, argv)).map(|spec| spec.name)
    }

    #[test]
    fn agents_are_known_by_their_executable() {
        assert_eq!(
            name_of("/opt/opencode-ai/bin/opencode.exe", &["opencode"]),
            Some("opencode")
        );
        assert_eq!(
            name_of("/opt/claude-code/bin/claude.exe", &["claude"]),
            Some("claude")
        );
        assert_eq!(
            name_of("/usr/bin/claude (deleted)", &["claude"]),
            Some("claude")
        );
        assert_eq!(name_of("/usr/bin/vim", &["claude", "claude"]), None);
    }

    #[test]
    fn agents_are_known_in_every_layout_in_which_they_are_installed() {
        for (exe, argv0, name) in [
            (
                "/h/.local/share/claude/versions/2.1.325",
                "claude",
                "claude",
            ),
            (
                "/h/.local/share/claude/versions/2.1.325 (deleted)",
                "/x",
                "claude",
            ),
            ("/h/share/claude/versions/2.2.0-beta.1", "claude", "claude"),
            ("/opt/codex-x86_64-unknown-linux-musl", "codex", "codex"),
            ("/opt/codex-aarch64-apple-darwin", "codex", "codex"),
            ("/nix/store/x/bin/.claude-wrapped", "claude", "claude"),
            (
                "/nix/store/x/bin/.opencode-wrapped_",
                "opencode",
                "opencode",
            ),
        ] {
            assert_eq!(name_of(exe, &[argv0]), Some(name), "{exe}");
            assert!(may_be_agent(exe), "{exe}");
        }
        for node in [
            "node-22",
            "node22",
            "node-v22.1.0",
            "nodejs",
            ".node-wrapped",
        ] {
            let exe = format!("/usr/bin/{node}");
            let script = ["node", "/nix/store/x/bin/.gemini-wrapped"];
            assert_eq!(name_of(&exe, &script), Some("gemini"), "{node}");
            assert!(may_be_agent(&exe), "{node}");
        }
    }

    #[test]
    fn a_folder_with_the_name_of_an_agent_makes_no_agent() {
        for exe in [
            "/h/codex/bin/rg",
            "/h/codex/0.166.0",
            "/h/claude/versions/2.1.325/bin/rg",
            "/h/claude/versions/backup",
            "/h/myclaude/versions/2.1.325",
            "/h/versions/2.1.325",
            "/h/codex-helper",
            "/h/codex-x86_64",
            "/h/codex-linux-sandbox",
            "/h/.claude",
            "/h/claude-wrapped",
        ] {
            assert_eq!(name_of(exe, &["claude"]), None, "{exe}");
            assert!(!may_be_agent(exe), "{exe}");
        }
        assert_eq!(name_of("/usr/bin/node-gyp", &["node", "/x/codex.js"]), None);
        assert_eq!(
            name_of("/usr/bin/node", &["node", "/codex/server.js"]),
            None
        );
    }

    #[test]
    fn behind_an_interpreter_the_script_counts() {
        assert_eq!(
            name_of(
                "/usr/bin/node",
                &["node", "--max-old-space-size=4096", "/usr/bin/gemini"]
            ),
            Some("gemini")
        );
        assert_eq!(
            name_of(
                "/usr/bin/node",
                &["node", "/x/@google/gemini-cli/dist/index.js"]
            ),
            Some("gemini")
        );
        assert_eq!(
            name_of("/usr/bin/python3.11", &["python3", "/x/notes.py", "claude"]),
            None
        );
        assert_eq!(name_of("/bin/bash", &["bash", "-c", "claude"]), None);
        assert_eq!(name_of("/bin/bash", &["bash"]), None);
    }

    #[test]
    fn a_sandbox_that_is_the_agents_own_executable_is_no_agent() {
        let exe = "/opt/codex/bin/codex";
        assert_eq!(name_of(exe, &["codex", "exec", "hello"]), Some("codex"));
        let sandbox = ["codex-linux-sandbox", "--command-cwd", "/w", "--", "sh"];
        assert_eq!(name_of(exe, &sandbox), None);
    }

    /// As Claude Code 2.1.325 runs them for `claude --bg`, `claude attach` and `claude agents`.
    #[test]
    fn of_claudes_background_service_only_the_sessions_are_agents() {
        let exe = "/usr/lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe";
        let host = ["claude bg-pty-host", "--bg-pty-host", "/t/p.sock", "200"];
        assert_eq!(name_of(exe, &host), None);
        assert_eq!(name_of(exe, &[exe, "daemon", "run", "--origin"]), None);
        assert_eq!(name_of(exe, &["claude", "attach", "e76ac0d2"]), None);
        assert_eq!(name_of(exe, &["claude", "agents"]), None);
        for session in [
            &[exe, "--session-id", "e76ac0d2-dbb9-456a-86d4-c254d00a468b"][..],
            &[exe, "--resume", "/h/e76ac0d2-dbb9.jsonl"],
            &["claude", "-p", "agents"],
            &["claude"],
        ] {
            assert_eq!(name_of(exe, session), Some("claude"), "{session:?}");
        }
    }

    #[test]
    fn a_spare_may_have_become_a_session() {
        let exe = "/opt/claude-code/bin/claude.exe";
        let spare = looks(exe, &["claude bg-spare", "--bg-spare", "/t/c.sock"]);
        let claude = recognise(&spare).unwrap();
        assert_eq!(claude.name, "claude");
        assert!(is_spare(claude, &spare));
        assert!(!is_spare(claude, &looks(exe, &["claude", "hello"])));
    }

    #[test]
    fn copilot_is_known_by_its_executable_and_its_loader() {
        let exe = "/usr/lib/node_modules/@github/copilot-linux-x64/copilot";
        assert_eq!(name_of(exe, &[exe, "-p", "hello"]), Some("copilot"));
        for script in [
            "/usr/lib/node_modules/.bin/copilot",
            "/x/@github/copilot/index.js",
        ] {
            let seen = name_of("/usr/bin/node", &["node", script, "-p"]);
            assert_eq!(seen, Some("copilot"), "{script}");
        }
    }

    #[test]
    fn a_daemon_and_what_looks_after_it_are_no_agents() {
        let exe = "/h/.codex/packages/app-server-daemon/releases/0.166.0/bin/codex";
        let daemon = [
            exe,
            "app-server",
            "--listen",
            "unix://",
            "--analytics-default-enabled",
            "--managed-daemon",
        ];
        let role = |argv: &[&str]| role_of(&looks(exe, argv)).map(|(_, role)| role);
        assert_eq!(name_of(exe, &daemon), None);
        assert_eq!(role(&daemon), Some(Role::Daemon));
        assert_eq!(agent_of(&looks(exe, &daemon)).unwrap().name, "codex");
        // The decisive word comes after two others.
        let update_loop = [exe, "app-server", "daemon", "pid-update-loop"];
        assert_eq!(name_of(exe, &update_loop), None);
        assert_eq!(role(&update_loop), Some(Role::Helper));
        assert!(agent_of(&looks(exe, &update_loop)).is_none());
        for command in ["start", "stop", "restart"] {
            let argv = [exe, "app-server", "daemon", command];
            assert_eq!(role(&argv), Some(Role::Helper), "{command}");
            let wrapper = ["node", "/usr/bin/codex", "app-server", "daemon", command];
            assert_eq!(name_of("/usr/bin/node", &wrapper), None, "{command}");
        }
        // An editor's own server is an agent, and so is a person who asks about daemons.
        assert_eq!(role(&[exe, "app-server"]), Some(Role::Agent));
        assert_eq!(
            role(&[exe, "what does the app-server daemon do"]),
            Some(Role::Agent)
        );
        assert_eq!(role(&[exe, "resume", "01a1e175"]), Some(Role::Agent));
    }

    #[test]
    fn a_server_hosts_and_a_person_s_program_does_not() {
        let codex = spec_of(&AgentName::known("codex")).unwrap();
        for flags in [&["--managed-daemon"][..], &[]] {
            let words = [&["codex", "app-server"], flags].concat();
            assert!(hosts(codex, &looks("codex", &words)), "{flags:?}");
        }
        assert!(!hosts(
            codex,
            &looks("codex", &["codex", "exec", "-", "hi"])
        ));
    }

    #[test]
    fn a_flag_that_makes_a_host_counts_wherever_it_stands() {
        let script = "/x/@qwen-code/qwen-code/cli.js";
        let child = ["node", "--expose-gc", script, "-m", "x", "--acp"];
        let seen = looks("/usr/bin/node", &child);
        let qwen = recognise(&seen).unwrap();
        assert_eq!(qwen.name, "qwen");
        assert!(hosts(qwen, &seen));
        let alone = looks("/usr/bin/node", &["node", "/usr/bin/qwen", "-y"]);
        assert_eq!(recognise(&alone).unwrap().name, "qwen");
        assert!(!hosts(qwen, &alone));
    }

    #[test]
    fn a_fork_is_known_by_its_argument() {
        let claude = spec_of(&AgentName::known("claude")).unwrap();
        assert!(started_as_fork(
            claude,
            &looks("claude", &["claude", "--resume", "x", "--fork-session"])
        ));
        assert!(!started_as_fork(
            claude,
            &looks("claude", &["claude", "--resume", "x"])
        ));
        // These start under their own id, which must not be taken for the parent's.
        for (name, flag) in [("qwen", "--fork-session"), ("opencode", "--fork")] {
            let spec = spec_of(&AgentName::known(name)).unwrap();
            let seen = looks(name, &[name, "--resume", "x", flag]);
            assert!(!started_as_fork(spec, &seen), "{name}");
        }
    }

    #[test]
    fn what_starts_an_agent_is_read_behind_its_interpreter() {
        let start = |name: &'static str, exe: &str, argv: &[&str]| {
            started(&AgentName::known(name), &looks(exe, argv))
        };
        let script = "/x/@google/gemini-cli/bundle/gemini.js";
        let node = [
            "node",
            "--max-old-space-size=4096",
            script,
            "-p",
            "hi",
            "-y",
        ];
        let found = start("gemini", "/usr/bin/node", &node).unwrap();
        assert!(found.headless);
        assert_eq!(found.flags, ["-y"]);
        let found = start("claude", "/opt/claude", &["claude", "--model", "opus"]).unwrap();
        assert!(!found.headless);
        assert_eq!(found.flags, ["--model", "opus"]);
        // A process that registered as an agent but is another program was started in no known way.
        assert_eq!(start("claude", "/usr/bin/vim", &["vim", "-p"]), None);
        assert_eq!(start("claude", "/opt/codex", &["codex", "exec"]), None);
    }

    #[test]
    fn a_script_in_another_language_is_not_the_agent() {
        let seen =
            |program: &str, script: &str| recognise(&looks(program, &[program, script])).is_some();
        assert!(seen("/usr/bin/node", "/x/qwen.js"));
        assert!(!seen("/usr/bin/python3", "/x/qwen.py"));
        assert!(!seen("/bin/bash", "/x/claude.sh"));
    }
}
