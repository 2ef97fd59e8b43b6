//! How an agent's process was started, read from its command line: for a person or for one turn, and with which
//! flags that a resume must repeat.
//!
//! A word is a flag only where the agent itself would read one: what another flag takes, and what stands behind
//! `--`, is skipped. So every flag of an agent that takes a word stands in its table, kept or not. A flag that is not
//! in the table is never repeated, and neither is a prompt, a conversation's id, or a value that looks like a
//! secret. *Older version*: a flag that a later agent adds is not repeated until it has a row.

use crate::session::Start;

/// How an agent's command line is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandLine {
    /// First words that start it for one turn.
    pub verbs: &'static [&'static str],
    /// Flags that do.
    pub single: &'static [&'static str],
    /// Whether a bare prompt does.
    pub prompt: bool,
    /// Flags with which a person sits there nevertheless.
    pub attended: &'static [&'static str],
    pub flags: &'static [Flag],
}

/// A flag of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flag {
    /// Every spelling of it.
    pub names: &'static [&'static str],
    pub takes: Takes,
    pub kept: Kept,
}

/// What follows a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    Word,
    /// A word, unless another flag follows.
    MaybeWord,
    /// Every word up to the next flag.
    Words,
}

/// Whether a resume repeats a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    No,
    Yes,
    /// Unless its value looks like a secret.
    UnlessSecret,
}

const fn flag(names: &'static [&'static str], takes: Takes, kept: Kept) -> Flag {
    Flag { names, takes, kept }
}

use Kept::{No, UnlessSecret, Yes};
use Takes::{MaybeWord, Nothing, Word, Words};

/// An agent of whose command line nothing is known.
pub const PLAIN: CommandLine = CommandLine {
    verbs: &[],
    single: &[],
    prompt: false,
    attended: &[],
    flags: &[],
};

pub const CLAUDE: CommandLine = CommandLine {
    single: &["-p", "--print"],
    flags: &[
        flag(&["--permission-mode"], Word, Yes),
        flag(&["--allowedTools", "--allowed-tools"], Words, Yes),
        flag(&["--disallowedTools", "--disallowed-tools"], Words, Yes),
        flag(&["--tools"], Words, Yes),
        flag(&["--model"], Word, Yes),
        flag(&["--fallback-model"], Word, Yes),
        flag(&["--effort"], Word, Yes),
        flag(&["--agent"], Word, Yes),
        flag(&["--add-dir"], Words, Yes),
        flag(&["--mcp-config"], Words, UnlessSecret),
        flag(&["--strict-mcp-config"], Nothing, Yes),
        flag(&["--settings"], Word, UnlessSecret),
        flag(&["--setting-sources"], Word, Yes),
        flag(&["--plugin-dir"], Word, Yes),
        flag(&["--plugin-url"], Word, UnlessSecret),
        flag(&["--restricted"], Nothing, Yes),
        flag(&["--dangerously-skip-permissions"], Nothing, Yes),
        flag(&["--allow-dangerously-skip-permissions"], Nothing, Yes),
        flag(&["--agents"], Word, No),
        flag(&["--append-system-prompt"], Word, No),
        flag(&["--append-system-prompt-file"], Word, No),
        flag(&["--autocompact"], Word, No),
        flag(&["--betas"], Words, No),
        flag(&["--cloud"], MaybeWord, No),
        flag(&["-d", "--debug"], MaybeWord, No),
        flag(&["--debug-file"], Word, No),
        flag(&["--environment"], Word, No),
        flag(&["--file"], Words, No),
        flag(&["--from-pr"], MaybeWord, No),
        flag(&["--input-format"], Word, No),
        flag(&["--json-schema"], Word, No),
        flag(&["--max-budget-usd"], Word, No),
        flag(&["--max-turns"], Word, No),
        flag(&["-n", "--name"], Word, No),
        flag(&["--output-format"], Word, No),
        flag(&["--permission-prompt-tool"], Word, No),
        flag(&["--permission-prompts"], Word, No),
        flag(&["--remote-control"], MaybeWord, No),
        flag(&["--remote-control-session-name-prefix"], Word, No),
        flag(&["-r", "--resume"], MaybeWord, No),
        flag(&["--session-id"], Word, No),
        flag(&["--system-prompt"], Word, No),
        flag(&["--system-prompt-file"], Word, No),
        flag(&["--system-prompt-snapshot"], Word, No),
        flag(&["--teleport"], MaybeWord, No),
        flag(&["-w", "--worktree"], MaybeWord, No),
    ],
    ..PLAIN
};

