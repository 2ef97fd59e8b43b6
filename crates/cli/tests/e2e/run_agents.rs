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
    std::fs::write(&file, text).expect("the environment's directory is writable");
    let mode = PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&file, mode).expect("it was just made");
}

fn calls(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("calls")).unwrap_or_default()
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
    assert_eq!(calls(env.dir()), "fresh\nresume\nfresh\n");
    assert_eq!(newest(&env)["fell_back"], true);
    run(&ann, "gemini wp:1").ok();
    assert_eq!(calls(env.dir()), "fresh\nresume\nfresh\nresume\n");
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
    assert_eq!(calls(env.dir()), "");
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
