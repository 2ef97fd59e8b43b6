//! A private tmux: a server of the test's own, with real terminals that can be looked at, typed into and closed.
//!
//! `TENURE_TMUX` names the program, else it is `tmux`. A machine without it fails these tests.

use tenure_testkit::{Agent, Cmd, Env, Output, poll};

use super::line::SOON;

/// What a pane runs. It shows the prompt that its environment names.
const SHELL: [&str; 3] = ["bash", "--norc", "--noprofile"];
/// Shown by a shell that takes a line.
const PROMPT: &str = "ready> ";

pub struct Tmux {
    program: String,
    pub socket: String,
    starter: Agent,
}

/// Lets tenure find the tmux that the tests use.
pub fn with_tmux() -> Env {
    let mut env = super::env();
    env.set("TENURE_TMUX", program());
    env.set("TERM", "screen-256color");
    env.set("PS1", PROMPT);
    env
}

fn program() -> String {
    let named = std::env::var("TENURE_TMUX").unwrap_or_default();
    if named.is_empty() {
        "tmux".to_owned()
    } else {
        named
    }
}

impl Tmux {
    /// A server with one session `main`, whose first pane is a shell.
    pub fn start(env: &Env, name: &str) -> Tmux {
        let tmux = Tmux {
            program: program(),
            socket: env.dir().join(name).display().to_string(),
            starter: env.agent("starter"),
        };
        let size = ["-x", "100", "-y", "20"];
        tmux.tell(
            &["-f", "/dev/null", "new-session", "-d", "-s", "main"],
            &[&size[..], &SHELL].concat(),
        );
        tmux.shows("main:0", PROMPT.trim_end());
        tmux
    }

    #[track_caller]
    fn tell(&self, before: &[&str], words: &[&str]) -> Output {
        let cmd = Cmd::new(&self.program)
            .args(["-S", &self.socket])
            .args(before.iter().copied())
            .args(words.iter().copied());
        let said = self.starter.run(cmd);
        assert_eq!(
            said.code, 0,
            "tmux is needed for this test: {words:?}\n{said}"
        );
        said
    }

    #[track_caller]
    pub fn run(&self, words: &[&str]) -> String {
        self.tell(&[], words).stdout.trim_end().to_owned()
    }

    /// A new window with a shell, by its pane's id.
    pub fn window(&self) -> String {
        self.opened(&["new-window", "-d", "-P", "-F", "#{pane_id}"])
    }

    /// A new session with a shell, by its pane's id.
    pub fn session(&self, name: &str) -> String {
        self.opened(&["new-session", "-d", "-s", name, "-P", "-F", "#{pane_id}"])
    }

    fn opened(&self, words: &[&str]) -> String {
        let pane = self.run(&[words, &SHELL].concat());
        self.shows(&pane, PROMPT.trim_end());
        pane
    }

    /// Types a line into a pane.
    pub fn types(&self, pane: &str, line: &str) {
        self.run(&["send-keys", "-t", pane, "-l", line]);
        self.run(&["send-keys", "-t", pane, "Enter"]);
    }

    /// Presses a key.
    pub fn presses(&self, pane: &str, key: &str) {
        self.run(&["send-keys", "-t", pane, key]);
    }

    /// What a pane shows.
    pub fn shown(&self, pane: &str) -> String {
        self.run(&["capture-pane", "-p", "-t", pane])
    }

    /// Waits until a pane shows these words; all that it shows then.
    #[track_caller]
    pub fn shows(&self, pane: &str, words: &str) -> String {
        poll(SOON, &format!("{pane} shows {words:?}"), || {
            let shown = self.shown(pane);
            shown.contains(words).then_some(shown)
        })
    }

    /// Asks about a pane.
    pub fn ask(&self, pane: &str, format: &str) -> String {
        self.run(&["display-message", "-p", "-t", pane, format])
    }

    /// The pane that its session shows.
    pub fn current(&self) -> String {
        self.run(&["display-message", "-p", "-t", "main:", "#{pane_id}"])
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let cmd = Cmd::new(&self.program).args(["-S", &self.socket, "kill-server"]);
        let _ended = self.starter.run(cmd);
    }
}
