//! What a session left running in an earlier life still counts when a later one is over.

use serde_json::json;
use tenure_testkit::{Agent, Cmd, Env};

use crate::support::line::{crew, refused, register, run, take, text};

/// A session that died with something running, came back as its second life, and holds wp:1; with what runs, and
/// where that was started.
fn came_back(env: &Env) -> (Agent, u32, [Agent; 2]) {
    let name = env.dir().file_name().expect("a directory has a name");
    let native = format!("--native-id {}", name.to_string_lossy());
    let outer = env.agent("outer");
    let first = outer.nest("worker");
    let born = register(&first, "worker", &native);
    let token = text(&born["token"]);
    let busy = Cmd::new("sleep").arg("1000").env("TENURE_SESSION", token);
    let orphan = first.orphan(busy);
    first.kill9();
    let second = env.agent("worker");
    let again = register(&second, "worker", &native);
    assert_eq!(again["session"]["registered"], "resumed");
    take(&second, "wp:1");
    (second, orphan, [outer, first])
}

fn kill(agent: &Agent, pid: u32) {
    let kill = ["-9".to_owned(), pid.to_string()];
    agent.run(Cmd::new("kill").args(kill)).ok();
}

#[test]
fn f_h14_require_quiet_reports_what_an_earlier_life_left_running() {
    let (env, [bob]) = crew(["bob"]);
    let (worker, orphan, _before) = came_back(&env);
    worker.kill9();
    let error = refused(&bob, 3, "survivors", "claim wp:1 --require-quiet");
    let said = text(&error["message"]);
    assert!(said.contains(&orphan.to_string()), "{error}");
    kill(&bob, orphan);
    let claim = run(&bob, 0, "claim wp:1")["claim"].clone();
    assert_eq!(claim["taken_from"]["survivors"], json!([]));
}
