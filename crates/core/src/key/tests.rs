use super::*;
use crate::repository::Home;

fn web(dir: &str) -> Worktree {
    Worktree {
        repository: Repository {
            home: Home {
                dir: "/r/.git".into(),
                mark: None,
            },
            remote: Some("acme/web".into()),
        },
        root: "/r".into(),
        dir: dir.into(),
    }
}

/// The directories of a machine with the repository.
fn look(path: &str) -> PathKind {
    match path {
        "/etc" | "/lib" | "/r" | "/r/src" | "/r/src/db" | "/r/docs" | "/r/lib" => {
            PathKind::Directory
        }
        "/etc/passwd" | "/r/src/a.rs" | "/r/x:y" => PathKind::Other,
        _ => PathKind::Nothing,
    }
}

/// A worktree in which `lsrc` is a link to `src`, `here` one to the root, and `out` one to a place outside.
fn resolve(path: &str) -> Option<String> {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let first = match first {
        "lsrc" => "src",
        "here" => "",
        "out" => return None,
        other => other,
    };
    Some(format!("{first}/{rest}").trim_matches('/').to_owned())
}

fn typed(text: &str, worktree: Option<&Worktree>) -> Result<TypedKey, Malformed> {
    let here = PathContext {
        worktree,
        host: None,
        exists: true,
        look: &look,
        resolve: &resolve,
    };
    Key::complete(text, &here)
}

#[test]
fn f_c20_short_forms_and_spellings_are_one_key() {
    let full = Key::parse("issue:acme/web#42").unwrap();
    for text in [
        "#42",
        "#042",
        "issue:42",
        "issue:#42",
        "issue:acme/web#42",
        "issue:Acme/Web.git#042",
        "https://github.com/acme/web/issues/42",
    ] {
        let found = typed(text, Some(&web(""))).map(|typed| typed.key);
        assert_eq!(found, Ok(full.clone()), "{text}");
    }
    for text in ["pr:7", "mr:7", "!7", "mr:acme/web!7", "pr:ACME/web#07"] {
        let found = typed(text, Some(&web(""))).map(|typed| typed.key);
        assert_eq!(found, Key::parse("pr:acme/web#7"), "{text}");
    }
    let composed = Key::parse("doc:caf\u{e9}").unwrap();
    assert_eq!(Key::parse("doc:cafe\u{301}"), Ok(composed));
    for bad in [
        "path:",
        "path:acme/web:",
        "path::x",
        "path:acme/web:../x",
        "path:acme/web:[z-a]",
    ] {
        assert!(Key::parse(bad).is_err(), "{bad:?} was accepted");
        assert!(typed(bad, None).is_err(), "{bad:?} was accepted");
    }
    assert!(typed("path:src/**", None).is_err());
}

#[test]
fn f_c20_a_path_is_what_it_means_where_it_was_typed() {
    for (dir, text, glob, surprises) in [
        ("", "src/a.rs", "src/a.rs", false),
        ("", "src", "src/**", true),
        ("", "src/", "src/**", false),
        ("", "src/**/", "src/**", false),
        ("", "/src", "src/**", true),
        ("", "/lib/x", "lib/x", false),
        ("", "/new/x", "new/x", false),
        ("", "/r/src/a.rs", "src/a.rs", false),
        ("", "/r", "**", false),
        ("", ".", "**", false),
        ("src", "db", "src/db/**", true),
        ("src", "*.rs", "src/*.rs", false),
        ("src", "docs/x", "src/docs/x", true),
        ("src", "/docs/x", "docs/x", false),
        ("src", "../docs/x", "docs/x", false),
        ("src", "acme/web:src", "src/**", true),
        ("src", "ACME/web.git:/x", "x", false),
        ("src", "/r/.git:x", "x", false),
    ] {
        let found = typed(&format!("path:{text}"), Some(&web(dir))).unwrap();
        let name = if text.starts_with("/r/.git:") {
            "/r/.git"
        } else {
            "acme/web"
        };
        assert_eq!(
            found.key.as_str(),
            format!("path:{name}:{glob}"),
            "{text} in {dir:?}"
        );
        assert_eq!(
            found.note.is_some(),
            surprises,
            "{text} in {dir:?}: {:?}",
            found.note
        );
    }
    for (dir, text) in [
        ("", "../x"),
        ("src", "../../x"),
        ("", "/etc/passwd"),
        ("", "a/*/../b"),
    ] {
        assert!(
            typed(&format!("path:{text}"), Some(&web(dir))).is_err(),
            "{text}"
        );
    }
    // Nothing is known about the files of another repository.
    let other = typed("path:acme/api:src", Some(&web(""))).unwrap();
    assert_eq!(
        (other.key.as_str(), other.note),
        ("path:acme/api:src", None)
    );
}

