//! What a power cut must not undo: a file is flushed before it gets its name, its directory after that.

use std::path::{Path, PathBuf};
use std::process::Command;

use tenure_testkit::{Agent, Cmd, Env, scratch_git};

use crate::env;

/// One step, as `durability.c` writes it down.
#[derive(Debug, PartialEq)]
enum Step {
    Flush(PathBuf),
    Rename(PathBuf, PathBuf),
}

/// Compiles the library that is preloaded, with the compiler that tenure itself is built with.
fn recorder(env: &Env) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/durability.c");
    let library = env.dir().join("durability.so");
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &source])
        .output()
        .expect("the C compiler can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    library
}

/// Runs tenure, and returns what it flushed and renamed.
#[track_caller]
fn steps(agent: &Agent, library: &Path, dir: &Path, args: &[&str]) -> Vec<Step> {
    let record = library.with_extension("steps");
    std::fs::write(&record, "").expect("the environment is writable");
    let cmd = Cmd::new("tenure")
        .args(args.iter().copied())
        .env("LD_PRELOAD", library.to_str().expect("text"))
        .env("TENURE_TEST_STEPS", record.to_str().expect("text"))
        .dir(dir);
    let _said = agent.run(cmd).ok();
    let text = std::fs::read_to_string(&record).expect("the record is there");
    text.lines().map(step).collect()
}

fn step(line: &str) -> Step {
    match line.split('\t').collect::<Vec<_>>()[..] {
        ["flush", path, _] => Step::Flush(path.into()),
        ["rename", from, to] => Step::Rename(from.into(), to.into()),
        _ => panic!("{line:?} is not a step"),
    }
}

/// Checks every file that got its name, and returns the names.
#[track_caller]
fn check(steps: &[Step]) -> Vec<PathBuf> {
    let mut named = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let Step::Rename(from, to) = step else {
            continue;
        };
        let dir = to.parent().expect("a file lies in a directory");
        assert!(
            steps[..at].contains(&Step::Flush(from.clone())),
            "{} got its name before it was flushed: {steps:#?}",
            to.display()
        );
        assert!(
            steps[at..].contains(&Step::Flush(dir.to_owned())),
            "the name of {} was not flushed: {steps:#?}",
            to.display()
        );
        named.push(to.clone());
    }
    named
}

#[test]
fn f_k11_every_file_is_flushed_before_it_is_renamed_and_its_directory_after() {
    let env = env();
    let library = recorder(&env);
    let (agent, repo) = (env.agent("ann"), env.dir().join("repo"));
    scratch_git(&repo, None);
    let mirror = env.home().join("mirror.json");
    let settings = env.home().join(".config/tenure");
    std::fs::create_dir_all(&settings).expect("a private home");
    let text = format!(
        "[[mirror]]\nformat = \"pact\"\npath = \"{}\"\n",
        mirror.display()
    );
    std::fs::write(settings.join("config.toml"), text).expect("a private home");

    let pid = agent.pid().to_string();
    let words = [
        "register",
        "--agent",
        "ann",
        "--pid",
        &pid,
        "--native-id",
        "n1",
    ];
    let named = check(&steps(&agent, &library, &repo, &words));
    for file in [&env.state().join("tenure.db"), &mirror] {
        assert!(named.contains(file), "{} in {named:?}", file.display());
    }
    let words = ["install", "claude"];
    let named = check(&steps(&agent, &library, &repo, &words));
    let file = env.home().join(".claude/settings.json");
    assert!(named.contains(&file), "{named:?}");
    let words = ["install", "git"];
    let named = check(&steps(&agent, &library, &repo, &words));
    let file = repo.join(".git/hooks/pre-commit");
    assert!(named.contains(&file), "{named:?}");
}