pub const CODEX: CommandLine = CommandLine {
    verbs: &["exec", "e", "review"],
    flags: &[
        flag(&["-m", "--model"], Word, Yes),
        flag(&["-s", "--sandbox"], Word, Yes),
        flag(&["-a", "--ask-for-approval"], Word, Yes),
        flag(&["-p", "--profile"], Word, Yes),
        flag(&["-c", "--config"], Word, UnlessSecret),
        flag(&["--enable"], Word, Yes),
        flag(&["--disable"], Word, Yes),
        flag(&["--add-dir"], Word, Yes),
        flag(&["--oss"], Nothing, Yes),
        flag(&["--local-provider"], Word, Yes),
        flag(&["--search"], Nothing, Yes),
        flag(&["--approve-for-me"], Nothing, Yes),
        flag(&["--full-auto"], Nothing, Yes),
        flag(
            &["--dangerously-bypass-approvals-and-sandbox", "--yolo"],
            Nothing,
            Yes,
        ),
        flag(&["--dangerously-bypass-hook-trust"], Nothing, Yes),
        flag(&["-i", "--image"], Words, No),
        flag(&["-C", "--cd"], Word, No),
        flag(&["--remote"], Word, No),
        flag(&["--remote-auth-token-env"], Word, No),
        flag(&["--thread-source"], Word, No),
        flag(&["--cyber-access-program"], Word, No),
        flag(&["--output-schema"], Word, No),
        flag(&["--color"], Word, No),
        flag(&["-o", "--output-last-message"], Word, No),
    ],
    ..PLAIN
};

pub const GEMINI: CommandLine = CommandLine {
    single: &["-p", "--prompt"],
    attended: &["-i", "--prompt-interactive"],
    flags: &[
        flag(&["-m", "--model"], Word, Yes),
        flag(&["--approval-mode"], Word, Yes),
        flag(&["-y", "--yolo"], Nothing, Yes),
        flag(&["-s", "--sandbox"], Nothing, Yes),
        flag(&["--skip-trust"], Nothing, Yes),
        flag(&["--policy"], Words, Yes),
        flag(&["--allowed-mcp-server-names"], Words, Yes),
        flag(&["--allowed-tools"], Words, Yes),
        flag(&["-e", "--extensions"], Words, Yes),
        flag(&["--include-directories"], Words, Yes),
        flag(&["--admin-policy"], Words, No),
        flag(&["-p", "--prompt"], Word, No),
        flag(&["-i", "--prompt-interactive"], Word, No),
        flag(&["-w", "--worktree"], MaybeWord, No),
        flag(&["-r", "--resume"], MaybeWord, No),
        flag(&["--session-file"], Word, No),
        flag(&["--session-id"], Word, No),
        flag(&["--delete-session"], Word, No),
        flag(&["-o", "--output-format"], Word, No),
    ],
    ..PLAIN
};

pub const OPENCODE: CommandLine = CommandLine {
    verbs: &["run"],
    attended: &["-i", "--interactive"],
    flags: &[
        flag(&["-m", "--model"], Word, Yes),
        flag(&["--agent"], Word, Yes),
        flag(&["--auto"], Nothing, Yes),
        flag(&["--log-level"], Word, No),
        flag(&["--port"], Word, No),
        flag(&["--hostname"], Word, No),
        flag(&["--mdns-domain"], Word, No),
        flag(&["--cors"], Words, No),
        flag(&["-s", "--session"], Word, No),
        flag(&["--prompt"], Word, No),
        flag(&["--replay-limit"], Word, No),
        flag(&["--command"], Word, No),
        flag(&["--format"], Word, No),
        flag(&["-f", "--file"], Words, No),
        flag(&["--title"], Word, No),
        flag(&["--attach"], Word, No),
        flag(&["-p", "--password"], Word, No),
        flag(&["-u", "--username"], Word, No),
        flag(&["--dir"], Word, No),
        flag(&["--variant"], Word, No),
    ],
    ..PLAIN
};

