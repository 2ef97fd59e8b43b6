//! The plugin of opencode, run by node with a client that a test makes up and a program in place of tenure.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tenure_testkit::{Cmd, Env, Output};

use crate::env;
use crate::support::skip::skipped;

/// Runs a script beside the installed plugin, `tenure.mjs`, which starts this program. None if there is no node.
fn run(env: &Env, script: &str, program: &str) -> Option<Output> {
    let agent = env.agent("runner");
    if agent.run(Cmd::shell("node --version")).code != 0 {
        skipped("there is no node");
        return None;
    }
    env.tenure(&["install", "opencode", "--answers"]).ok();
    let text = installed(env);
    assert!(text.contains("const ANSWERS = true\n"), "{text}");
    let path = env.work().join("program");
    let lines = text
        .lines()
        .map(|line| match line.strip_prefix("const PROGRAM = ") {
            Some(_) => format!("const PROGRAM = {}", json!(path)),
            None => line.to_owned(),
        });
    let lines: Vec<String> = lines.collect();
    fs::write(env.work().join("tenure.mjs"), lines.join("\n")).expect("it is written");
    fs::write(env.work().join("run.mjs"), script).expect("it is written");
    fs::write(&path, program).expect("it is written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("it is written");
    Some(agent.run(Cmd::shell("node run.mjs").dir(&env.work())).ok())
}

fn installed(env: &Env) -> String {
    fs::read_to_string(env.home().join(".config/opencode/plugin/tenure.js"))
        .expect("it is installed")
}

/// What opencode calls, with a client that writes down what is posted.
const ANSWERS: &str = r#"
import { Tenure } from "./tenure.mjs"
import { renameSync, unlinkSync, writeFileSync } from "node:fs"
const posts = []
let posted = () => {}
const client = { _client: { post: async (said) => { posts.push(said); posted() } }, session: { get: async () => ({ data: {} }) } }
const plugin = await Tenure({ client, directory: "/w" })
const event = (type, properties) => plugin.event({ event: { type, properties } })
const answer = async (said) => {
  const done = new Promise((resolve) => { posted = resolve })
  writeFileSync("answer.new", JSON.stringify(said))
  renameSync("answer.new", "answer")
  await done
  unlinkSync("answer")
}
const permission = (id) => event("permission.asked", { id, sessionID: "s", permission: "bash", patterns: ["touch a"], metadata: { command: "touch a" } })
await permission("per_1")
await answer({ decision: "allow" })
await permission("per_2")
await answer({ decision: "deny", message: "no" })
await event("question.asked", { id: "que_1", sessionID: "s", questions: [{ question: "Which?", options: [{ label: "Red" }] }] })
await answer({ decision: "answer", answers: [["Red"]] })
await event("question.asked", { id: "que_2", sessionID: "s", questions: [{ question: "Which?", options: [{ label: "Red" }] }] })
await answer({ decision: "deny", message: "no" })
// Answered in opencode itself, before its process was started, and after.
const asked = permission("per_3")
await event("permission.replied", { sessionID: "s", requestID: "per_3", reply: "once" })
await asked
await permission("per_4")
await event("permission.replied", { sessionID: "s", requestID: "per_4", reply: "once" })
await permission("per_5")
await answer({ decision: "allow" })
await event("permission.asked", { id: "per_6", sessionID: "s", permission: "edit", patterns: ["a"], metadata: { filepath: "/w/a", diff: "+x" } })
await answer({ decision: "allow" })
console.log(JSON.stringify(posts.map(({ url, path, body }) => [url, path.requestID, body ?? null])))
process.exit(0)
"#;

/// Keeps its event and waits for the answer if it is the process that waits; ended when the plugin ends it.
const ANSWERING: &str = "#!/bin/sh\ncase \"$*\" in\n*--answers*) cat >asked; while [ ! -f answer ]; do sleep 0.05; done; cat answer;;\n*) cat >/dev/null;;\nesac\n";

#[test]
fn the_plugin_sends_opencode_an_answer_for_that_one_request() {
    let env = env();
    let Some(said) = run(&env, ANSWERS, ANSWERING) else {
        return;
    };
    let (permission, question) = (
        "/permission/{requestID}/reply",
        "/question/{requestID}/reply",
    );
    let expected = json!([
        [permission, "per_1", {"reply": "once"}],
        [permission, "per_2", {"reply": "reject", "message": "no"}],
        [question, "que_1", {"answers": [["Red"]]}],
        ["/question/{requestID}/reject", "que_2", null],
        [permission, "per_5", {"reply": "once"}],
        [permission, "per_6", {"reply": "once"}],
    ]);
    let posted: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(posted, expected);
    // The process that waits is told the file by the name that every other event has for it.
    let asked = fs::read_to_string(env.work().join("asked")).unwrap();
    let asked: Value = serde_json::from_str(&asked).unwrap();
    let input = json!({"filePath": "/w/a", "filepath": "/w/a", "diff": "+x", "patterns": ["a"]});
    assert_eq!(asked["tool_input"], input);
    // Without the switch nothing is offered.
    env.tenure(&["install", "opencode"]).ok();
    let text = installed(&env);
    assert!(text.contains("const ANSWERS = false\n"), "{text}");
}

/// A client of another version: one call fails at once, the others are not there.
const STRANGE_CLIENT: &str = r#"
import { Tenure } from "./tenure.mjs"
let reached
const prompted = new Promise((resolve) => { reached = resolve })
const client = {
  session: { get promptAsync() { reached(); return undefined } },
  tui: { showToast() { throw new Error("no screen") } },
}
const plugin = await Tenure({ client, directory: "/w" })
await plugin.event({ event: { type: "session.idle", properties: { sessionID: "s" } } })
await prompted
const before = async (input, output) => {
  try {
    await plugin["tool.execute.before"](input, output)
    return null
  } catch (error) {
    return error.message
  }
}
const blocked = await before({ sessionID: "s", tool: "bash" }, { args: {} })
const strange = await before(null, null)
console.log(JSON.stringify([blocked, strange]))
process.exit(0)
"#;

/// Has a message that starts a turn, a warning for the person, and a reason to block a call.
const TALKING: &str = "#!/bin/sh\ncat >/dev/null\ncase \"$*\" in\n*--wait*) echo 'go on';;\n*) echo '{\"wait\": true, \"message\": \"look\", \"block\": \"it is held\"}';;\nesac\n";

#[test]
fn nothing_that_opencodes_client_lacks_fails_opencode_or_hides_a_block() {
    let env = env();
    let Some(said) = run(&env, STRANGE_CLIENT, TALKING) else {
        return;
    };
    let said: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(said, json!(["it is held", null]));
}
