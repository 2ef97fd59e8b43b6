//! Notifications of what a keeper records.

use serde_json::json;
use tenure_testkit::poll;

use crate::late_answers::{hook, starts};
use crate::machine::{Machine, SOON, kept};

#[test]
#[ignore = "needs PostgreSQL"]
fn a_hook_notifies_of_a_failed_turn_that_the_keeper_recorded() {
    let (_server, env) = kept(&[("TENURE_HOST_LEASE", "10m"), ("TENURE_HOOK_WAIT", "1s")]);
    let told = env.dir().join("told");
    let config = env.home().join(".config/tenure");
    fs_err::create_dir_all(&config).unwrap();
    let channel = format!(
        "[[notify]]\nchannel = \"command\"\ncommand = \"cat >{}\"\n",
        told.display()
    );
    fs_err::write(config.join("config.toml"), channel).unwrap();
    let a = Machine::new(&env, "a");
    let _keeper_runs = a.session("codex");
    let claude = starts(&a);
    hook(&a, &claude, "UserPromptSubmit", json!({"prompt": "go on"}));
    hook(&a, &claude, "StopFailure", json!({"error": "server_error"}));
    poll(SOON, "the notification", || {
        let told = fs_err::read_to_string(&told).ok()?;
        told.contains("\"event\":\"failed\"").then_some(())
    });
}