#[test]
fn f_c20_a_path_through_a_link_is_the_path_behind_it() {
    for (text, glob, surprises) in [
        ("lsrc/b.rs", "src/b.rs", true),
        ("lsrc/**/b.rs", "src/**/b.rs", true),
        ("lsrc", "src/**", true),
        ("lsrc/*", "src/*", true),
        ("acme/web:lsrc/b.rs", "src/b.rs", true),
        ("here/docs/x", "docs/x", true),
        ("src/b.rs", "src/b.rs", false),
        ("{lsrc,docs}/b", "{lsrc,docs}/b", false),
        ("out/b.rs", "out/b.rs", false),
    ] {
        let found = typed(&format!("path:{text}"), Some(&web(""))).unwrap();
        assert_eq!(
            found.key.as_str(),
            format!("path:acme/web:{glob}"),
            "{text}"
        );
        assert_eq!(found.note.is_some(), surprises, "{text}: {:?}", found.note);
    }
    // Nothing is known about the links of another repository.
    let other = typed("path:acme/api:lsrc/b.rs", Some(&web(""))).unwrap();
    assert_eq!(other.key.as_str(), "path:acme/api:lsrc/b.rs");
}

#[test]
fn a_colon_may_be_in_the_name_of_a_file() {
    for (dir, text, key) in [
        ("", "src/a:b.rs", r"acme/web:src/a\:b.rs"),
        ("", "src/a:*.rs", r"acme/web:src/a\:*.rs"),
        ("", r"src/a\:b.rs", r"acme/web:src/a\:b.rs"),
        ("", "/r/src/a:b:c", r"acme/web:src/a\:b\:c"),
        ("", "x:y", r"acme/web:x\:y"),
        ("", "acme/web:src/a:b.rs", r"acme/web:src/a\:b.rs"),
        ("", "acme/api:src/a:b.rs", r"acme/api:src/a\:b.rs"),
        ("", "/r/.git:src/a.rs", "/r/.git:src/a.rs"),
        ("", "api:x", "api:x"),
        ("src", "db/a:b", r"acme/web:src/db/a\:b"),
    ] {
        let found = typed(&format!("path:{text}"), Some(&web(dir))).unwrap();
        assert_eq!(found.key.as_str(), format!("path:{key}"), "{text}");
        assert_eq!(Key::parse(found.key.as_str()), Ok(found.key.clone()));
    }
    let key = Key::parse(r"path:acme/web:src/a:b.rs").unwrap();
    let (name, glob) = key.path().unwrap();
    assert_eq!(name, "acme/web");
    assert!(glob.matches("src/a:b.rs") && !glob.matches("src/axb.rs"));
    let directory = Key::parse("path:/x:y/.git:src/a").unwrap();
    assert_eq!(directory.path_parts(), Some(("/x:y/.git", "src/a")));
}

#[test]
fn a_short_form_without_a_remote_is_refused_not_guessed() {
    let refused =
        |text: &str, worktree: Option<&Worktree>| typed(text, worktree).unwrap_err().to_string();
    for short in ["#42", "issue:42"] {
        let why = refused(short, None);
        let missing = "not in a git repository; write issue:OWNER/NAME#42";
        assert!(why.contains(missing), "{why}");
    }
    let mut local = web("");
    local.repository.remote = None;
    let why = refused("#42", Some(&local));
    let missing = "has no remote that names it; write issue:OWNER/NAME#42";
    assert!(why.contains(missing), "{why}");
    let path = typed("path:x", Some(&local)).unwrap();
    assert_eq!(path.key.as_str(), "path:/r/.git:x");
}