pub const QWEN: CommandLine = CommandLine {
    single: &["-p", "--prompt"],
    prompt: true,
    attended: &["-i", "--prompt-interactive"],
    flags: &[
        flag(&["-m", "--model"], Word, Yes),
        flag(&["--fallback-model"], Word, Yes),
        flag(&["--approval-mode"], Word, Yes),
        flag(&["-y", "--yolo"], Nothing, Yes),
        flag(&["-s", "--sandbox"], Nothing, Yes),
        flag(&["--allowed-mcp-server-names"], Words, Yes),
        flag(&["--mcp-config"], Word, UnlessSecret),
        flag(&["--allowed-tools"], Words, Yes),
        flag(&["-e", "--extensions"], Words, Yes),
        flag(&["--include-directories", "--add-dir"], Words, Yes),
        flag(&["--core-tools"], Words, Yes),
        flag(&["--exclude-tools"], Words, Yes),
        flag(&["--auth-type"], Word, Yes),
        flag(&["--openai-base-url"], Word, UnlessSecret),
        flag(&["--openai-api-key"], Word, No),
        flag(&["--openai-logging-dir"], Word, No),
        flag(&["--telemetry-target"], Word, No),
        flag(&["--telemetry-otlp-endpoint"], Word, No),
        flag(&["--telemetry-otlp-protocol"], Word, No),
        flag(&["--telemetry-outfile"], Word, No),
        flag(&["--proxy"], Word, No),
        flag(&["-p", "--prompt"], Word, No),
        flag(&["-i", "--prompt-interactive"], Word, No),
        flag(&["--system-prompt"], Word, No),
        flag(&["--append-system-prompt"], Word, No),
        flag(&["--output-style"], Word, No),
        flag(&["--sandbox-image"], Word, No),
        flag(&["--channel"], Word, No),
        flag(&["--input-format"], Word, No),
        flag(&["-o", "--output-format"], Word, No),
        flag(&["--json-fd"], Word, No),
        flag(&["--json-file"], Word, No),
        flag(&["--json-schema"], Word, No),
        flag(&["--input-file"], Word, No),
        flag(&["-r", "--resume"], MaybeWord, No),
        flag(&["--session-id"], Word, No),
        flag(&["--worktree"], MaybeWord, No),
        flag(&["--max-session-turns"], Word, No),
        flag(&["--max-wall-time"], Word, No),
        flag(&["--max-tool-calls"], Word, No),
        flag(&["--max-subagent-depth"], Word, No),
        flag(&["--disabled-slash-commands"], Words, No),
    ],
    ..PLAIN
};

/// Reads the arguments of an agent's process.
pub fn read(line: &CommandLine, arguments: &[String]) -> Start {
    let mut start = Start::default();
    let mut attended = false;
    let mut bare: Vec<&str> = Vec::new();
    let mut words = arguments.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        if word == "--" {
            bare.extend(words);
            break;
        }
        if !is_flag(word) {
            bare.push(word);
            continue;
        }
        let (name, joined) = split(line, word);
        start.headless |= line.single.contains(&name);
        attended |= line.attended.contains(&name);
        let Some(flag) = line.flags.iter().find(|flag| flag.names.contains(&name)) else {
            continue;
        };
        let mut taken = vec![word];
        if joined.is_none() {
            let most = match flag.takes {
                Takes::Nothing => 0,
                Takes::Word | Takes::MaybeWord => 1,
                Takes::Words => usize::MAX,
            };
            let any = flag.takes == Takes::Word;
            while taken.len() <= most
                && let Some(value) = words.next_if(|next| any || !is_flag(next))
            {
                taken.push(value);
            }
        }
        let secret = || {
            joined
                .into_iter()
                .chain(taken[1..].iter().copied())
                .any(is_secret)
        };
        let kept = match flag.kept {
            Kept::No => false,
            Kept::Yes => true,
            Kept::UnlessSecret => !secret(),
        };
        if kept {
            start.flags.extend(taken.into_iter().map(str::to_owned));
        }
    }
    start.headless |= bare.first().is_some_and(|verb| line.verbs.contains(verb));
    start.headless |= line.prompt && !bare.is_empty();
    start.headless &= !attended;
    start
}

fn is_flag(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// The name of a flag, and what is joined to it: `--model=x`, `-mx`.
fn split<'a>(line: &CommandLine, word: &'a str) -> (&'a str, Option<&'a str>) {
    if let Some((name, value)) = word.split_once('=') {
        return (name, Some(value));
    }
    let takes = |name: &str| {
        let named = line.flags.iter().find(|flag| flag.names.contains(&name));
        named.is_some_and(|flag| flag.takes != Takes::Nothing)
    };
    match word.split_at_checked(2) {
        Some((short, value)) if !word.starts_with("--") && !value.is_empty() && takes(short) => {
            (short, Some(value))
        }
        _ => (word, None),
    }
}

/// Words that stand beside secrets.
const SECRETS: &[&str] = &[
    "key",
    "token",
    "secret",
    "passw",
    "credential",
    "authorization",
    "bearer",
];

/// Whether settings as text, or an address, may hold a secret. The path of a file does not.
fn is_secret(value: &str) -> bool {
    let Some((_, address)) = value.split_once("://") else {
        return value.contains(['{', '=']) && names_secret(value);
    };
    let host = address.split('/').next().unwrap_or(address);
    host.contains('@') || names_secret(value)
}

