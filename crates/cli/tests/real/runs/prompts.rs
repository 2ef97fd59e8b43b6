//! What a prompt says is text: it names no command and reads no file.

use tenure_testkit::real::Real;

use super::trust::{names, orders};
use super::{ITEM, Runs};

// For the others a prompt is text whatever it says, and tenure gives all of them the same one.
of! { commands_and_mentions_are_text claude Claude codex Codex gemini Gemini }

fn commands_and_mentions_are_text(kind: Real) {
    let runs = Runs::begin(kind);
    let (inside, outside) = (
        runs.world.project().join("notes.txt"),
        runs.world.scratch().join("secret.txt"),
    );
    std::fs::write(&inside, "INSIDE-SECRET\n").unwrap();
    std::fs::write(&outside, "OUTSIDE-SECRET\n").unwrap();
    let marks = runs.world.scratch().join("marks");
    std::fs::create_dir(&marks).unwrap();
    orders(kind, &runs.world.project(), &marks);
    let named = format!(
        "/deploy /clear @notes.txt @./notes.txt (@{0}) @{0} @/etc/passwd",
        outside.display()
    );
    let said = runs
        .run(&["--prompt", &format!("{named}\nMOCK:say read")])
        .ok();
    assert_eq!(said.stdout, "MOCK-SAID read\n", "{said}");
    runs.skill("issue.md", "/clear\n{{ body | fenced }}\nMOCK:say read\n");
    let body = format!("body=```\n{named}\n/help");
    runs.run(&["--skill", "issue", "--var", &body]).ok();
    assert_eq!(runs.newest()["outcome"], "done");
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    let root = passwd.lines().next().unwrap();
    for secret in ["INSIDE-SECRET", "OUTSIDE-SECRET", root] {
        assert!(
            !runs.world.mock().was_told(secret),
            "the model was told {secret}"
        );
    }
    assert!(!names(&marks).contains(&"command".to_owned()));
    let last = runs.last_step();
    assert!(
        last.says("/clear") && last.says("/help") && last.says(ITEM),
        "{:#}",
        last.body
    );
}
