//! Conversations that an agent began and did not live to name, and agents that list their conversations themselves.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_testkit::{Env, poll};

use crate::env;
use crate::support::line::{SOON, text};
use crate::support::run::{fake_claude, kill9, newest, pid_of, run, runner_of, start};

fn current(env: &Env, agent: &str) -> Value {
    let got = env.tenure(&["conversation", "get", agent, "wp:1", "--json"]);
    got.ok().json()["conversation"]["native_id"].clone()
}

fn calls(dir: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(dir.join("calls")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn an_id_that_was_chosen_is_the_conversations_when_its_file_exists() {
    let env = env();
    let dir = fake_claude(&env, "keeps; kill -9 $$");
    let ann = env.agent("ann");
    run(&ann, "claude wp:1").fails(137);
    let chosen = calls(&dir)[0].replace("fresh ", "");
    assert_eq!(newest(&env)["native_id"], chosen.as_str());
    assert_eq!(current(&env, "claude"), chosen.as_str());
    fake_claude(&env, "kill -9 $$");
    run(&ann, "claude wp:1 --fresh").fails(137);
    assert_eq!(newest(&env)["native_id"], Value::Null, "it made no file");
    assert_eq!(current(&env, "claude"), chosen.as_str());
    fake_claude(&env, "keeps; init; ok hi");
    run(&ann, "claude wp:1").ok();
    assert_eq!(calls(&dir)[2], format!("resume {chosen}"));
}

#[test]
fn a_run_whose_runner_died_too_keeps_the_conversation_that_it_began() {
    let env = env();
    let dir = fake_claude(&env, "keeps; : >$dir/on; hold $dir/flag");
    std::fs::write(dir.join("flag"), "").unwrap();
    let ann = env.agent("ann");
    let window = start(&ann, "claude wp:1");
    poll(SOON, "the agent works", || {
        dir.join("on").exists().then_some(())
    });
    let running = newest(&env);
    let (agent, runner) = (pid_of(&running), runner_of(&running));
    window.kill9();
    kill9(&ann, runner);
    kill9(&ann, agent);
    let ended = newest(&env);
    let chosen = calls(&dir)[0].replace("fresh ", "");
    assert_eq!(
        (&ended["outcome"], &ended["native_id"]),
        (&"interrupted".into(), &chosen.clone().into())
    );
    fake_claude(
        &env,
        "keeps; init; printf '%s' \"$prompt\" >$dir/prompt; ok hi",
    );
    ann.tenure(&["runs", "resume", &text(&ended["id"])]).ok();
    assert_eq!(calls(&dir)[1], format!("resume {chosen}"));
    let prompt = std::fs::read_to_string(dir.join("prompt")).unwrap();
    assert!(prompt.contains("Your last turn was cut off"), "{prompt}");
}

/// A program called `opencode` that lists what is in `$dir/list`, and does what these lines say when it is run.
fn fake_opencode(env: &Env, lines: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let dir = env.dir().join("fake-opencode");
    std::fs::create_dir_all(&dir).expect("the environment is ours");
    let program = env.dir().join("bin/opencode");
    let script = format!(
        r#"#!/bin/sh
dir={}
if [ "$1" = session ]; then
  echo "list $* config=$XDG_CONFIG_HOME state=$XDG_STATE_HOME" >>$dir/lists
  [ -e $dir/broken ] && exit 1
  [ -e $dir/list ] && cat $dir/list
  exit 0
fi
cat >/dev/null
mode=fresh
while [ $# -gt 0 ]; do
  case "$1" in --title) title=$2 ;; --session) mode=resume; id=$2 ;; esac
  shift
done
id=${{id:-ses_1}}
echo "$mode $id" >>$dir/calls
keeps() {{ printf '[{{"id":"%s","title":"%s"}}]' $id "$title" >$dir/list; }}
say() {{ printf '{{"type":"%s","sessionID":"%s","part":%s}}\n' $1 $id "$2"; }}
ok() {{ say step_start '{{}}'; say text '{{"text":"hi"}}'; say step_finish '{{"reason":"stop","tokens":{{"input":1,"output":1}}}}'; }}
{lines}
"#,
        dir.display()
    );
    std::fs::write(&program, script).expect("the environment is ours");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755))
        .expect("the environment is ours");
    dir
}

#[test]
fn a_conversation_that_was_never_named_is_found_by_its_title() {
    let env = env();
    let dir = fake_opencode(&env, "keeps; kill -9 $$");
    let ann = env.agent("ann");
    run(&ann, "opencode wp:1").fails(137);
    let ended = newest(&env);
    assert_eq!(ended["native_id"], "ses_1");
    assert_eq!(current(&env, "opencode"), "ses_1");
    let list = std::fs::read_to_string(dir.join("list")).unwrap();
    assert!(
        list.contains(&format!("tenure-{}", text(&ended["id"]))),
        "{list}"
    );
    fake_opencode(&env, "ok");
    assert_eq!(run(&ann, "opencode wp:1").ok().stdout, "hi\n");
    assert_eq!(calls(&dir), ["fresh ses_1", "resume ses_1"]);
    let lists = std::fs::read_to_string(dir.join("lists")).unwrap();
    assert!(
        lists.lines().all(|line| line.contains("--max-count")),
        "{lists}"
    );
    let apart = env.state().join("tmp/r-");
    let named = [
        format!("config={}", apart.display()),
        format!("state={}", apart.display()),
    ];
    let is_apart = |line: &str| named.iter().all(|one| line.contains(one));
    assert!(
        lists.lines().all(is_apart),
        "a lock that the list leaves would hold up the run: {lists}"
    );
}

#[test]
fn a_conversation_that_an_agent_does_not_list_is_begun_anew_and_a_failed_list_tells_nothing() {
    let env = env();
    let dir = fake_opencode(&env, "keeps; ok");
    let ann = env.agent("ann");
    run(&ann, "opencode wp:1").ok();
    std::fs::write(dir.join("broken"), "").unwrap();
    run(&ann, "opencode wp:1").ok();
    assert_eq!(newest(&env)["fell_back"], false);
    std::fs::remove_file(dir.join("broken")).unwrap();
    std::fs::remove_file(dir.join("list")).unwrap();
    run(&ann, "opencode wp:1").ok();
    assert_eq!(newest(&env)["fell_back"], true);
    assert_eq!(calls(&dir), ["fresh ses_1", "resume ses_1", "fresh ses_1"]);
}