fn names_secret(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    SECRETS.iter().any(|word| value.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(line: &CommandLine, words: &str) -> Start {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        read(line, &words)
    }

    #[track_caller]
    fn keeps(line: &CommandLine, words: &str, kept: &str) {
        assert_eq!(started(line, words).flags.join(" "), kept, "{words}");
    }

    #[test]
    fn a_turn_without_a_person_is_known_by_its_words() {
        let headless = |line: &CommandLine, words: &str| started(line, words).headless;
        for words in [
            "-p hello",
            "--print",
            "--model opus -p -- hello",
            "hello -p",
        ] {
            assert!(headless(&CLAUDE, words), "{words}");
        }
        for words in [
            "",
            "hello",
            "--resume x",
            "-- -p",
            "--append-system-prompt -p",
        ] {
            assert!(!headless(&CLAUDE, words), "{words}");
        }
        for words in [
            "exec hello",
            "-m o3 exec hi",
            "exec resume id hi",
            "e hi",
            "review",
        ] {
            assert!(headless(&CODEX, words), "{words}");
        }
        // A profile is not a prompt, and a prompt is not a verb.
        for words in ["", "-p exec", "resume id", "please exec", "-- please"] {
            assert!(!headless(&CODEX, words), "{words}");
        }
        assert!(headless(&GEMINI, "-m flash -p hello"));
        assert!(headless(&GEMINI, "--prompt=hello"));
        assert!(!headless(&GEMINI, "hello"));
        assert!(!headless(&GEMINI, "-i hello"));
        assert!(headless(&OPENCODE, "run --format json -- hello"));
        assert!(!headless(&OPENCODE, "run -i hello"));
        assert!(!headless(&OPENCODE, "/w/project --prompt run"));
        assert!(headless(&QWEN, "-y -o stream-json hello"));
        assert!(headless(&QWEN, "-p hello"));
        assert!(!headless(&QWEN, "-y -m x --add-dir a b"));
        assert!(!headless(&QWEN, "-i hello"));
        assert!(!headless(&PLAIN, "-p hello"));
    }

    #[test]
    fn what_a_resume_must_repeat_is_kept_word_by_word() {
        keeps(
            &CLAUDE,
            "--permission-mode plan --allowedTools Bash Edit --model=opus --add-dir ../a ../b -p hello",
            "--permission-mode plan --allowedTools Bash Edit --model=opus --add-dir ../a ../b",
        );
        keeps(
            &CODEX,
            "-m o3 exec -s read-only -c model_reasoning_effort=high --json -a never -pwork hello",
            "-m o3 -s read-only -c model_reasoning_effort=high -a never -pwork",
        );
        keeps(
            &GEMINI,
            "-m flash --approval-mode auto_edit -p x -y",
            "-m flash --approval-mode auto_edit -y",
        );
        keeps(
            &OPENCODE,
            "run -m mock/m --agent build --variant high -- hi",
            "-m mock/m --agent build",
        );
        keeps(
            &QWEN,
            "--approval-mode plan --allowed-tools a b -m q hello",
            "--approval-mode plan --allowed-tools a b -m q",
        );
    }

    #[test]
    fn neither_prompt_nor_id_nor_what_is_unknown_is_kept() {
        keeps(
            &CLAUDE,
            "--resume 7f3c --session-id 7f3c -p hello --verbose --new-flag x",
            "",
        );
        keeps(&CODEX, "exec resume 01a1 hello -C /w -o out", "");
        keeps(&OPENCODE, "--session ses_1 --prompt hello --continue", "");
    }

    #[test]
    fn a_word_that_only_looks_like_a_flag_is_none() {
        let dangerous = "--dangerously-skip-permissions";
        keeps(&CLAUDE, dangerous, dangerous);
        keeps(&CLAUDE, &format!("--append-system-prompt {dangerous}"), "");
        keeps(&CLAUDE, &format!("-p -- {dangerous}"), "");
        keeps(&GEMINI, "-p --yolo", "");
        keeps(&QWEN, "--system-prompt -y", "");
        // A value that is missing takes no flag with it.
        keeps(&CLAUDE, "--resume --model opus", "--model opus");
        keeps(&CLAUDE, "--model", "--model");
    }

    #[test]
    fn secrets_are_not_kept() {
        keeps(&CODEX, "-c model_providers.x.api_key=abc -m o3", "-m o3");
        keeps(&CODEX, "--config=shell.env.GH_TOKEN=abc", "");
        keeps(&CLAUDE, r#"--settings {"env":{"API_KEY":"abc"}}"#, "");
        keeps(
            &CLAUDE,
            r#"--settings {"effort":"high"}"#,
            r#"--settings {"effort":"high"}"#,
        );
        keeps(
            &CLAUDE,
            "--settings /home/keys/settings.json",
            "--settings /home/keys/settings.json",
        );
        keeps(
            &CLAUDE,
            r#"--mcp-config a.json {"headers":{"Authorization":"x"}}"#,
            "",
        );
        keeps(
            &QWEN,
            "--openai-api-key sk-1 --openai-base-url http://me:pw@host/v1",
            "",
        );
        keeps(
            &QWEN,
            "--openai-base-url http://host/v1",
            "--openai-base-url http://host/v1",
        );
    }
}
