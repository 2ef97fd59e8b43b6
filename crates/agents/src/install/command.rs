//! The command line that an agent runs at each event, and how ours is distinguished from the user's.

use tenure_core::write_conflict::GuardMode;

/// Every mode, weakest first.
pub const MODES: [GuardMode; 3] = [GuardMode::Observe, GuardMode::Warn, GuardMode::Block];

/// The flag of the hook that waits for messages.
const WAITS: &str = " --wait";

/// A mode's name on the command line.
pub fn word_of(mode: GuardMode) -> &'static str {
    match mode {
        GuardMode::Observe => "observe",
        GuardMode::Warn => "warn",
        GuardMode::Block => "block",
    }
}

/// A hook command that is ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookLine {
    /// The tenure that it runs.
    pub program: String,
    pub mode: GuardMode,
    /// Whether it waits, at a question, for an answer from elsewhere.
    pub answers: bool,
}

impl HookLine {
    /// The shell's command line. If tenure is gone, it exits 0 and prints nothing.
    pub fn text(&self, agent: &str) -> String {
        let program = quoted(&self.program);
        let mode = match self.mode {
            GuardMode::Warn => String::new(),
            mode => format!(" --mode {}", word_of(mode)),
        };
        let answers = if self.answers { " --answers" } else { "" };
        format!("test -x {program} || exit 0; exec {program} hook {agent}{mode}{answers}")
    }

    /// The same for the hook that waits for messages.
    pub fn waiting(&self, agent: &str) -> String {
        let plain = Self {
            mode: GuardMode::default(),
            answers: false,
            ..self.clone()
        };
        format!("{}{WAITS}", plain.text(agent))
    }

    /// Whether one of our command lines waits for messages.
    pub(super) fn waits(command: &str) -> bool {
        command.trim_end().ends_with(WAITS)
    }

    /// Parses a command line; none if it is not ours.
    ///
    /// Ours ends with the words `tenure hook AGENT`, wherever that tenure is and however it is quoted, or is
    /// what [`HookLine::text`] produces for a tenure with another name.
    pub fn read(command: &str, agent: &str) -> Option<Self> {
        let words = words(command)?;
        let mut rest: &[String] = &words;
        if let [before @ .., last] = rest
            && last == WAITS.trim_start()
        {
            rest = before;
        }
        let mut answers = false;
        if let [before @ .., last] = rest
            && last == "--answers"
        {
            (rest, answers) = (before, true);
        }
        let mut mode = GuardMode::default();
        if let [before @ .., flag, word] = rest
            && flag == "--mode"
        {
            (rest, mode) = (before, GuardMode::parse(word)?);
        } else if let [before @ .., last] = rest
            && let Some(word) = last.strip_prefix("--mode=")
        {
            (rest, mode) = (before, GuardMode::parse(word)?);
        }
        let [before @ .., program, hook, name] = rest else {
            return None;
        };
        if hook != "hook" || name != agent {
            return None;
        }
        let is_tenure = program.rsplit('/').next() == Some("tenure");
        let guard = ["test", "-x", program, "||", "exit", "0", ";", "exec"];
        (is_tenure || before == guard).then(|| Self {
            program: program.clone(),
            mode,
            answers,
        })
    }
}

/// A word quoted for the shell, if necessary.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:,=%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The words of a command line as a shell splits them; none if a quote is not closed.
pub(super) fn words(command: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        end if end == c => break,
                        '\\' if c == '"' => word.push(chars.next()?),
                        other => word.push(other),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            ';' | '&' | '|' => {
                words.extend(word.take());
                let mut operator = c.to_string();
                if chars.peek() == Some(&c) {
                    operator.extend(chars.next());
                }
                words.push(operator);
            }
            c if c.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_read_back() {
        for mode in MODES {
            assert_eq!(GuardMode::parse(word_of(mode)), Some(mode));
        }
    }

    #[test]
    fn what_is_written_is_recognised_whatever_the_path() {
        for program in [
            "/usr/bin/tenure",
            "/home/an na/tenure",
            "/o'neill/t\"x",
            "/p/tn;a",
        ] {
            for (mode, answers) in MODES
                .into_iter()
                .flat_map(|mode| [(mode, false), (mode, true)])
            {
                let line = HookLine {
                    program: program.to_owned(),
                    mode,
                    answers,
                };
                assert_eq!(
                    HookLine::read(&line.text("claude"), "claude"),
                    Some(line.clone())
                );
                assert_eq!(HookLine::read(&line.text("claude"), "codex"), None);
            }
        }
    }

    #[test]
    fn the_waiting_hook_is_recognised() {
        let line = HookLine {
            program: "/a b/tenure".into(),
            mode: GuardMode::Block,
            answers: true,
        };
        let waiting = line.waiting("claude");
        assert!(HookLine::waits(&waiting), "{waiting}");
        assert!(!HookLine::waits(&line.text("claude")));
        let read = HookLine::read(&waiting, "claude").unwrap();
        assert_eq!(read.program, line.program);
    }

    #[test]
    fn ours_of_any_version_is_recognised_and_nothing_else() {
        for ours in [
            "tenure hook claude",
            "\"/old path/tenure\" hook claude",
            "/x/tenure hook claude --mode=block",
            "exec '/x/tenure' 'hook' claude ",
            "[ -x /x/tenure ] && /x/tenure hook claude",
        ] {
            assert!(HookLine::read(ours, "claude").is_some(), "{ours}");
        }
        for theirs in [
            "tenure hook claude && notify-send done",
            "tenure hook claude | tee log",
            "tenure hook claude --mode louder",
            "echo tenure hook",
            "mytenure hook claude",
            "run 'tenure hook claude'",
            "tenure hook claude 'open",
            "",
        ] {
            assert_eq!(HookLine::read(theirs, "claude"), None, "{theirs}");
        }
    }
}
