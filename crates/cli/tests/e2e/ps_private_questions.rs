//! What a session asks a person about is kept only where the user lets it.

use serde_json::{Value, json};
use tenure_testkit::Env;

use crate::env;
use crate::support::hooked::Hooked;

fn is_stored(env: &Env, secret: &str) -> bool {
    let files = std::fs::read_dir(env.state()).expect("it is there");
    let files = files.map(|entry| entry.expect("it is there").path());
    let holds = |path: std::path::PathBuf| {
        let bytes = std::fs::read(path).expect("it is ours");
        let mut parts = bytes.windows(secret.len());
        parts.any(|part| part == secret.as_bytes())
    };
    files.filter(|path| path.is_file()).any(holds)
}

fn asks(env: &Env, name: &str) -> Value {
    let shown = env.tenure(&["show", name, "--json"]).ok().json();
    shown["session"]["asks"].clone()
}

#[test]
fn without_titles_only_the_kind_of_a_question_is_kept() {
    let command = json!({"tool_name": "Bash", "tool_input": {"command": "rm -rf secret-plan"}});
    for (kept, expected) in [
        ("true", "permission for `rm -rf secret-plan`"),
        ("false", "permission for Bash"),
    ] {
        let mut env = env();
        env.set("TENURE_PRIVACY_TITLES", kept);
        let work = env.work();
        let a = Hooked::start(&env, "claude", "a1", &work);
        a.event(&[], "PermissionRequest", command.clone());
        assert_eq!(asks(&env, &a.handle()), expected);
        assert_eq!(is_stored(&env, "secret-plan"), kept == "true");
    }
}

#[test]
fn the_project_may_forbid_to_keep_what_is_asked() {
    let env = env();
    let work = env.work();
    tenure_testkit::scratch_git(&work, None);
    std::fs::write(work.join(".tenure.toml"), "[privacy]\ntitles = false\n")
        .expect("the directory is ours");
    let a = Hooked::start(&env, "claude", "a1", &work);
    a.event(&[], "Elicitation", json!({"message": "Which secret-plan?"}));
    assert_eq!(asks(&env, &a.handle()), "an answer to its question");
    assert!(!is_stored(&env, "secret-plan"));
}
