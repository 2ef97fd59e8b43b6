//! Runs of agents that tenure knows, played by scripts: where one of them differs from the others.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;
use tenure_testkit::{Cmd, Env, Output};

use crate::env;
use crate::support::hook::captured;
use crate::support::run::{newest, run};

/// Makes a program of this name, which does what these shell lines say.
fn program(env: &Env, name: &str, lines: &str) {
    let file = env.dir().join("bin").join(name);
    let text = format!("#!/bin/sh\ndir={}\n{lines}\n", env.dir().display());
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
}

fn calls(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("calls")).unwrap_or_default()
}

/// opencode: it knows `ses_$n`, where n is how often it began, unless the file `gone` is there.
fn opencode(env: &Env, list: &str) {
    let lines = r#"
if [ "$1 $2" = "session list" ]; then echo list >>$dir/calls; LIST; fi
cat >/dev/null
case "$*" in
*--session*) echo resume >>$dir/calls
    if [ -e $dir/gone ]; then echo 'Error: Session not found' >&2; exit 1; fi
    id=ses_1 ;;
*) echo fresh >>$dir/calls; id=ses_$(grep -c fresh $dir/calls) ;;
esac
say() { printf '{"type":"%s","timestamp":1,"sessionID":"%s","part":{%s}}\n' "$1" $id "$2"; }
say step_start '"type":"step-start"'
say text '"type":"text","text":"hi"'
say step_finish '"type":"step-finish","reason":"stop","tokens":{"input":10,"output":5},"cost":0'
"#;
    program(env, "opencode", &lines.replace("LIST", list));
}

#[test]
fn f_r16_opencode_is_asked_for_its_list_before_a_conversation_is_begun_anew() {
    let env = env();
    // It prints nothing where it has none.
    opencode(&env, "exit 0");
    let ann = env.agent("ann");
    run(&ann, "opencode wp:1").ok();
    std::fs::write(env.dir().join("gone"), "").unwrap();
    let said = run(&ann, "opencode wp:1").ok();
    assert_eq!(calls(&env.dir()), "fresh\nresume\nlist\nfresh\n", "{said}");
    let ended = newest(&env);
    assert_eq!(ended["fell_back"], true);
    assert_eq!(
        (&ended["before"], &ended["native_id"]),
        (&"ses_1".into(), &"ses_2".into())
    );
}

#[test]
fn a_list_that_fails_or_has_the_conversation_lets_nothing_begin_anew() {
    for list in [
        "echo '[{\"id\":\"ses_1\"}]'; exit 0",
        "exit 1",
        "echo nonsense; exit 0",
    ] {
        let env = env();
        opencode(&env, list);
        let ann = env.agent("ann");
        run(&ann, "opencode wp:1").ok();
        std::fs::write(env.dir().join("gone"), "").unwrap();
        run(&ann, "opencode wp:1").fails(1);
        assert_eq!(calls(&env.dir()), "fresh\nresume\nlist\n", "{list}");
        assert_eq!(newest(&env)["outcome"], "failed", "{list}");
    }
}

/// Gemini: a conversation is a file, which has the model's answers if there were any.
fn gemini(env: &Env) {
    let lines = r#"
cat >/dev/null
mode=fresh
while [ $# -gt 0 ]; do
  case "$1" in
  --session-id) id=$2 ;;
  --resume) mode=resume; id=$2 ;;
  esac
  shift
done
file=$HOME/.gemini/tmp/work/chats/session-2026-11-16T06-17-$(echo $id | cut -c1-8).jsonl
echo $mode >>$dir/calls
if [ $mode = resume ] && ! grep -q '"type":"gemini"' $file; then
  echo 'Error resuming session: No previous sessions found for this project.' >&2; exit 42
fi
mkdir -p ${file%/*}
printf '{"sessionId":"%s"}\n' $id >>$file
printf '{"type":"init","session_id":"%s"}\n{"type":"message","role":"user","content":"x"}\n' $id
if [ -e $dir/fails ]; then
  echo '{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: {\"error\":{\"code\":500,\"status\":\"INTERNAL\"}}]"}}'; exit 244
fi
echo '{"type":"gemini","content":"hi"}' >>$file
echo '{"type":"message","role":"assistant","content":"hi","delta":true}'
echo '{"type":"result","status":"success","stats":{"input_tokens":10,"output_tokens":5}}'
"#;
    program(env, "gemini", lines);
}

#[test]
fn a_gemini_conversation_without_an_answer_is_begun_anew() {
    let env = env();
    gemini(&env);
    std::fs::write(env.dir().join("fails"), "").unwrap();
    let ann = env.agent("ann");
    run(&ann, "gemini wp:1").fails(244);
    std::fs::remove_file(env.dir().join("fails")).unwrap();
    run(&ann, "gemini wp:1").ok();
    assert_eq!(calls(&env.dir()), "fresh\nresume\nfresh\n");
    assert_eq!(newest(&env)["fell_back"], true);
    run(&ann, "gemini wp:1").ok();
    assert_eq!(calls(&env.dir()), "fresh\nresume\nfresh\nresume\n");
}

#[test]
fn f_r29_gemini_whose_folder_trust_is_off_is_not_run_in_a_repository_that_is_not_trusted() {
    let env = env();
    gemini(&env);
    let settings = env.home().join(".gemini/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(
        settings,
        r#"{"security":{"folderTrust":{"enabled":false}}}"#,
    )
    .unwrap();
    let ann = env.agent("ann");
    let refused = run(&ann, "gemini wp:1 --json").fails(125);
    let refused: Value = serde_json::from_str(refused.stdout.trim()).unwrap();
    assert_eq!(refused["error"]["kind"], "untrusted", "{refused}");
    assert_eq!(calls(&env.dir()), "");
}

#[test]
fn in_a_run_gemini_is_briefed_with_its_prompt_and_not_before_it() {
    let env = env();
    let tell = |agent: &tenure_testkit::Agent, event: &str, run: Option<&str>| -> Output {
        let event = captured(&env, &format!("gemini-0.61.0/{event}"), "g1234567");
        let mut cmd = Cmd::new("tenure")
            .args(["hook", "gemini"])
            .stdin(event.to_string());
        if let Some(run) = run {
            cmd = cmd.env("TENURE_RUN", run);
        }
        agent.run(cmd).ok()
    };
    let brief = "tenure knows this session as";
    let unattended = env.agent("gemini");
    let start = tell(&unattended, "SessionStart.startup", Some("r-1"));
    assert!(!start.stdout.contains(brief), "{start}");
    let prompt = tell(&unattended, "BeforeAgent", Some("r-1"));
    assert!(prompt.stdout.contains(brief), "{prompt}");
    unattended.kill9();
    let person = env.agent("gemini");
    let start = tell(&person, "SessionStart.startup", None);
    assert!(start.stdout.contains(brief), "{start}");
    let prompt = tell(&person, "BeforeAgent", None);
    assert!(!prompt.stdout.contains(brief), "{prompt}");
}
