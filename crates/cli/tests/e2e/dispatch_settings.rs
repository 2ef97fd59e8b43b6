//! `dispatch init`, `check` and `explain`: from the bytes of a delivery to the rule that decides.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tenure_testkit::fake_forge::{Dialect, FakeForge};
use tenure_testkit::{Env, Output};

use crate::env;
use crate::support::dispatch::{clone, file, fill_in, payload};
use crate::support::forge_api::set_token;

#[track_caller]
fn tenure(env: &Env, args: &[&str]) -> Output {
    let repo = env.dir().join("web");
    env.agent("some-editor").tenure_in(&repo, args)
}

/// A file as `init` writes it, filled in.
#[track_caller]
fn set_up(env: &Env) {
    clone(env);
    tenure(env, &["dispatch", "init"]).ok();
    fill_in(env, "authors = []", "authors = [\"alice\"]");
}

#[track_caller]
fn explain(env: &Env, name: &str, more: &[&str]) -> (Value, i32) {
    let path = payload(name).display().to_string();
    let words = [&["dispatch", "explain", &path, "--json"], more].concat();
    let output = tenure(env, &words);
    let code = output.code;
    (output.json()["explained"].clone(), code)
}

#[test]
fn what_init_writes_passes_the_check_when_it_is_filled_in() {
    let env = env();
    clone(&env);
    tenure(&env, &["dispatch", "init"]).ok();
    let empty = tenure(&env, &["dispatch", "check", "--json"]);
    assert_eq!(empty.code, 6);
    let faults = empty.json()["error"]["dispatch_faults"].clone();
    let keys: Vec<&str> = faults
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|fault| fault["key"].as_str())
        .collect();
    assert_eq!(
        keys,
        ["rule 1: authors"],
        "only what a person must know is missing"
    );
    fill_in(&env, "authors = []", "authors = [\"alice\"]");
    let checked = tenure(&env, &["dispatch", "check", "--json"]).ok().json();
    let config = &checked["dispatch_config"];
    assert_eq!(config["repos"], json!(["acme/web"]));
    assert_eq!(config["rules"], json!(["implement"]));
    assert_eq!(config["forges"][0]["endpoint"], "/hooks/home");
}

#[test]
fn outside_of_a_clone_init_leaves_the_repository_to_fill_in() {
    let env = env();
    env.tenure(&["dispatch", "init"]).ok();
    let empty = env.tenure(&["dispatch", "check", "--json"]);
    let faults = empty.json()["error"]["dispatch_faults"].clone();
    let keys: Vec<&Value> = faults
        .as_array()
        .expect("a list")
        .iter()
        .map(|fault| &fault["key"])
        .collect();
    assert_eq!(
        keys,
        ["repo OWNER/NAME", "repo OWNER/NAME: dir", "rule 1: authors"]
    );
    let repo = clone(&env).display().to_string();
    fill_in(&env, "OWNER/NAME\"]", "acme/web\"]");
    fill_in(&env, "dir = \"\"", &format!("dir = \"{repo}\""));
    fill_in(&env, "authors = []", "authors = [\"alice\"]");
    env.tenure(&["dispatch", "check"]).ok();
}

#[test]
fn init_makes_a_secret_that_others_cannot_read_and_overwrites_nothing() {
    let env = env();
    clone(&env);
    let dir = env.dir().join("elsewhere");
    let named = dir.display().to_string();
    let written = tenure(&env, &["dispatch", "init", &named, "--json"])
        .ok()
        .json();
    let skills = |answer: &Value| {
        let skills = answer["dispatch_init"]["skills"].as_array();
        skills.expect("a list").len()
    };
    assert_eq!(skills(&written), 6);
    let secret = dir.join("home.secret");
    let mode = std::fs::metadata(&secret)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let first = std::fs::read_to_string(&secret).expect("it is text");
    assert_eq!(first.trim().len(), 64);
    let again = tenure(&env, &["dispatch", "init", &named]);
    assert_eq!(again.code, 1);
    // Without the file, the secret that the forge may know already stays.
    std::fs::remove_file(dir.join("dispatch.toml")).expect("it was written");
    let third = tenure(&env, &["dispatch", "init", &named, "--json"])
        .ok()
        .json();
    assert_eq!(skills(&third), 0);
    assert_eq!(std::fs::read_to_string(&secret).expect("it is text"), first);
    let mine = env.dir().join("mine");
    tenure(&env, &["dispatch", "init", &mine.display().to_string()]).ok();
    let other = std::fs::read_to_string(mine.join("home.secret")).expect("it is text");
    assert_ne!(other, first, "every secret is another");
}

