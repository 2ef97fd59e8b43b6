//! The conversation of a run: begun, continued, lost, refused.

use std::path::PathBuf;

use tenure_testkit::real::Real;

use super::{ITEM, Runs, text};
use crate::state::{only, sessions};

of_every_agent! { [fresh resume unknown unusable] }

/// One session, the agent's own id of its conversation, what it used, and its answer.
fn fresh(kind: Real) {
    let runs = Runs::begin(kind);
    let said = runs.run(&["--prompt", "MOCK:say all is well"]).ok();
    assert_eq!(said.stdout, "MOCK-SAID all is well\n", "{said}");
    let run = runs.newest();
    assert_eq!(run["outcome"], "done", "{run:#}");
    assert_eq!(run["exit_code"], 0, "{run:#}");
    assert_eq!(run["before"], serde_json::Value::Null, "{run:#}");
    let session = only(&runs.world);
    assert_eq!(session["handle"], run["session"], "{run:#}\n{session:#}");
    assert_eq!(
        session["native_id"], run["native_id"],
        "{run:#}\n{session:#}"
    );
    assert_eq!(session["state"], "ended", "{session:#}");
    let get = ["conversation", "get", kind.name(), ITEM, "--json"];
    let got = runs.world.tenure(&get).ok().json();
    assert_eq!(
        got["conversation"]["native_id"], run["native_id"],
        "{got:#}"
    );
    let usage = &run["usage"];
    assert!(usage["tokens_in"].as_u64() >= Some(10), "{run:#}");
    assert!(usage["tokens_out"].as_u64() >= Some(5), "{run:#}");
    let costs = usage["cost"].is_number();
    assert_eq!(
        costs,
        matches!(kind, Real::Claude | Real::Opencode),
        "{run:#}"
    );
    runs.cell(
        "fresh",
        if costs {
            "done, with tokens and cost"
        } else {
            "done, with tokens"
        },
    );
}

/// The same conversation and session, and the skill's text for a resume.
fn resume(kind: Real) {
    let runs = Runs::begin(kind);
    runs.skill("answer.md", "FULL-TEXT of {{ item }}\n");
    runs.skill("answer-delta.md", "DELTA-TEXT\n");
    runs.run(&["--skill", "answer"]).ok();
    let first = runs.newest();
    runs.run(&["--skill", "answer"]).ok();
    let second = runs.newest();
    assert_eq!(second["outcome"], "done", "{second:#}");
    assert_eq!(second["before"], first["native_id"], "{second:#}");
    assert_eq!(second["native_id"], first["native_id"], "{second:#}");
    assert_eq!(second["fell_back"], false, "{second:#}");
    assert_eq!(second["session"], first["session"], "{second:#}");
    assert_eq!(
        second["usage"]["tokens_in"], first["usage"]["tokens_in"],
        "of this run alone: {second:#}"
    );
    assert_eq!(sessions(&runs.world).len(), 1);
    let last = runs.last_step();
    assert!(
        last.says("FULL-TEXT") && last.says("DELTA-TEXT"),
        "{:#}",
        last.body
    );
    let told = format!("tenure knows this session as {}", text(&first, "session"));
    assert!(runs.world.mock().was_told(&told), "{told}");
    runs.cell("resume", "the same conversation, with its history");
}

/// The agent deletes conversations; the next run begins anew, once.
fn unknown(kind: Real) {
    let runs = Runs::begin(kind);
    runs.run(&["--prompt", "EARLIER"]).ok();
    let first = runs.newest();
    let id = text(&first, "native_id").to_owned();
    let steps = runs.steps();
    forget(&runs, &id);
    let said = runs.run(&["--prompt", "MOCK:say anew"]).ok();
    assert_eq!(said.stdout, "MOCK-SAID anew\n", "{said}");
    let second = runs.newest();
    assert_eq!(second["outcome"], "done", "{second:#}");
    assert_eq!(second["fell_back"], true, "{second:#}");
    assert_eq!(second["before"], id, "{second:#}");
    assert_ne!(second["native_id"], id, "{second:#}");
    let history = runs.history();
    assert_eq!(history[0]["why"], "unknown", "{history:#}");
    assert_eq!(runs.steps(), 2 * steps, "as often as for the first run");
    assert!(!runs.last_step().says("EARLIER"));
    runs.cell("unknown", "begins anew, once");
}

/// Has the agent lose a conversation behind our back.
fn forget(runs: &Runs, id: &str) {
    if runs.kind == Real::Opencode {
        let delete = ["session", "delete", id];
        let _gone = runs.world.agent(runs.kind).plain().args(&delete).run().ok();
        return;
    }
    let files = transcripts(runs, id);
    assert_eq!(files.len(), 1, "{files:?}");
    std::fs::remove_file(&files[0]).unwrap();
}

/// The files that an agent has of a conversation.
fn transcripts(runs: &Runs, id: &str) -> Vec<PathBuf> {
    let mut open = vec![runs.world.home().join(format!(".{}", runs.kind.name()))];
    let mut found = Vec::new();
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
                continue;
            }
            let name = entry.file_name().into_string().unwrap_or_default();
            let part = if runs.kind == Real::Gemini {
                &id[..8]
            } else {
                id
            };
            if name.contains(part) && name.ends_with(".jsonl") {
                found.push(path);
            }
        }
    }
    found
}

/// The provider refuses the history: nothing is run again, and nothing is resumed until a person decides.
fn unusable(kind: Real) {
    let runs = Runs::begin(kind);
    runs.run(&["--prompt", "EARLIER"]).ok();
    let id = runs.newest()["native_id"].clone();
    let said = runs.run(&["--prompt", "MOCK:fail history"]);
    let run = runs.newest();
    assert_eq!(run["outcome"], "unusable", "{run:#}\n{said}");
    assert_ne!(said.code, 0, "{said}");
    assert_eq!(run["fell_back"], false, "{run:#}");
    assert_eq!(run["native_id"], id, "{run:#}");
    let steps = runs.steps();
    let refused = runs.refused(&[]);
    assert_eq!(refused["kind"], "unusable", "{refused:#}");
    assert_eq!(runs.steps(), steps, "the model was not asked again");
    assert_eq!(runs.all().len(), 2);
    runs.cell("unusable", "unusable, not resumed again");
}
