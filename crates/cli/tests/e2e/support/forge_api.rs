//! A dispatcher whose forge has an API: a fake one on loopback.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;
use tenure_testkit::fake_forge::{Comment, Dialect, FakeForge};
use tenure_testkit::{Env, poll};

use super::line::SOON;
use super::webhook::set_up;

pub fn settings(env: &Env) -> PathBuf {
    env.home().join(".config/tenure/dispatch.toml")
}

/// Writes the token that the dispatcher uses.
pub fn set_token(env: &Env, token: &str) {
    let dir = env.home().join(".config/tenure");
    let (file, new) = (dir.join("home.token"), dir.join("home.token.new"));
    std::fs::write(&new, token).expect("the environment is ours");
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600))
        .expect("the environment is ours");
    std::fs::rename(new, file).expect("the environment is ours");
}

/// What [`set_up`] writes, with a forge that can be asked. `top` goes to the top of the file.
pub fn set_up_forge(env: &Env, dialect: Dialect, top: &str, rule: &str) -> FakeForge {
    let forge = FakeForge::start(dialect);
    set_up(env, rule);
    set_token(env, "t-1");
    let file = settings(env);
    let text = std::fs::read_to_string(&file).expect("it was just written");
    let (_, kind) = Dialect::ALL
        .into_iter()
        .find(|(one, _)| *one == dialect)
        .expect("all are listed");
    let api = format!(
        "kind = \"{kind}\"\nurl = \"{}\"\ntoken_file = \"home.token\"\n",
        forge.url
    );
    let text = text.replacen("kind = \"forgejo\"\n", &api, 1);
    std::fs::write(&file, format!("{top}\n{text}")).expect("the environment is ours");
    forge
}

pub fn list(env: &Env, args: &[&str], noun: &str) -> Vec<Value> {
    let answer = env.tenure(args).ok().json();
    answer[noun].as_array().expect("a list").clone()
}

pub fn jobs(env: &Env) -> Vec<Value> {
    list(env, &["queue", "--all", "--json"], "jobs")
}

pub fn deliveries(env: &Env) -> Vec<Value> {
    list(env, &["queue", "deliveries", "--json"], "deliveries")
}

pub fn conversations(env: &Env) -> Vec<Value> {
    list(env, &["conversation", "list", "--json"], "conversations")
}

/// The one comment of ours, when it says this.
#[track_caller]
pub fn says(forge: &FakeForge, what: &str) -> Comment {
    poll(SOON, what, || {
        let mut own = forge.own_comments();
        assert!(own.len() <= 1, "{own:#?}");
        own.pop().filter(|one| one.body.contains(what))
    })
}
