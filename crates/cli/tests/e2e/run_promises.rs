//! What a run promises about its prompt, its conversation and what it waits for.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::{Cmd, Env, Scripted, poll};

use crate::env;
use crate::support::line::{SOON, text};
use crate::support::run::{
    all, fake_claude, kill9, lines, newest, pid_of, run, runner_of, start, until,
};

fn skill(env: &Env, name: &str, text: &str) {
    let dir = env.home().join(".config/tenure/skills");
    std::fs::create_dir_all(&dir).expect("the home is writable");
    std::fs::write(dir.join(name), text).expect("the home is writable");
}

/// A runner that dies while it writes a prompt would leave half of one.
#[test]
fn the_prompt_is_whole_before_the_agent_exists_and_on_no_command_line() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "readlink /proc/self/fd/0 >$dir/input; { echo more >>/proc/self/fd/0; } 2>/dev/null || : >$dir/sealed
         tr '\\0' ' ' </proc/$$/cmdline >$dir/words; env >$dir/env; cat >$dir/prompt; init; done_",
    );
    let ann = env.agent("ann");
    run(&ann, "mine wp:1").ok();
    let input = mine.wrote("input").unwrap();
    assert!(input.starts_with("/memfd:"), "{input}");
    assert!(mine.file("sealed").exists(), "nothing can be added to it");
    for file in ["words", "env"] {
        let text = mine.wrote(file).unwrap();
        assert!(!text.contains("do it"), "{file}: {text}");
    }
    let got = mine.wrote("prompt").unwrap();
    assert!(got.ends_with("\n\ndo it"), "{got}");
    let run = newest(&env);
    let kept = Path::new(run["log"].as_str().unwrap()).join("prompt");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), got);
    let mode = std::fs::metadata(&kept).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let sum = ann
        .run(Cmd::new("sha256sum").arg(kept.to_str().unwrap()))
        .ok()
        .stdout;
    let sum = sum.split_whitespace().next().unwrap();
    assert_eq!(run["prompt_hash"], sum, "{run:#}");
}

#[test]
fn an_agent_that_reads_its_prompt_from_a_file_gets_its_name() {
    let env = env();
    let settings = env.home().join(".config/tenure");
    std::fs::create_dir_all(&settings).unwrap();
    let script = "cat \"$0\"; echo; echo '{\"session_id\":\"c-1\",\"result\":\"read\"}'";
    let command = json!(["sh", "-c", script, "{prompt_file}"]);
    let table = format!(
        "[agents.reader]\ncommand = {command}\nprompt = \"file\"\nid = \"/session_id\"\ndone = \"/result\"\n"
    );
    std::fs::write(settings.join("config.toml"), table).unwrap();
    let ann = env.agent("ann");
    let said = run(&ann, "reader wp:1 --json").ok();
    assert!(said.stdout.contains("do it"), "{said}");
    assert_eq!(newest(&env)["outcome"], "done");
}

#[test]
fn a_conversation_of_another_home_is_named_and_not_resumed() {
    let env = env();
    let dir = fake_claude(&env, "keeps; init; ok hi");
    let ann = env.agent("ann");
    run(&ann, "claude wp:1").ok();
    let first = newest(&env)["native_id"].clone();
    let other = env.dir().join("other-claude");
    std::fs::create_dir(&other).unwrap();
    let other = other.to_str().unwrap();
    let there = |line: &str| {
        let words = line.split_whitespace();
        let cmd = Cmd::new("tenure").arg("run").args(words);
        let cmd = cmd.args(["--prompt", "do it"]);
        ann.run(cmd.env("CLAUDE_CONFIG_DIR", other))
    };
    let refused = lines(&there("claude wp:1 --json").fails(125))
        .pop()
        .unwrap();
    assert_eq!(refused["error"]["kind"], "elsewhere", "{refused:#}");
    let message = text(&refused["error"]["message"]);
    assert!(message.ends_with(", kept in the usual place"), "{message}");
    let calls = || {
        let calls = std::fs::read_to_string(dir.join("calls")).unwrap();
        calls.lines().count()
    };
    assert_eq!((calls(), all(&env).len()), (1, 1));
    there("claude wp:1 --fresh").ok();
    assert_ne!(newest(&env)["native_id"], first);
    assert_eq!(calls(), 2);
    let refused = lines(&run(&ann, "claude wp:1 --json").fails(125))
        .pop()
        .unwrap();
    let message = text(&refused["error"]["message"]);
    assert!(
        message.ends_with(&format!(", kept in {other}")),
        "{message}"
    );
}

