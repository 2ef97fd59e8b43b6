//! What is seen of a death until somebody resumes or dismisses it.

use serde_json::{Value, json};

use crate::env;
use crate::support::answer::{ask, asked_by_nobody, events, text};
use crate::support::forge::forge;
use crate::support::hook::{captured, only, send, sessions};
use crate::support::talking::{offered, said, shown, talking};

#[test]
fn a_death_stays_on_view_until_it_is_dismissed() {
    let env = env();
    let worker = talking(&env, "claude", "claude-2.1.325", &[], "0000aaaa");
    ask(&worker, &["claim", "wp:1"]);
    let handle = text(&only(&env), "/handle").to_owned();
    worker.kill9();
    let command = format!("tenure resume {handle}");
    for _ in 0..3 {
        let listed = shown(&env);
        assert_eq!(listed.len(), 1, "{listed:#?}");
        assert_eq!(listed[0]["state"], "dead");
        assert_eq!(listed[0]["end_kind"], "cut_off");
        assert_eq!(listed[0]["resume"]["command"], command.as_str());
        assert_eq!(listed[0]["resume"]["held"][0]["key"], "wp:1");
        let said = env.tenure(&["ps"]).ok().stdout;
        let row = said.lines().find(|line| line.contains(&handle)).unwrap();
        assert!(row.contains("cut off ") && row.contains("wp:1"), "{said}");
        let way = format!(
            "{handle} was cut off; run `{command}` to continue it, or `tenure dismiss {handle}` to drop it"
        );
        assert_eq!(said.lines().last(), Some(way.as_str()));
    }
    let status = asked_by_nobody(&env, &["status"]);
    assert_eq!(status["status"]["cut_off"][0]["handle"], handle.as_str());
    let said = env.tenure(&["status"]).ok().stdout;
    assert!(said.contains(&command), "{said}");
    // Who else works here: nobody.
    assert_eq!(asked_by_nobody(&env, &["who"])["sessions"], json!([]));
    assert_eq!(offered(&env), [handle.as_str()]);

    let dismissed = asked_by_nobody(&env, &["dismiss", &handle, "--reason", "it is done"]);
    assert_eq!(dismissed["sessions"][0]["handle"], handle.as_str());
    assert_eq!(shown(&env), Vec::<Value>::new());
    assert_eq!(offered(&env), Vec::<String>::new());
    assert_eq!(events(&env, "session.dismissed").len(), 1);
    assert_eq!(sessions(&env)[0]["resume"], Value::Null);
    // It can still be resumed by its name.
    let _named = env.tenure(&["resume", &handle, "--print"]).ok();
}

#[test]
fn what_came_back_is_on_the_list_no_more() {
    let env = env();
    let worker = talking(&env, "claude", "claude-2.1.325", &[], "0000aaaa");
    worker.kill9();
    assert_eq!(offered(&env).len(), 1);
    let again = env.agent_with("claude", &["--resume", "0000aaaa"]);
    said(
        &env,
        &again,
        "claude",
        "claude-2.1.325/SessionStart.resume",
        "0000aaaa",
    );
    let listed = shown(&env);
    assert_eq!(listed[0]["state"], "live", "{listed:#?}");
    assert_eq!(listed[0]["end_kind"], Value::Null);
    assert_eq!(offered(&env), Vec::<String>::new());
    // Its next death is a new one, whatever became of the first.
    again.kill9();
    assert_eq!(shown(&env)[0]["end_kind"], "cut_off");
}

#[test]
fn a_day_later_it_is_no_longer_shown() {
    let env = env();
    let worker = talking(&env, "claude", "claude-2.1.325", &[], "0000aaaa");
    worker.kill9();
    assert_eq!(shown(&env).len(), 1);
    forge(&env, "UPDATE sessions SET closed_at = closed_at - 90000000");
    assert_eq!(shown(&env), Vec::<Value>::new());
    assert_eq!(offered(&env), Vec::<String>::new());
    let older = asked_by_nobody(&env, &["resume", "--since", "2d"]);
    assert_eq!(older["resume"].as_array().unwrap().len(), 1);
}

#[test]
fn a_death_with_nothing_left_is_not_shown() {
    let env = env();
    let empty = env.agent("claude");
    let silent = captured(&env, "claude-2.1.325/SessionStart.startup", "0000aaaa");
    // Killed before its first prompt: its transcript was never written.
    send(&empty, "claude", &silent);
    let script = env.agent("nightly");
    ask(
        &script,
        &[
            "register",
            "--agent",
            "nightly",
            "--pid",
            &script.pid().to_string(),
        ],
    );
    let holder = env.agent("holder");
    ask(
        &holder,
        &[
            "register",
            "--agent",
            "holder",
            "--pid",
            &holder.pid().to_string(),
        ],
    );
    ask(&holder, &["claim", "wp:1"]);
    for dead in [&empty, &script, &holder] {
        dead.kill9();
    }
    for _ in 0..2 {
        let listed = shown(&env);
        assert_eq!(listed.len(), 1, "{listed:#?}");
        assert_eq!(listed[0]["agent"], "holder");
        assert_eq!(listed[0]["resume"]["command"], Value::Null);
        assert!(listed[0]["resume"]["problem"].is_string());
    }
    // Once another has what it held, nothing is left.
    let heir = env.agent("heir");
    ask(
        &heir,
        &[
            "register",
            "--agent",
            "heir",
            "--pid",
            &heir.pid().to_string(),
        ],
    );
    ask(&heir, &["claim", "wp:1"]);
    assert_eq!(shown(&env).len(), 1);
    assert_eq!(shown(&env)[0]["agent"], "heir");
}

#[test]
fn dismissing_says_what_it_cannot_do() {
    let env = env();
    let refused = |words: &[&str], code: i32| {
        let words = [words, &["--reason", "tidy", "--json"]].concat();
        let error = env.tenure(&words).fails(code).json()["error"].clone();
        text(&error, "/message").to_owned()
    };
    assert!(refused(&["dismiss", "--all"], 1).contains("nothing to dismiss"));
    assert!(refused(&["dismiss", "claude-zzzz"], 4).contains("claude-zzzz"));
    let worker = talking(&env, "claude", "claude-2.1.325", &[], "0000aaaa");
    let handle = text(&only(&env), "/handle").to_owned();
    assert!(refused(&["dismiss", &handle], 1).contains("has not ended"));
    worker.kill9();
    let all = asked_by_nobody(&env, &["dismiss", "--all", "--reason", "tidy"]);
    assert_eq!(all["sessions"][0]["handle"], handle.as_str());
    assert!(refused(&["dismiss", &handle], 1).contains("already"));
    assert!(refused(&["dismiss", "--all"], 1).contains("nothing to dismiss"));
    let other = talking(&env, "claude", "claude-2.1.325", &[], "0000bbbb");
    said(
        &env,
        &other,
        "claude",
        "claude-2.1.325/SessionEnd.prompt_input_exit",
        "0000bbbb",
    );
    let left = sessions(&env);
    let left = left.iter().find(|one| one["end_kind"] == "left").unwrap();
    assert!(refused(&["dismiss", text(left, "/handle")], 1).contains("by itself"));
}
