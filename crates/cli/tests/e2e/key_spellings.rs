//! One item has one key and one holder, in every spelling.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_testkit::{Agent, Env, Output, scratch_git};

use crate::support::line::{crew, run, text};

fn repository(env: &Env) -> PathBuf {
    let repo = env.dir().join("repo");
    scratch_git(&repo, Some("https://GitHub.com/Acme/Web.git/"));
    for dir in ["src/db", "db", "docs"] {
        std::fs::create_dir_all(repo.join(dir)).expect("a scratch directory is writable");
    }
    std::fs::write(repo.join("src/a.rs"), "").expect("a scratch directory is writable");
    repo
}

#[track_caller]
fn claims(agent: &Agent, dir: &Path, typed: &str) -> (String, Output) {
    let said = agent.tenure_in(dir, &["claim", typed, "--json"]).ok();
    let key = text(&said.json()["claim"]["key"]);
    agent.tenure_in(dir, &["release", &key]).ok();
    (key, said)
}

#[test]
fn f_c20_one_issue_has_one_key_however_it_is_spelt() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let repo = repository(&env);
    ann.tenure_in(&repo, &["claim", "#42"]).ok();
    for typed in [
        "#042",
        "issue:42",
        "issue:#0042",
        "issue:acme/web#42",
        "issue:Acme/Web#42",
        "issue:acme/web.git#42",
        "issue:ACME/web.git#042",
        "issue:/acme//web/#42",
        "https://github.com/Acme/web/issues/42",
        "https://gitlab.com/acme/web/-/issues/42#note_1",
    ] {
        let said = bob.tenure_in(&repo, &["claim", typed, "--json"]).fails(3);
        let error = said.json()["error"].clone();
        assert_eq!(error["key"], "issue:acme/web#42", "{typed}: {error}");
        ann.tenure_in(&repo, &["guard", typed]).ok();
    }
    for typed in [
        "pr:7",
        "mr:7",
        "!7",
        "pr:Acme/Web!07",
        "https://github.com/acme/web/pull/7/files",
    ] {
        assert_eq!(claims(&bob, &repo, typed).0, "pr:acme/web#7", "{typed}");
    }
    // What tenure knows nothing about is compared as it is.
    for typed in [
        "wp:041/WP03",
        "wp:041/wp03",
        "issue:JIRA-042",
        "https://example.com/X",
    ] {
        assert_eq!(claims(&bob, &repo, typed).0, typed);
    }
}

#[test]
fn f_c20_a_path_is_relative_to_where_it_is_typed() {
    let (env, [ann]) = crew(["ann"]);
    let repo = repository(&env);
    let src = repo.join("src");
    let whole = repo.join("src/db/x.rs");
    for (dir, typed, glob) in [
        (&repo, "path:src/db/**", "src/db/**"),
        (&repo, "path:./src//db/**/**", "src/db/**"),
        (&repo, "path:/db/**", "db/**"),
        (&src, "path:db/**", "src/db/**"),
        (&src, "path:./db/**", "src/db/**"),
        (&src, "path:/db/**", "db/**"),
        (&src, "path:../db/**", "db/**"),
        (&src, "path:*.rs", "src/*.rs"),
        (&src, "path:acme/web:db/**", "db/**"),
        (&src, "path:Acme/Web.git:/db/**", "db/**"),
        (
            &src,
            whole.to_str().map(|p| format!("path:{p}")).unwrap().leak(),
            "src/db/x.rs",
        ),
    ] {
        let (key, _) = claims(&ann, dir, typed);
        assert_eq!(
            key,
            format!("path:acme/web:{glob}"),
            "{typed} in {}",
            dir.display()
        );
    }
    for (dir, typed) in [
        (&repo, "path:../x"),
        (&src, "path:../../x"),
        (&repo, "path:src/*/../x"),
        (&repo, "path:/etc/passwd"),
        (&repo, "path:acme/web:../x"),
        (&repo, "path:"),
        (&repo, "path:/"),
    ] {
        if typed == "path:/" {
            assert_eq!(claims(&ann, dir, typed).0, "path:acme/web:**");
            continue;
        }
        let said = ann.tenure_in(dir, &["claim", typed]).fails(2);
        assert!(said.stderr.contains("hint:"), "{said}");
    }
}

#[test]
fn f_c20_a_directory_means_what_is_below_it() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let repo = repository(&env);
    for (dir, typed, glob) in [
        (repo.clone(), "path:src", "src/**"),
        (repo.clone(), "path:src/", "src/**"),
        (repo.clone(), "path:acme/web:src", "src/**"),
        (repo.clone(), "path:new/", "new/**"),
        (repo.clone(), "path:.", "**"),
        (repo.join("src"), "path:.", "src/**"),
        (repo.join("src"), "path:..", "**"),
        (repo.clone(), "path:src/a.rs", "src/a.rs"),
        (repo.clone(), "path:new", "new"),
    ] {
        let (key, _) = claims(&ann, &dir, typed);
        assert_eq!(
            key,
            format!("path:acme/web:{glob}"),
            "{typed} in {}",
            dir.display()
        );
    }
    let said = ann.tenure_in(&repo, &["claim", "path:src"]).ok();
    assert!(
        said.stderr.contains("path:acme/web:src/**") && said.stderr.contains("directory"),
        "{said}"
    );
    bob.tenure_in(&repo, &["claim", "path:src/a.rs"]).fails(3);
    let quiet = ann
        .tenure_in(&repo, &["release", "path:src", "--quiet"])
        .ok();
    assert_eq!(quiet.stderr, "");
}

#[test]
fn f_c20_two_clones_whose_urls_are_spelt_differently_are_one_repository() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    for (place, url) in [
        "git@github.com:acme/web.git",
        "ssh://git@GitHub.com:22/Acme/Web",
        "https://me:secret@github.com/acme/web.git/",
        "https://github.com/ACME/WEB",
    ]
    .iter()
    .enumerate()
    {
        let repo = env.dir().join(place.to_string());
        scratch_git(&repo, Some(url));
        let typed = ["claim", "#42", "--json"];
        match place {
            0 => ann.tenure_in(&repo, &typed).ok(),
            _ => bob.tenure_in(&repo, &typed).fails(3),
        };
    }
}

#[test]
fn f_c20_characters_that_cannot_be_seen_are_refused() {
    let (_env, [ann]) = crew(["ann"]);
    for c in [
        '\u{3164}',
        '\u{fe0f}',
        '\u{115f}',
        '\u{1160}',
        '\u{17b4}',
        '\u{180b}',
        '\u{ffa0}',
        '\u{e0100}',
        '\u{34f}',
        '\u{2800}',
        '\u{200b}',
    ] {
        let said = ann.tenure(&["claim", &format!("wp:4{c}2")]).fails(2);
        assert!(said.stderr.contains("U+"), "{said}");
        ann.tenure(&["mission", "join", &format!("m{c}"), "--role", "dev"])
            .fails(2);
        ann.tenure(&["mission", "join", "m", "--role", &format!("d{c}v")])
            .fails(2);
        ann.tenure(&["meta", "set", &format!("k{c}"), "v"]).fails(2);
    }
    assert_eq!(run(&ann, 0, "claims")["claims"], Value::Array(Vec::new()));
}
