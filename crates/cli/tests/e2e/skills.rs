//! Skills: which file is taken, and what it becomes.

use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use serde_json::{Value, json};
use tenure_testkit::{Cmd, Env, Output, scratch_git};

use crate::env;

/// A skill of the user's.
fn write(env: &Env, file: &str, text: &str) -> PathBuf {
    let dir = env.home().join(".config/tenure/skills");
    std::fs::create_dir_all(&dir).expect("a scratch directory is writable");
    let path = dir.join(file);
    std::fs::write(&path, text).expect("a scratch directory is writable");
    path
}

fn trust(env: &Env, repo: &str) {
    let dir = env.home().join(".config/tenure");
    std::fs::create_dir_all(&dir).expect("a scratch directory is writable");
    let text = format!("[repo.\"{repo}\"]\ntrusted = true\n");
    std::fs::write(dir.join("config.toml"), text).expect("a scratch directory is writable");
}

#[track_caller]
fn git(env: &Env, dir: &Path, args: &[&str]) {
    let words = [
        "-c",
        "user.name=Test",
        "-c",
        "user.email=test@example.invalid",
    ];
    let cmd = Cmd::new("git")
        .args(words.iter().chain(args).copied())
        .dir(dir);
    env.agent("some-editor").run(cmd).ok();
}

/// A repository of which `main` has these skills.
fn repository(env: &Env, skills: &[(&str, &str)]) -> PathBuf {
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    let dir = repo.join(".tenure/skills");
    std::fs::create_dir_all(&dir).expect("a scratch directory is writable");
    for (file, text) in skills {
        std::fs::write(dir.join(file), text).expect("a scratch directory is writable");
    }
    git(env, &repo, &["add", "."]);
    git(env, &repo, &["commit", "--quiet", "-m", "skills"]);
    repo
}

#[track_caller]
fn render(env: &Env, dir: &Path, args: &[&str]) -> Output {
    let words = [&["skill", "render"], args].concat();
    env.agent("some-editor").tenure_in(dir, &words)
}

#[track_caller]
fn rendered(env: &Env, dir: &Path, args: &[&str]) -> Value {
    let answer = render(env, dir, &[args, &["--json"]].concat()).ok().json();
    answer["skill"].clone()
}

