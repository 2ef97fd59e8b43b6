//! A page of messages: each command as it was typed, what it printed and how it ended.
//!
//! Lines on stderr are marked with `!`. A failure shows its kind, which `--json` prints, after the exit code.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_testkit::{Agent, Cmd, Env, Output};

use super::stable::Stable;

/// Where the pages are kept.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages")
}

enum Block {
    Title(String),
    /// A command that ran in the process with this pid.
    Call {
        pid: u32,
        typed: String,
        output: Output,
        kind: Option<String>,
    },
}

pub struct Page {
    tenure: String,
    blocks: Vec<Block>,
    dir: Option<PathBuf>,
    stable: Stable,
}

impl Page {
    fn new(env: &Env) -> Self {
        Self {
            tenure: env.tenure_path().display().to_string(),
            blocks: Vec::new(),
            dir: None,
            stable: Stable::new(env),
        }
    }

    pub fn title(&mut self, text: &str) {
        self.blocks.push(Block::Title(text.to_owned()));
    }

    /// The directory that the next commands run in.
    pub fn cd(&mut self, dir: &Path) {
        self.dir = Some(dir.to_owned());
    }

    /// Shows spans of time as they are: they are settings here, not ages.
    pub fn keep_spans(&mut self) {
        self.stable.keep_spans();
    }

    /// Shows something else for a text that differs from run to run.
    pub fn replace(&mut self, text: &str, stable: &str) {
        self.stable.replace(text, stable);
    }

    /// Learns the sessions of this environment, whose names differ from run to run.
    pub fn learn(&mut self, env: &Env) {
        self.stable.learn(env);
    }

    /// Runs a line and shows it. A failure is asked for its kind, which must not change anything.
    #[track_caller]
    pub fn run(&mut self, agent: &Agent, line: &str) -> Output {
        let output = agent.run(self.command(line, &[]));
        let kind = (output.code != 0)
            .then(|| kind_of(&agent.run(self.command(line, &["--json"]))))
            .flatten();
        self.add(agent.pid(), line, output, kind)
    }

    /// The same for what can fail only once.
    #[track_caller]
    pub fn run_once(&mut self, agent: &Agent, line: &str, kind: Option<&str>) -> Output {
        let output = agent.run(self.command(line, &[]));
        self.add(agent.pid(), line, output, kind.map(str::to_owned))
    }

    /// Runs a line and expects it to succeed.
    #[track_caller]
    pub fn ok(&mut self, agent: &Agent, line: &str) -> Output {
        let output = self.run(agent, line);
        assert_eq!(output.code, 0, "{line}\n{output}");
        output
    }

    /// Runs a line with this input, and shows it behind `echo`.
    #[track_caller]
    pub fn feed(&mut self, agent: &Agent, input: &str, line: &str) -> Output {
        let cmd = self.command(line, &[]).stdin(format!("{input}\n"));
        let output = agent.run(cmd);
        let kind = (output.code != 0)
            .then(|| {
                let again = self.command(line, &["--json"]);
                kind_of(&agent.run(again.stdin(format!("{input}\n"))))
            })
            .flatten();
        let typed = format!("echo '{input}' | {line}");
        self.add(agent.pid(), &typed, output, kind)
    }

    /// Sends an event to a hook and shows its answer part by part.
    #[track_caller]
    pub fn hook(&mut self, agent: &Agent, event: &Value, line: &str) -> Output {
        let cmd = self.command(line, &[]).stdin(event.to_string());
        let mut output = agent.run(cmd);
        let whole = output.clone();
        if let Ok(answer) = serde_json::from_str::<Value>(&output.stdout) {
            output.stdout = String::new();
            parts(&answer, "", &mut output.stdout);
        }
        let typed = format!("echo '{event}' | {line}");
        self.add(agent.pid(), &typed, output, None);
        whole
    }

    /// Shows a command that ran elsewhere.
    pub fn show(&mut self, pid: u32, typed: &str, output: Output, kind: Option<&str>) {
        self.add(pid, typed, output, kind.map(str::to_owned));
    }

    fn add(&mut self, pid: u32, typed: &str, output: Output, kind: Option<String>) -> Output {
        let typed = typed.to_owned();
        self.blocks.push(Block::Call {
            pid,
            typed,
            output: output.clone(),
            kind,
        });
        output
    }