#[test]
fn in_a_second_repository_init_adds_that_one_to_the_file() {
    let env = env();
    set_up(&env);
    let other = env.dir().join("api");
    tenure_testkit::scratch_git(&other, Some("https://git.example.org/acme/api.git"));
    let human = env.agent("some-editor");
    let init = |json: &[&str]| human.tenure_in(&other, &[&["dispatch", "init"], json].concat());
    let added = init(&["--json"]).ok().json();
    assert_eq!(added["dispatch_init"]["added"], "acme/api");
    let checked = tenure(&env, &["dispatch", "check", "--json"]).ok().json();
    let repos = &checked["dispatch_config"]["repos"];
    assert_eq!(*repos, json!(["acme/web", "acme/api"]));
    assert_eq!(init(&[]).code, 1, "it is there already");
}

#[test]
fn with_an_author_and_a_token_init_writes_rules_from_start_to_merge() {
    for (dialect, kind) in Dialect::ALL {
        let env = env();
        clone(&env);
        let forge = FakeForge::start(dialect);
        std::fs::create_dir_all(env.home().join(".config/tenure")).expect("the home is ours");
        set_token(&env, "t-1");
        let token = env.home().join(".config/tenure/home.token");
        let token = token.display().to_string();
        let words = ["dispatch", "init", "--author", "alice", "--kind", kind];
        let api = ["--url", forge.url.as_str(), "--token-file", &token];
        tenure(&env, &[&words[..], &api[..]].concat()).ok();
        let checked = tenure(&env, &["dispatch", "check", "--json"]).ok().json();
        let config = &checked["dispatch_config"];
        let names = ["implement", "review", "address-review", "merge"];
        assert_eq!(config["rules"], json!(names), "{kind}");
        let notes = config["notes"].to_string();
        assert!(!notes.contains("-delta.md"), "{kind}: {notes}");
    }
}

#[test]
fn init_writes_the_ids_of_authors_where_it_can_ask_and_else_their_logins() {
    let env = env();
    clone(&env);
    tenure(&env, &["dispatch", "init", "--author", "alice"]).ok();
    let written = || std::fs::read_to_string(file(&env)).expect("it was written");
    assert!(written().contains("authors = [\"alice\"]"), "{}", written());
    tenure(&env, &["dispatch", "check"]).ok();
    for (dialect, kind) in Dialect::ALL {
        let forge = FakeForge::start(dialect);
        set_token(&env, "t-1");
        let token = file(&env).with_file_name("home.token");
        let token = token.display().to_string();
        let init = |author: &str| {
            std::fs::remove_file(file(&env)).ok();
            let words = ["dispatch", "init", "--author", author, "--kind", kind];
            let api = ["--url", &forge.url, "--token-file", &token];
            tenure(&env, &[&words[..], &api[..]].concat())
        };
        init("alice").ok();
        let text = written();
        let id = "authors = [\"id:3\"]";
        assert!(text.contains(id), "{text}");
        for line in [
            format!("kind = \"{kind}\""),
            format!("url = \"{}\"", forge.url),
            "own_account = \"bot\"".to_owned(),
        ] {
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
        }
        tenure(&env, &["dispatch", "check"]).ok();
        let unknown = init("nobody");
        assert_eq!(unknown.code, 1);
        assert!(unknown.stderr.contains("has no account nobody"));
        assert!(!file(&env).exists(), "nothing is written");
    }
}

#[test]
fn a_secret_that_others_can_read_is_refused() {
    let env = env();
    set_up(&env);
    tenure(&env, &["dispatch", "check"]).ok();
    let secret = env.home().join(".config/tenure/home.secret");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    let refused = tenure(&env, &["dispatch", "check"]);
    assert_eq!(refused.code, 6);
    assert!(
        refused.stderr.contains("others can read"),
        "{}",
        refused.stderr
    );
}