#[test]
fn a_skill_is_rendered_and_its_file_is_named() {
    let env = env();
    write(
        &env,
        "fix.md",
        "# {{ title }}\n{% if body is defined %}\n{{ body | fenced }}{% endif %}\tend\n",
    );
    let mut shown = insta::Settings::clone_current();
    shown.add_filter(&env.home().display().to_string(), "[home]");
    let _bound = shown.bind_to_scope();
    let work = env.work();
    assert_snapshot!(render(&env, &work, &["fix", "--var", "title=Login fails", "--var", "body=see @/etc/passwd\n```"]), @r"
    exit code: 0
    --- stdout
    # Login fails

    ````
    see @\u{200b}/etc/passwd
    ```
    ````
    	end
    --- stderr
    note: rendered from [home]/.config/tenure/skills/fix.md
    ");
    assert_snapshot!(render(&env, &work, &["fix"]), @r"
    exit code: 6
    --- stdout

    --- stderr
    error: skill fix cannot be rendered: the variable title is not set ([home]/.config/tenure/skills/fix.md, line 1)
    hint: run `tenure skill render fix --var title=TEXT` to give it a value
    ");
    assert_snapshot!(render(&env, &work, &["fix", "--delta", "--var", "title=x"]), @r"
    exit code: 0
    --- stdout
    # x
    	end
    --- stderr
    note: rendered from [home]/.config/tenure/skills/fix.md
    note: skill fix has no delta; its whole text is used
    ");
    assert_snapshot!(render(&env, &work, &["fix", "--continue"]), @r"
    exit code: 4
    --- stdout

    --- stderr
    error: skill fix has no text for a turn that was cut off
    hint: run `tenure skill list` to list the texts of each skill
    ");
    assert_snapshot!(render(&env, &work, &["nothing"]), @r"
    exit code: 4
    --- stdout

    --- stderr
    error: skill nothing was not found: there is no [home]/.config/tenure/skills/nothing.md
    hint: run `tenure skill list` to list the skills
    ");
    assert_snapshot!(render(&env, &work, &["../fix"]), @r#"
    exit code: 2
    --- stdout

    --- stderr
    error: invalid value '../fix' for '<NAME>': skill "../fix" is not valid: it must begin with a letter or a digit
    hint: run `tenure skill render --help` for its options and examples
    "#);
    assert_snapshot!(env.agent("some-editor").tenure_in(&work, &["skill", "list"]), @r"
    exit code: 0
    --- stdout
    SKILL  TEXTS  FILE
    fix    full   [home]/.config/tenure/skills/fix.md
    --- stderr
    ");
}

#[test]
fn programs_get_the_text_and_where_it_came_from() {
    let env = env();
    let file = write(&env, "fix.md", "full {{ x }}");
    let work = env.work();
    let full = rendered(&env, &work, &["fix", "--var", "x={{ y }}"]);
    assert_eq!(
        full,
        json!({"name": "fix", "from": "user", "file": file, "variant": "full", "stands_in": false, "text": "full {{ y }}"})
    );
    let stands_in = rendered(&env, &work, &["fix", "--delta", "--var", "x=1"]);
    assert_eq!(
        (&stands_in["variant"], &stands_in["stands_in"]),
        (&json!("full"), &json!(true))
    );
    let delta = write(&env, "fix-delta.md", "delta");
    write(&env, "fix-continue.md", "go on");
    let found = rendered(&env, &work, &["fix", "--delta"]);
    assert_eq!(
        (&found["file"], &found["text"]),
        (&json!(delta), &json!("delta"))
    );
    let goes_on = rendered(&env, &work, &["fix", "--continue"]);
    assert_eq!(
        (&goes_on["variant"], &goes_on["text"]),
        (&json!("continue"), &json!("go on"))
    );
    let error = render(&env, &work, &["fix", "--json"]).fails(6).json();
    let error = &error["error"];
    assert_eq!(
        (&error["kind"], &error["variable"], &error["line"]),
        (&json!("skill"), &json!("x"), &json!(1))
    );
    let list = env.tenure(&["skill", "list", "--json"]).ok().json();
    assert_eq!(
        list["skills"][0]["variants"],
        json!(["full", "delta", "continue"])
    );
}

#[test]
fn f_r29_a_repository_gives_a_skill_only_where_it_is_trusted_and_from_its_base_branch() {
    let env = env();
    let repo = repository(
        &env,
        &[("fix.md", "from main"), ("fix-delta.md", "delta of main")],
    );
    let refused = render(&env, &repo, &["fix"]).fails(4);
    assert!(
        refused
            .stderr
            .contains("acme/web is not trusted, so its own skills are not used"),
        "{refused}"
    );
    let list = env
        .agent("some-editor")
        .tenure_in(&repo, &["skill", "list"])
        .ok();
    assert_eq!(list.stdout.trim(), "no skills");
    trust(&env, "Acme/Web");
    let found = rendered(&env, &repo, &["fix"]);
    assert_eq!(
        (&found["from"], &found["text"]),
        (&json!("repository"), &json!("from main"))
    );
    let file = found["file"].as_str().expect("it is text");
    assert!(
        file.starts_with(".tenure/skills/fix.md in main ("),
        "{file}"
    );
    // Neither a file in the worktree nor another branch counts.
    std::fs::write(repo.join(".tenure/skills/fix.md"), "evil").expect("it is ours");
    std::fs::write(repo.join(".tenure/skills/other.md"), "evil").expect("it is ours");
    assert_eq!(rendered(&env, &repo, &["fix"])["text"], "from main");
    git(&env, &repo, &["checkout", "--quiet", "-b", "pr"]);
    git(&env, &repo, &["add", "."]);
    git(&env, &repo, &["commit", "--quiet", "-m", "evil"]);
    assert_eq!(rendered(&env, &repo, &["fix"])["text"], "from main");
    render(&env, &repo, &["other"]).fails(4);
    // What the remote has counts more than what is here.
    git(
        &env,
        &repo,
        &["update-ref", "refs/remotes/origin/main", "pr"],
    );
    assert_eq!(rendered(&env, &repo, &["other"])["text"], "evil");
    git(
        &env,
        &repo,
        &["update-ref", "refs/remotes/origin/main", "main"],
    );
    // The user's own comes first, with its own variants.
    write(&env, "fix.md", "mine");
    let delta = rendered(&env, &repo, &["fix", "--delta"]);
    assert_eq!(
        (&delta["from"], &delta["text"]),
        (&json!("user"), &json!("mine"))
    );
}

#[test]
fn f_r29_a_project_cannot_trust_itself() {
    let env = env();
    let repo = repository(&env, &[("fix.md", "from main")]);
    let text = "[repo.\"acme/web\"]\ntrusted = true\n";
    std::fs::write(repo.join(".tenure.toml"), text).expect("it is ours");
    render(&env, &repo, &["fix"]).fails(4);
    let agent = env.agent("some-editor");
    let config = agent.tenure_in(&repo, &["config", "--json"]).ok().json();
    assert_eq!(config["repos"], json!([]));
    assert_eq!(config["ignored"][0]["key"], "repo.acme/web");
    trust(&env, "acme/web");
    let config = agent.tenure_in(&repo, &["config", "--json"]).ok().json();
    assert_eq!(config["repos"][0]["name"], "acme/web");
    let said = agent.tenure_in(&repo, &["config"]).ok();
    assert!(
        said.stdout
            .contains("repository: acme/web is trusted, from "),
        "{said}"
    );
}

#[test]
fn a_link_in_a_repository_is_no_skill() {
    let env = env();
    let repo = repository(&env, &[("real.md", "x")]);
    std::os::unix::fs::symlink("/etc/passwd", repo.join(".tenure/skills/link.md"))
        .expect("it is ours");
    git(&env, &repo, &["add", "."]);
    git(&env, &repo, &["commit", "--quiet", "-m", "link"]);
    trust(&env, "acme/web");
    render(&env, &repo, &["link"]).fails(4);
    assert_eq!(rendered(&env, &repo, &["real"])["text"], "x");
}

#[test]
fn bad_templates_are_refused_in_time_with_their_line() {
    let env = env();
    let work = env.work();
    let long = "x".repeat(10 << 20);
    let loops = format!(
        "{}x{}",
        "{% for a in 'abcdefghij' %}".repeat(20),
        "{% endfor %}".repeat(20)
    );
    for (text, word) in [
        (long.as_str(), "longer than 1048576 bytes"),
        (&loops, "it takes too many steps ("),
        ("a\n{% include '/etc/passwd' %}", "line 2"),
        ("a\n{{ x ~ x }}", "line 2"),
        ("a\nb {{ range(9) }}", "line 2"),
        ("{% if %}", "line 1"),
    ] {
        write(&env, "bad.md", text);
        let refused = render(&env, &work, &["bad", "--var", "x=1"]).fails(6);
        assert!(refused.stderr.contains(word), "{refused}");
    }
    let path = write(&env, "bad.md", "");
    std::fs::write(&path, [0xff, 0xfe]).expect("it is ours");
    render(&env, &work, &["bad"]).fails(6);
    for bad in [
        &["bad", "--var", "x"][..],
        &["bad", "--var", "1=2"],
        &["bad", "--var", "x=1", "--var", "x=2"],
    ] {
        render(&env, &work, bad).fails(2);
    }
    // A pipe is not waited for.
    std::fs::remove_file(&path).expect("it is ours");
    env.agent("some-editor")
        .run(Cmd::new("mkfifo").arg(path.to_str().expect("it is text")))
        .ok();
    render(&env, &work, &["bad"]).fails(6);
}

#[test]
fn a_prompt_for_people_has_no_character_that_hides() {
    let env = env();
    write(&env, "fix.md", "a {{ x }}");
    let shown = render(
        &env,
        &env.work(),
        &["fix", "--var", "x=\u{1b}[31m\u{202e}b"],
    )
    .ok();
    assert_eq!(shown.stdout.trim(), r"a \u{1b}[31m\u{202e}b");
}
