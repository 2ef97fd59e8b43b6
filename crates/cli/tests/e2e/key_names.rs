//! What names a repository, a file and a session: neither an odd configuration nor an odd spelling makes two of
//! one, and no text passes for ours.

use std::path::PathBuf;

use serde_json::{Value, json};
use tenure_testkit::{Env, scratch_git};

use crate::env;
use crate::support::answer::refused;
use crate::support::hooked::{denied, pair};
use crate::support::line::{crew, run, text};

/// Two clones of one repository, with this text at the end of their configurations.
fn clones(env: &Env, more: &[u8]) -> [PathBuf; 2] {
    ["one", "two"].map(|name| {
        let repo = env.dir().join(name);
        scratch_git(&repo, Some("git@github.com:acme/web.git"));
        let config = repo.join(".git/config");
        let before = std::fs::read(&config).expect("git made it");
        std::fs::write(&config, [more, &before].concat()).expect("it is ours");
        repo
    })
}

#[test]
fn clones_meet_whatever_else_is_in_their_configuration() {
    let comments = b"# a comment\n".repeat(150_000);
    let remotes: Vec<u8> = (0..25_000)
        .flat_map(|at| format!("[remote \"r{at}\"]\n\turl = git@h:o/r{at}\n").into_bytes())
        .collect();
    for more in [&b"[user]\n\tname = J\xe9r\xf4me\n"[..], &comments, &remotes] {
        let (env, [ann, bob]) = crew(["ann", "bob"]);
        let [one, two] = clones(&env, more);
        ann.tenure_in(&one, &["claim", "path:src/a.rs"]).ok();
        bob.tenure_in(&two, &["claim", "path:src/a.rs"]).fails(3);
    }
}

#[test]
fn a_repository_whose_remote_may_be_elsewhere_is_named_by_its_directory_and_whoami_says_why() {
    let (env, [ann]) = crew(["ann"]);
    let outside = env.dir().join("outside");
    std::fs::write(&outside, "[remote \"origin\"]\n\turl = git@h:x/y\n").expect("it is ours");
    let include = format!("[include]\n\tpath = {}\n", outside.display());
    let [repo, _] = clones(&env, include.as_bytes());
    let said = ann.tenure_in(&repo, &["claim", "path:src/a.rs", "--json"]);
    let key = text(&said.ok().json()["claim"]["key"]);
    let dir = format!("path:{}:src/a.rs", repo.join(".git").display());
    assert_eq!(key, dir);
    let pid = ann.pid().to_string();
    let place = repo.to_str().expect("it is text");
    let words = ["register", "--agent", "ann", "--pid", &pid, "--dir", place];
    ann.tenure(&words).ok();
    let verbose = ann.tenure(&["whoami", "-v"]).ok().stdout;
    for part in ["named by its directory", "outside the git directory"] {
        assert!(verbose.contains(part), "{verbose}");
    }
    let brief = ann.tenure(&["whoami"]).ok().stdout;
    assert!(!brief.contains("named by its directory"), "{brief}");
}

fn linked(env: &Env) -> PathBuf {
    let [repo, _] = clones(env, b"");
    std::fs::create_dir_all(repo.join("src")).expect("it is ours");
    std::fs::write(repo.join("src/b.rs"), "").expect("it is ours");
    std::os::unix::fs::symlink("src", repo.join("lsrc")).expect("it is ours");
    repo
}

#[test]
fn f_c20_a_file_behind_a_linked_directory_is_one_file() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let repo = linked(&env);
    ann.tenure_in(&repo, &["claim", "path:src/b.rs"]).ok();
    for typed in [
        "path:lsrc/b.rs",
        "path:lsrc/*.rs",
        "path:lsrc",
        "path:lsrc/",
    ] {
        bob.tenure_in(&repo, &["claim", typed]).fails(3);
    }
    let said = bob.tenure_in(&repo, &["claim", "path:lsrc/c.rs"]).ok();
    assert!(said.stderr.contains("symbolic link"), "{said}");
}