#[test]
fn an_issue_of_forgejo_goes_from_its_bytes_to_its_rule() {
    let env = env();
    set_up(&env);
    let (explained, code) = explain(&env, "forgejo/issue", &["--event", "issues"]);
    assert_eq!(code, 0);
    assert_eq!(explained["event"], "issue.opened");
    assert_eq!(
        explained["runs"],
        json!([{
            "rule": "implement",
            "agent": "claude",
            "item": "issue:acme/web#6",
            "trust": "permitted",
            "head": null,
        }])
    );
    // Bob is not named.
    let (explained, code) = explain(&env, "forgejo/comment", &["--event", "issue_comment"]);
    assert_eq!((code, &explained["runs"]), (1, &json!([])));
    assert_eq!(explained["rules"][0]["kind"], "not_an_author");
    assert_eq!(
        explained["rules"][0]["why"],
        "bob is not one of its authors"
    );
    // A pull request links itself to the issue that it closes.
    let (explained, code) = explain(&env, "forgejo/pull_request", &["--event", "pull_request"]);
    assert_eq!(code, 0);
    assert_eq!(explained["links"]["target"], "issue:acme/web#6");
    assert_eq!(explained["rules"][0]["kind"], "other_event");
}

#[test]
fn every_forge_is_explained() {
    let env = env();
    set_up(&env);
    fill_in(&env, "kind = \"forgejo\"", "kind = \"github\"");
    let (explained, code) = explain(&env, "github/issue", &["--event", "X-GitHub-Event: issues"]);
    assert_eq!((code, &explained["item"]), (0, &json!("issue:acme/web#6")));
    fill_in(&env, "kind = \"github\"", "kind = \"gitlab\"");
    fill_in(&env, "[repo.\"acme/web\"]", "[repo.\"acme/sub/web\"]");
    let (explained, code) = explain(&env, "gitlab/issue", &[]);
    assert_eq!(
        (code, &explained["item"]),
        (0, &json!("issue:acme/sub/web#6"))
    );
    let (explained, code) = explain(&env, "gitlab/merge_request", &[]);
    assert_eq!(
        (code, &explained["event"]),
        (0, &json!("pr.opened")),
        "it links"
    );
}

#[test]
fn a_delivery_that_cannot_be_read_is_an_error_and_a_file_stays_as_it_is() {
    let env = env();
    set_up(&env);
    let before = std::fs::read(file(&env)).expect("it was written");
    let body = env.dir().join("body");
    std::fs::write(&body, "payload=%7B%7D\n\n").expect("a scratch directory is writable");
    let body = body.display().to_string();
    let failed = tenure(
        &env,
        &["dispatch", "explain", &body, "--event", "issues", "--json"],
    );
    assert_eq!(failed.code, 6);
    assert_eq!(failed.json()["error"]["kind"], "unreadable_delivery");
    let missing = tenure(&env, &["dispatch", "explain", "/missing", "--json"]);
    assert_eq!(missing.code, 4);
    assert_eq!(std::fs::read(file(&env)).expect("it is there"), before);
}

/// A forge that tells which account its token belongs to, once.
fn forge_of(account: &'static str) -> (String, std::thread::JoinHandle<String>) {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("the loopback is there");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let thread = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("it is asked");
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(reader.read_line(&mut head).expect("a request"), 0, "{head}");
        }
        let body = json!({"id": 9, "login": account}).to_string();
        let answer = format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        reader
            .into_inner()
            .write_all(answer.as_bytes())
            .expect("it listens");
        head
    });
    (url, thread)
}

#[test]
fn the_check_asks_the_forge_whose_token_it_is() {
    for (account, code) in [("Bot", 0), ("alice", 6)] {
        let env = env();
        set_up(&env);
        let (url, asked) = forge_of(account);
        let token = env.home().join(".config/tenure/home.token");
        std::fs::write(&token, "t0ken\n").expect("a scratch directory is writable");
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600))
            .expect("it is ours");
        fill_in(
            &env,
            "# url = \"https://git.example.org\"",
            &format!("url = \"{url}\""),
        );
        fill_in(&env, "# token_file", "token_file");
        fill_in(&env, "# own_account", "own_account");
        tenure(&env, &["dispatch", "check", "--offline"]).ok();
        let checked = tenure(&env, &["dispatch", "check"]);
        assert_eq!(checked.code, code, "{}{}", checked.stdout, checked.stderr);
        let head = asked.join().expect("it was asked");
        assert!(head.starts_with("GET /api/v1/user "), "{head}");
        assert!(head.contains("token t0ken"), "{head}");
        assert!(!format!("{}{}", checked.stdout, checked.stderr).contains("t0ken"));
        if code != 0 {
            let told = "forge home, own_account: the token belongs to alice";
            assert!(checked.stderr.contains(told), "{}", checked.stderr);
            // The forge is away now.
            let away = tenure(&env, &["dispatch", "check"]).ok();
            assert!(
                away.stdout.contains("forge home could not be asked"),
                "{}",
                away.stdout
            );
        }
    }
}
