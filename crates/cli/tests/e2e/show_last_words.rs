//! What was said last in a conversation: shown to who looks at one session, from its agent's own file, stored nowhere.

use serde_json::{Value, json};

use crate::env;
use crate::support::line::handle;
use crate::support::tmux::{Tmux, with_tmux};
use crate::support::transcript::{claude, file_of};

const ID: &str = "b2d6a746-0000-4000-8000-000000000011";

/// Adds a prompt and an answer to the transcript.
fn talk(env: &tenure_testkit::Env, prompt: &str, words: &str) {
    let file = file_of(env, ID);
    let asked =
        json!({"type": "user", "sessionId": ID, "message": {"role": "user", "content": prompt}});
    let said = json!({"type": "assistant", "sessionId": ID,
        "message": {"role": "assistant", "content": [{"type": "text", "text": words}]}});
    let before = std::fs::read_to_string(&file).expect("it was written");
    std::fs::write(&file, format!("{before}{asked}\n{said}\n")).expect("it is ours");
}

#[test]
fn show_has_the_last_words_and_nothing_else_does() {
    let env = env();
    let agent = claude(&env, ID);
    let name = handle(&agent);
    let none = env.tenure(&["show", &name, "--json"]).ok().json();
    assert_eq!(none["session"]["last_words"], Value::Null);
    talk(&env, "old", "older");
    talk(&env, "fix the \u{1b}[31mlogin", "Done.\n\nAll tests pass.");
    let shown = env.tenure(&["show", &name, "--json"]).ok().json();
    let expected =
        json!({"prompt": "fix the \u{1b}[31mlogin", "words": "Done.\n\nAll tests pass."});
    assert_eq!(shown["session"]["last_words"], expected, "{shown:#}");
    let text = env.tenure(&["show", &name]).ok().stdout;
    assert!(
        text.contains("  asked         fix the \\u{1b}[31mlogin\n"),
        "{text}"
    );
    assert!(
        text.contains("  said          Done. All tests pass.\n"),
        "{text}"
    );
    for line in [&["ps", "--json"][..], &["log", "--json"]] {
        let said = env.tenure(line).ok().stdout;
        assert!(!said.contains("All tests pass"), "{line:?}: {said}");
    }
    let kept = std::fs::read(env.state().join("tenure.db")).unwrap();
    let wal = std::fs::read(env.state().join("tenure.db-wal")).unwrap_or_default();
    for bytes in [kept, wal] {
        let words = b"All tests pass";
        assert!(!bytes.windows(words.len()).any(|part| part == words));
    }
    std::fs::remove_file(file_of(&env, ID)).unwrap();
    let gone = env.tenure(&["show", &name, "--json"]).ok().json();
    assert_eq!(gone["session"]["last_words"], Value::Null);
}

#[test]
fn top_shows_them_in_the_details() {
    let env = with_tmux();
    let agent = claude(&env, ID);
    talk(&env, "fix the login", &"a word ".repeat(200));
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    tmux.types(&pane, "tenure top; echo code $?");
    tmux.shows(&pane, &handle(&agent));
    tmux.presses(&pane, "Enter");
    tmux.shows(&pane, "asked         fix the login");
    let screen = tmux.shows(&pane, "said          a word a word");
    let lines = screen.lines().filter(|line| line.contains("a word a word"));
    assert_eq!(lines.count(), 4, "{screen}");
    tmux.presses(&pane, "q");
    tmux.shows(&pane, "\ncode 0");
}