/// Claude Code and Gemini CLI find no conversation in an empty file.
#[test]
fn f_r16_a_conversation_whose_file_is_empty_is_begun_anew() {
    let env = env();
    let dir = fake_claude(&env, "keeps; init; ok hi");
    let ann = env.agent("ann");
    run(&ann, "claude wp:1").ok();
    let first = text(&newest(&env)["native_id"]);
    let file = format!(".claude/projects/work/{first}.jsonl");
    std::fs::write(env.home().join(file), "").unwrap();
    run(&ann, "claude wp:1").ok();
    let second = newest(&env);
    assert_eq!(second["fell_back"], true, "{second:#}");
    let calls = std::fs::read_to_string(dir.join("calls")).unwrap();
    assert!(!calls.contains("resume"), "{calls}");
}

#[test]
fn f_r19_the_history_says_that_a_conversation_was_unusable() {
    let env = env();
    fake_claude(
        &env,
        "keeps; init; if [ $mode = resume ]; then poisoned; fi; ok hi",
    );
    let ann = env.agent("ann");
    run(&ann, "claude wp:1").ok();
    let first = newest(&env);
    run(&ann, "claude wp:1").fails(1);
    run(&ann, "claude wp:1 --fresh").ok();
    let words = ["conversation", "history", "claude", "wp:1", "--json"];
    let history = env.tenure(&words).ok().json()["history"].clone();
    let entries = history.as_array().unwrap();
    let of_first = |one: &&Value| one["native_id"] == first["native_id"];
    let ended = entries.iter().find(of_first).unwrap();
    assert_eq!(ended["why"], "unusable", "{history:#}");
}

#[test]
fn a_skill_says_which_file_it_took_and_goes_on_with_its_own_text() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "cat >>$dir/prompts; echo >>$dir/prompts; init; work; ready $dir/on; hold $dir/flag; done_",
    );
    skill(&env, "fix.md", "FULL {{ item }}");
    let ann = env.agent("ann");
    let by_skill = || Cmd::new("tenure").args(["run", "mine", "wp:1", "--skill", "fix"]);
    let said = ann.run(by_skill()).ok();
    assert!(said.stderr.contains("skills/fix.md"), "{said}");
    let whole = said.stderr.matches("skill fix has no delta").count();
    assert_eq!(whole, 1, "{said}");
    skill(&env, "fix-delta.md", "DELTA");
    skill(&env, "fix-continue.md", "GO ON WITH {{ item }}");
    mine.keep("flag");
    std::fs::remove_file(mine.file("on")).unwrap();
    let window = ann.start(by_skill());
    poll(SOON, "the agent works", || mine.wrote("on"));
    poll(SOON, "the window names the other file", || {
        window
            .stderr()
            .contains("skills/fix-delta.md")
            .then_some(())
    });
    let running = until(&env, "it is named", |run| run["native_id"] == "c-1");
    let (runner, agent) = (runner_of(&running), pid_of(&running));
    window.kill9();
    kill9(&ann, runner);
    kill9(&ann, agent);
    assert_eq!(newest(&env)["outcome"], "interrupted");
    std::fs::remove_file(mine.file("flag")).unwrap();
    ann.tenure(&["runs", "resume", &text(&running["id"])]).ok();
    let prompts = mine.wrote("prompts").unwrap();
    let texts = ["FULL wp:1", "DELTA", "GO ON WITH wp:1"];
    let at: Vec<_> = texts.iter().map(|one| prompts.find(one)).collect();
    assert!(
        at.iter().all(Option::is_some) && at.is_sorted(),
        "{prompts}"
    );
    assert_eq!(prompts.matches("FULL").count(), 1, "{prompts}");
}