#[test]
fn f_c17_malformed_keys_are_refused() {
    let long = format!("wp:{}", "x".repeat(510));
    assert_eq!(long.len(), 513);
    let bad = [
        "",
        "x",
        ":",
        "wp:",
        ":x",
        "WP:1",
        "1p:x",
        "wp: x",
        "wp:x ",
        "wp:a\nb",
        "wp:a\0b",
        "wp:a\u{200b}b",
        "wp:a\u{202e}b",
        "wp:a\u{e000}",
        "wp:\u{a0}x",
        "wp:a\u{378}",
        "wp:a\u{3164}",
        "wp:a\u{fe0f}",
        "path:acme/web:a\u{2800}",
        "#",
        "#x",
        "issue:7",
        "mr:7",
        "issue:#",
        "issue:acme/web#",
        "issue:acme/web#x",
        "issue:../x#1",
        "issue:acme/../x#1",
        "pr:./x#1",
        "path:../x:src",
        &format!("path:a/b:{}", "*a".repeat(200)),
        "issue:\u{ff14}\u{ff12}",
        "#\u{ff14}\u{ff12}",
        "issue:acme/web#\u{ff14}\u{ff12}",
        "issue:acme/web#4\u{662}",
        "issue:acme/web\u{ff03}42",
        &long,
    ];
    for text in bad {
        assert!(typed(text, None).is_err(), "{text:?} was accepted");
    }
    assert!(Key::parse(&long[..512]).is_ok());
    assert!(Key::parse("wp:041/WP03 second part").is_ok());
}

#[test]
fn f_c20_a_stored_key_keeps_its_text_and_knows_its_canonical_one() {
    for (old, now) in [
        ("issue:Acme/Web.git#042", "issue:acme/web#42"),
        ("mr:acme/web#7", "pr:acme/web#7"),
        ("path:Acme/Web:src/**", "path:acme/web:src/**"),
        ("path:/R/.git:src/**", "path:/R/.git:src/**"),
        ("wp:a\u{3164}", "wp:a\u{3164}"),
        ("issue:JIRA-042", "issue:JIRA-042"),
    ] {
        let key = Key::stored(old).unwrap();
        assert_eq!((key.as_str(), key.canonical().as_str()), (old, now));
    }
}

#[test]
fn on_a_store_of_several_machines_a_directory_is_named_with_its_machine() {
    let host = HostId::new("m1-a");
    let repository = Repository {
        home: Home {
            dir: "/w:x/.git".into(),
            mark: None,
        },
        remote: None,
    };
    let worktree = Worktree {
        repository: repository.on(&host),
        root: "/w:x".into(),
        dir: String::new(),
    };
    let here = PathContext {
        worktree: Some(&worktree),
        host: Some(&host),
        exists: true,
        look: &look,
        resolve: &resolve,
    };
    for text in [
        "path:a.rs",
        "path:/w:x/.git:a.rs",
        "path:@m1a/w:x/.git:a.rs",
    ] {
        let key = Key::complete(text, &here).unwrap().key;
        assert_eq!(key.as_str(), "path:@m1a/w:x/.git:a.rs", "{text}");
        assert_eq!(key.path_parts(), Some(("@m1a/w:x/.git", "a.rs")));
    }
    let named = |text: &str| Key::complete(text, &here).unwrap().key.to_string();
    assert_eq!(named("path:x/n:a.rs"), "path:x/n:a.rs");
    assert_eq!(named("path:@m2b/w/.git:a.rs"), "path:@m2b/w/.git:a.rs");
    assert_eq!(named("path:/v/.git:a.rs"), "path:@m1a/v/.git:a.rs");
}
