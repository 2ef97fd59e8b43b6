//! Transcripts that are not where, or not what, they should be.

use std::fs;

use tenure_testkit::Cmd;

use super::page::Page;
use crate::env;
use crate::support::installed::put;
use crate::support::line::{handle, register};
use crate::support::preload::library;
use crate::support::transcript::{claude, file_of, line_of};

#[test]
fn transcripts() {
    let env = env();
    let mut page = Page::new("60-transcripts-refused", &env);
    let codex = env.agent("codex");
    let id = "5f0c7a10-3b8e-4d27-9c41-8e2b6f1d0a93";
    register(&codex, "codex", &format!("--native-id {id}"));
    let ann = claude(&env, "aaa");
    let (me, own) = (handle(&ann), file_of(&env, "aaa"));
    page.learn(&env);
    page.title("A conversation without a file, or with several");
    let shows = format!("tenure transcript show {}", handle(&codex));
    page.run(&codex, &shows);
    let sessions = env.home().join(".codex/sessions/2026/11/15");
    for time in ["2026-11-15T08-00-00", "2026-11-15T08-05-00"] {
        put(&sessions.join(format!("rollout-{time}-{id}.jsonl")), "{}\n");
    }
    page.run(&codex, &shows);
    page.title("Lines that are not of this conversation");
    let appends = format!("tenure transcript append {me}");
    for lines in ["{\"n\":1}\nno\nno\n", "no\nno\nno\n"] {
        let cmd = Cmd::new("tenure").args(["transcript", "append", &me]);
        let typed = format!("printf '{}' | {appends}", lines.replace('\n', "\\n"));
        page.show(
            ann.pid(),
            &typed,
            ann.run(cmd.stdin(lines)),
            Some("invalid"),
        );
    }
    page.title("A file that another program changes at the same time");
    let changed = library(&env, "changed_between");
    let cmd = Cmd::new("tenure")
        .args(["transcript", "append", &me])
        .env("LD_PRELOAD", changed)
        .env("TENURE_TEST_CHANGED", own.display().to_string())
        .stdin("{\"n\":1,\"text\":\"hello\"}\n");
    let typed = format!("echo '{{\"n\":1,\"text\":\"hello\"}}' | {appends}");
    page.show(ann.pid(), &typed, ann.run(cmd), Some("store_unavailable"));
    page.title("Something else in the place of a file");
    let verifies = format!("tenure transcript verify {me}");
    fs::remove_file(&own).expect("it is ours");
    fs::create_dir(&own).expect("the home is ours");
    page.run(&ann, &verifies);
    let folder = own.parent().expect("it has a folder");
    fs::remove_dir_all(folder).expect("the home is ours");
    fs::write(folder, line_of("aaa")).expect("the home is ours");
    page.run(&ann, &verifies);
    page.check(&env);
}