#[test]
fn f_c20_a_colon_in_the_name_of_a_file_is_part_of_it() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let repo = linked(&env);
    let key = |said: Value| text(&said["claim"]["key"]);
    let said = ann.tenure_in(&repo, &["claim", "path:src/a:b.rs", "--json"]);
    assert_eq!(key(said.ok().json()), r"path:acme/web:src/a\:b.rs");
    bob.tenure_in(&repo, &["claim", "path:src/a:b.rs"]).fails(3);
    bob.tenure_in(&repo, &["claim", "path:acme/web:src/a:b.rs"])
        .fails(3);
    bob.tenure_in(&repo, &["claim", "path:src/axb.rs"]).ok();
}

#[test]
fn a_write_is_found_behind_links_and_steps_that_lead_nowhere() {
    let env = env();
    let (repo, a, b) = pair(&env);
    std::fs::create_dir_all(repo.join("src")).expect("it is ours");
    std::os::unix::fs::symlink("src", repo.join("lsrc")).expect("it is ours");
    let block = ["--mode", "block"];
    assert_eq!(a.write(&block, &repo.join("src/a.rs")), Value::Null);
    // Only the question is asked: a program cannot write where a directory is missing, an agent can.
    let asks = |path: &str| {
        let input = json!({"file_path": repo.join(path)});
        let tool = json!({"tool_name": "Write", "tool_input": input});
        b.event(&block, "PreToolUse", tool)
    };
    for path in ["nope/../src/a.rs", "lsrc/a.rs", "nope/../lsrc/a.rs"] {
        let answer = asks(path);
        assert!(denied(&answer).is_some(), "{path}: {answer}");
    }
    a.agent.tenure_in(&repo, &["claim", "path:src/x:y.rs"]).ok();
    let answer = asks("src/x:y.rs");
    assert!(denied(&answer).is_some(), "{answer}");
}

#[test]
fn a_relative_state_directory_and_a_misspelt_token_are_refused() {
    let (env, [ann]) = crew(["ann"]);
    let error = ann
        .tenure_env(&[("TENURE_HOME", Some("state"))], &["whoami", "--json"])
        .fails(8)
        .json();
    let message = text(&error["error"]["message"]);
    assert!(message.contains("is not an absolute path"), "{message}");
    assert!(!env.work().join("state").exists());
    let id = text(&run(&ann, 0, "whoami")["session"]["id"]);
    let helper = env.agent("helper");
    for (life, code) in [("1", 0), ("+1", 6), ("01", 6)] {
        let token = format!("{id}.{life}");
        let said = helper.tenure_env(&[("TENURE_SESSION", Some(&token))], &["whoami"]);
        assert_eq!(said.code == 0, code == 0, "{life}: {said}");
    }
    refused(&ann, 2, &["tell", "ann", "\u{200b}\u{e0041}"]);
}

#[test]
fn text_from_outside_brings_no_colours_of_its_own() {
    let env = env();
    let shell = env.shell_at_terminal();
    let fake = "\u{1b}[32mfooled\u{1b}[0m";
    for words in [
        &["register", "--title", fake][..],
        &["claim", "wp:1", "--note", fake],
        &["tell", "human", fake],
    ] {
        shell.tenure(words).ok();
    }
    for verb in [
        "log",
        "why wp:1",
        "status",
        "ps",
        "claims",
        "whoami",
        "show human",
    ] {
        shell
            .line(&format!("TERM=xterm tenure {verb} >/dev/tty 2>&1"))
            .ok();
    }
    let shown = shell.shown();
    assert!(!shown.contains("\u{1b}[32mfooled"), "{shown:?}");
    assert!(shown.contains("fooled"), "{shown:?}");
    assert!(shown.contains("\u{1b}[32m"), "our own colours: {shown:?}");
}

#[test]
fn json_spells_out_what_a_terminal_or_a_reader_cannot_see() {
    let (_env, [ann]) = crew(["ann"]);
    let hidden = "a\u{7f}\u{9b}\u{202e}\u{2066}\u{e0041}z";
    ann.tenure(&["claim", "wp:1", "--note", hidden]).ok();
    let said = ann.tenure(&["claims", "--json"]).ok();
    let spelt = r"a\u007f\u009b\u202e\u2066\udb40\udc41z";
    assert!(said.stdout.contains(spelt), "{said}");
    assert_eq!(said.json()["claims"][0]["note"], hidden);
}
