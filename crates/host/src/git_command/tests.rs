use super::*;

#[test]
fn a_list_of_worktrees_is_read() {
    let text = b"worktree /r\0HEAD aa\0branch refs/heads/main\0\0worktree /w/x y\0HEAD bb\0detached\0locked tenure: a works here\0prunable gone\0\0worktree /z\0HEAD cc\0locked\0\0";
    let all = listed(text);
    let shown: Vec<(&str, Option<&str>, Option<&str>)> = all
        .iter()
        .map(|one| {
            (
                one.path.to_str().unwrap(),
                one.head.as_deref(),
                one.locked.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("/r", Some("aa"), None),
            ("/w/x y", Some("bb"), Some("tenure: a works here")),
            ("/z", Some("cc"), Some("")),
        ]
    );
    assert_eq!(listed(b""), []);
}

#[test]
fn what_is_left_in_a_worktree_is_read() {
    let found = leftovers(b" M a\0?? b c\0R  new\0old\0!! target/\0");
    assert_eq!(found.changed, ["a", "b c", "new"]);
    assert_eq!(found.ignored, ["target/"]);
    assert!(!found.only_missing);
    assert!(leftovers(b" D a\0 D b\0").only_missing);
    assert!(!leftovers(b" D a\0D  b\0").only_missing);
    assert_eq!(leftovers(b""), Leftovers::default());
}

#[test]
fn files_that_git_does_not_look_at_are_known() {
    assert_eq!(hidden(b"h a b"), Some(Path::new("a b")));
    assert_eq!(hidden(b"S x"), Some(Path::new("x")));
    assert_eq!(
        (hidden(b"H x"), hidden(b"M x"), hidden(b"")),
        (None, None, None)
    );
}

#[test]
fn only_plain_files_of_a_commit_count() {
    let read = |text: &str| blob(text.as_bytes());
    let file = read("100644 blob abc      12\t.tenure/skills/fix.md").unwrap();
    assert_eq!((file.id.as_str(), file.size), ("abc", 12));
    assert!(read("120000 blob abc 12\tlink.md").is_none());
    assert!(read("040000 tree abc -\tdir").is_none());
    assert!(read("").is_none());
}

#[test]
fn an_error_carries_what_git_said() {
    let dir = tempfile::tempdir().unwrap();
    let git = Git::of_worktree(dir.path(), Belief::UserOnly);
    let error = git.worktrees().unwrap_err();
    let said = error.to_string();
    assert!(
        said.starts_with("git worktree list failed: fatal: not a git repository"),
        "{said}"
    );
}