#[test]
fn a_run_waits_for_the_conversation_and_for_the_directory_of_another() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "echo $mode >>$dir/calls; init; ready $dir/on; hold $dir/flag; done_",
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    let first = start(&ann, "mine wp:1");
    poll(SOON, "the first works", || mine.wrote("on"));
    let waiting = [
        start(&ann, "mine wp:1 --wait 5m"),
        start(&ann, "mine wp:2 --wait 5m --fresh"),
    ];
    // Who does not wait is refused meanwhile.
    for line in ["mine wp:1 --json", "mine wp:2 --json"] {
        let refused = lines(&run(&ann, line).fails(125)).pop().unwrap();
        assert_eq!(refused["error"]["kind"], "held", "{line}");
    }
    assert!(waiting.iter().all(|window| window.is_alive()));
    assert_eq!(mine.wrote("calls").unwrap().lines().count(), 1);
    std::fs::remove_file(mine.file("flag")).unwrap();
    first.wait().ok();
    for window in waiting {
        window.wait().ok();
    }
    assert_eq!(mine.wrote("calls").unwrap().lines().count(), 3);
    let done = all(&env).into_iter().filter(|run| run["outcome"] == "done");
    assert_eq!(done.count(), 3);
}

#[test]
fn runs_are_listed_by_item_by_agent_and_by_failure() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "init c-$$; done_");
    Scripted::new(&env, "other", "init d-$$; done_");
    let ann = env.agent("ann");
    run(&ann, "mine wp:1").ok();
    run(&ann, "other wp:1").ok();
    mine.does("init c-$$; work; exit 3");
    run(&ann, "mine wp:2").fails(3);
    let of = |words: &[&str]| -> Vec<(String, String)> {
        let words = [&["runs", "--json"], words].concat();
        let runs = env.tenure(&words).ok().json()["runs"].clone();
        let runs = runs.as_array().unwrap().iter();
        runs.map(|run| (text(&run["agent"]), text(&run["item"])))
            .collect()
    };
    let row = |agent: &str, item: &str| (agent.to_owned(), item.to_owned());
    assert_eq!(of(&["--failed"]), [row("mine", "wp:2")]);
    assert_eq!(of(&["--agent", "other"]), [row("other", "wp:1")]);
    assert_eq!(
        of(&["--item", "wp:1"]),
        [row("other", "wp:1"), row("mine", "wp:1")]
    );
    assert_eq!(of(&[]).len(), 3);
}

#[test]
fn what_people_see_of_a_run_hides_and_reorders_nothing() {
    let env = env();
    Scripted::new(
        &env,
        "mine",
        r#"init; say '{"type":"result","result":"a\u001b[2Jb\u202ec\u0007d"}'"#,
    );
    let ann = env.agent("ann");
    let said = run(&ann, "mine wp:1").ok();
    for hidden in ['\u{1b}', '\u{202e}', '\u{7}'] {
        assert!(!said.stdout.contains(hidden), "{said}");
    }
    assert!(said.stdout.starts_with('a') && said.stdout.contains('d'));
}

/// One line that is written again and again; the answer alone goes to the standard output.
#[test]
fn a_person_at_a_terminal_sees_what_the_agent_does_now() {
    let env = env();
    let tool = r#"say '{"type":"assistant","message":{"model":"m","content":[{"type":"tool_use","name":"Bash","input":{"command":"make\u001b[2J all"}}]}}'"#;
    let dir = fake_claude(
        &env,
        &format!("keeps; init; {tool}; hold $dir/flag; ok 'all is made'"),
    );
    std::fs::write(dir.join("flag"), "").unwrap();
    let person = env.shell_at_terminal();
    let answer = env.work().join("answer");
    person.press(&format!(
        "TERM=xterm tenure run claude wp:1 --prompt x >{} 2>/dev/tty\r",
        answer.display()
    ));
    let shown = poll(SOON, "what it does is shown", || {
        let shown = person.shown();
        shown.contains("Bash: make").then_some(shown)
    });
    assert!(!shown.contains("\u{1b}[2J"), "{shown:?}");
    std::fs::remove_file(dir.join("flag")).unwrap();
    poll(SOON, "the answer comes", || {
        let text = std::fs::read_to_string(&answer).unwrap_or_default();
        (text == "all is made\n").then_some(())
    });
}
