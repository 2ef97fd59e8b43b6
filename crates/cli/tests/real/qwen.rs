//! Qwen Code with tenure's hooks and settings: what others do not do.

use serde_json::json;
use tenure_testkit::real::Real;

use crate::state::{other, sessions};

const KIND: Real = Real::Qwen;
const RESERVED: &str = "path:team/project:src/**";

#[test]
#[ignore = "runs a real agent"]
fn a_reserved_file_is_not_written_where_the_user_asked_for_a_block() {
    let world = crate::world();
    world.agent(KIND);
    let _installed = world.tenure(&["install", "qwen", "--mode", "block"]).ok();
    let holder = other(&world);
    let _claimed = holder.tenure(&["claim", RESERVED]).ok();
    let file = world.project().join("src/db.rs");
    let input = json!({"file_path": file, "content": "mine"});
    let turn = world
        .agent(KIND)
        .fresh(&format!("MOCK:tool write_file {input}"));
    let turn = turn.run().ok();
    assert!(!file.exists(), "{turn}");
    assert!(
        world.mock().was_told(RESERVED),
        "the model knows why\n{turn}"
    );
}

#[test]
#[ignore = "runs a real agent"]
fn what_install_adds_uninstall_takes_away_and_qwen_runs_as_before() {
    let world = crate::world();
    let agent = world.agent(KIND);
    let settings = world.home().join(".qwen/settings.json");
    // It writes the version of its settings itself.
    agent.fresh("hello").run().ok();
    let before = std::fs::read_to_string(&settings).unwrap();
    let _installed = world.tenure(&["install", "qwen"]).ok();
    agent.fresh("hello").run().ok();
    assert_eq!(sessions(&world).len(), 1);
    let _gone = world.tenure(&["uninstall", "qwen"]).ok();
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), before);
    agent.fresh("hello").run().ok();
    assert_eq!(sessions(&world).len(), 1);
}