    fn command(&self, line: &str, more: &[&str]) -> Cmd {
        let mut words = words(line).into_iter().peekable();
        let mut variables = Vec::new();
        while let Some((name, value)) = words.peek().and_then(|word| word.split_once('=')) {
            variables.push((name.to_owned(), value.to_owned()));
            words.next();
        }
        let program = words.next().expect("a command");
        assert_eq!(program, "tenure", "{line}");
        let mut cmd = Cmd::new(&self.tenure)
            .args(more.iter().copied())
            .args(words);
        for (name, value) in variables {
            cmd = cmd.env(&name, value);
        }
        match &self.dir {
            Some(dir) => cmd.dir(dir),
            None => cmd,
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut caller = None;
        for block in &self.blocks {
            match block {
                Block::Title(title) => {
                    writeln!(text, "\n## {title}\n").expect("a string can be written to");
                    caller = None;
                }
                Block::Call {
                    pid,
                    typed,
                    output,
                    kind,
                } => {
                    if caller != Some(*pid) {
                        writeln!(text, "# {}", self.stable.caller(*pid)).expect("a string");
                        caller = Some(*pid);
                    }
                    text.push_str(&self.entry(typed, output, kind.as_deref()));
                }
            }
        }
        text.trim_start().to_owned()
    }

    fn entry(&self, typed: &str, output: &Output, kind: Option<&str>) -> String {
        let mut text = format!("$ {}\n", self.stable.typed(typed));
        text.push_str(&self.stable.lines(&output.stdout, ""));
        text.push_str(&self.stable.lines(&output.stderr, "! "));
        let code = output.code;
        match kind {
            Some(kind) => writeln!(text, "exit {code} ({kind})\n"),
            None => writeln!(text, "exit {code}\n"),
        }
        .expect("a string can be written to");
        text
    }
}

/// The kind of a failure, from its object on stdout, or on stderr where stdout belongs to a command.
fn kind_of(output: &Output) -> Option<String> {
    let last = output.stderr.lines().last().unwrap_or_default();
    let object = |text: &str| serde_json::from_str::<Value>(text).ok();
    let found = object(&output.stdout).or_else(|| object(last))?;
    found["error"]["kind"].as_str().map(str::to_owned)
}

/// Each text of an answer with where it is; lines of a text one below the other.
fn parts(value: &Value, at: &str, text: &mut String) {
    let within = |name: &str| {
        if at.is_empty() {
            name.to_owned()
        } else {
            format!("{at}.{name}")
        }
    };
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                parts(value, &within(name), text);
            }
        }
        Value::String(one) if one.contains('\n') => {
            writeln!(text, "{at}:").expect("a string can be written to");
            for line in one.lines() {
                writeln!(text, "  {line}").expect("a string can be written to");
            }
        }
        Value::String(one) => writeln!(text, "{at}: {one}").expect("a string"),
        other => writeln!(text, "{at}: {other}").expect("a string"),
    }
}

/// The words of a line as a shell reads them.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut begun) = (Vec::new(), String::new(), None, false);
    let mut letters = line.chars().chain([' ']);
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, '\\') => word.extend(letters.next()),
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), letter) => word.push(letter),
            (None, '\'' | '"') => (quote, begun) = (Some(letter), true),
            (None, ' ') if begun => {
                words.push(std::mem::take(&mut word));
                begun = false;
            }
            (None, ' ') => {}
            (None, letter) => {
                word.push(letter);
                begun = true;
            }
        }
    }
    words
}

/// The page that is kept under this name.
pub fn kept(name: &str) -> String {
    let file = folder().join(format!("{name}.txt"));
    std::fs::read_to_string(file).unwrap_or_default()
}

/// The commands of a page, and how each ended: the code, and the kind of a failure.
pub fn calls(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.split("\n$ ").skip(1).filter_map(|call| {
        let ended = call.lines().find_map(|line| line.strip_prefix("exit "));
        Some((call.lines().next()?, ended?))
    })
}

/// Makes a page and compares it with the one that is kept; with `UPDATE=1` in the environment keeps this one.
#[track_caller]
pub fn check(name: &str, show: fn(&mut Env, &mut Page)) {
    let mut env = crate::env();
    let mut page = Page::new(&env);
    show(&mut env, &mut page);
    page.stable.learn(&env);
    let text = page.text();
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        let file = folder().join(format!("{name}.txt"));
        std::fs::write(file, text).expect("the sources can be written");
        return;
    }
    let kept = kept(name);
    if kept != text {
        let diff = similar::TextDiff::from_lines(kept.as_str(), &text);
        let diff = diff.unified_diff().context_radius(3).to_string();
        panic!("the page {name} differs; read the change, and keep it with UPDATE=1:\n{diff}");
    }
}
