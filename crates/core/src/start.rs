//! How an agent's process was started, from its command line: by a person or for one turn, and with which flags
//! that a resume must repeat.
//!
//! A word is a flag only if the agent itself would parse it as one: values of other flags, and everything after
//! `--`, are skipped. So every flag of an agent that takes a value is in its table, whether kept or not. A flag
//! that is not in the table is never repeated, and neither is a prompt, a conversation's id, or a value that
//! may hold a secret. *Older version*: a flag that a later agent adds is not repeated until it has a row.

use crate::session::Start;

/// How to parse an agent's command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandLine {
    /// First words that start it for one turn.
    pub verbs: &'static [&'static str],
    /// Flags that start it for one turn.
    pub single: &'static [&'static str],
    /// Whether a bare prompt starts it for one turn.
    pub prompt: bool,
    /// Flags with which a person is present anyway.
    pub attended: &'static [&'static str],
    pub flags: &'static [Flag],
}

/// A flag of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flag {
    /// Every spelling of it.
    pub names: &'static [&'static str],
    pub takes: Takes,
    pub kept: FlagRepeat,
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
pub enum FlagRepeat {
    No,
    Yes,
    /// If every value is the path of a file, and not its content.
    IfPath,
    /// If its value is an address with neither a user nor a query.
    IfAddress,
    /// If it sets one of these keys, or one below them: `key=value`.
    IfConfigKey(&'static [&'static str]),
}

impl FlagRepeat {
    /// Whether a value may be stored and shown. Only values known to be harmless may.
    fn keeps(self, value: &str) -> bool {
        match self {
            FlagRepeat::No => false,
            FlagRepeat::Yes => true,
            FlagRepeat::IfPath => !value.contains(['{', '"']) && !value.contains("://"),
            FlagRepeat::IfAddress => !value.contains(['@', '?', '#', '{']),
            FlagRepeat::IfConfigKey(known) => {
                let key = value.split(['=', '.']).next().unwrap_or(value);
                known.contains(&key.trim())
            }
        }
    }
}

pub(crate) const fn flag(names: &'static [&'static str], takes: Takes, kept: FlagRepeat) -> Flag {
    Flag { names, takes, kept }
}

/// An agent whose command line is unknown.
pub const PLAIN: CommandLine = CommandLine {
    verbs: &[],
    single: &[],
    prompt: false,
    attended: &[],
    flags: &[],
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
        let mut values = joined.into_iter().chain(taken[1..].iter().copied());
        if values.all(|value| flag.kept.keeps(value)) && flag.kept != FlagRepeat::No {
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

/// The name of a flag, and the value joined to it: `--model=x`, `-mx`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::command_lines::*;

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
        // A missing value does not consume the next flag.
        keeps(&CLAUDE, "--resume --model opus", "--model opus");
        keeps(&CLAUDE, "--model", "--model");
    }

    /// A flag that may hold a secret is kept only if its value is known to hold none.
    #[test]
    fn secrets_are_not_kept() {
        for words in [
            r#"--settings {"env":{"API_KEY":"abc"}}"#,
            r#"--settings {"env":{"PGPASS":"abc"}}"#,
            r#"--settings={"apiKeyHelper":"x"}"#,
            r#"--mcp-config a.json {"headers":{"Authorization":"x"}}"#,
            r#"--mcp-config {"env":{"PAT":"x"}}"#,
            "--plugin-url https://host/p.zip?sig=abc",
            "--plugin-url https://me:pw@host/p.zip",
            "--plugin-url https://host/p.zip#abc",
        ] {
            keeps(&CLAUDE, words, "");
        }
        for words in [
            "-c model_providers.x.api_key=abc",
            "-c model_providers.x.http_headers.X-Auth=abc",
            "-c mcp_servers.db.env.PGPASS=abc",
            "-c mcp_servers.db.args=[\"--pat\",\"abc\"]",
            "--config=shell_environment_policy.set.PAT=abc",
            "-c shell.env.GH_TOKEN=abc",
            "-c otel.exporter=x",
            "-c modelx=abc",
        ] {
            keeps(&CODEX, words, "");
        }
        for words in [
            "--openai-api-key sk-1 --openai-base-url http://me:pw@host/v1",
            "--openai-base-url http://host/v1?k=abc",
            r#"--mcp-config {"mcpServers":{}}"#,
        ] {
            keeps(&QWEN, words, "");
        }
    }

    #[test]
    fn values_that_hold_no_secret_are_kept() {
        for words in [
            "--settings /home/keys/settings.json",
            "--mcp-config a.json ../token=1/b.json",
            "--plugin-url https://host/p.zip",
        ] {
            keeps(&CLAUDE, words, words);
        }
        for words in [
            "-c model=o3",
            "-c model_reasoning_effort=high",
            "-c sandbox_workspace_write.network_access=true",
            "--config=approval_policy=never",
            "-c features.web_search=true --config profile=work",
        ] {
            keeps(&CODEX, words, words);
        }
        let words = "--openai-base-url http://host/v1";
        keeps(&QWEN, words, words);
    }
}
