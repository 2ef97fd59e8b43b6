//! Transcripts, mirrors, settings, and the hooks in agents' settings.

use std::fs;

use tenure_testkit::{Cmd, Env, Signal, poll, scratch_git};

use super::page::Page;
use crate::support::installed::put;
use crate::support::line::{SOON, session};
use crate::support::transcript::{claude, file_of, line_of};

pub(super) fn transcripts(env: &mut Env, page: &mut Page) {
    let ann = claude(env, "7f3c");
    let human = session(env, "human");
    page.title("Show, check, append");
    page.run(&ann, "tenure transcript show claude");
    page.run(&ann, "tenure transcript verify claude");
    let line = r#"{"sessionId":"7f3c","type":"note"}"#;
    page.feed(&ann, line, "tenure transcript append claude");
    page.feed(
        &ann,
        &format!("{line}\n{line}"),
        "tenure transcript append claude --durable",
    );
    page.title("Refused");
    page.feed(&ann, "not JSON", "tenure transcript append claude");
    page.feed(
        &ann,
        r#"{"sessionId":"8a1b","type":"note"}"#,
        "tenure transcript append claude",
    );
    page.feed(&human, line, "tenure transcript append claude");
    page.run(&human, "tenure transcript append claude --reason test");
    page.feed(&human, line, "tenure transcript append human");
    page.run(&human, "tenure transcript show human");
    let words = [
        "lock",
        "--path",
        &file_of(env, "7f3c").display().to_string(),
        "--",
        "sleep",
        "1000",
    ]
    .map(str::to_owned);
    let held = human.start(Cmd::new("tenure").args(words));
    poll(SOON, "it is held", || {
        let locks = env.tenure(&["locks", "--held", "--json"]).ok().json();
        locks["locks"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
            .then_some(())
    });
    page.feed(&ann, line, "tenure transcript append claude --wait 50ms");
    assert!(held.signal(Signal::TERM));
    assert_eq!(held.wait().code, 143);
    page.title("Damaged");
    let file = file_of(env, "7f3c");
    let text = format!("{}not JSON\n{}{{\"torn", line_of("7f3c"), line_of("8a1b"));
    fs::write(&file, text).expect("the home is ours");
    page.run(&ann, "tenure transcript verify claude");
    fs::remove_file(&file).expect("it is there");
    page.run(&ann, "tenure transcript verify claude");
    page.run(&ann, "tenure transcript show claude");
}

pub(super) fn settings(env: &mut Env, page: &mut Page) {
    let out = env.agent("outsider");
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    page.cd(&repo);
    let config = env.home().join(".config/tenure/config.toml");
    page.keep_spans();
    page.title("Settings");
    page.run(&out, "tenure config");
    put(
        &repo.join(".tenure.toml"),
        "store = \"/tmp/x\"\nstalled_after = \"5m\"\nleese = \"1m\"\n",
    );
    put(
        &config,
        "lease = \"5m\"\n[[mirror]]\npath = \"~/mirrors/{handle}.json\"\n[repo.\"acme/web\"]\ntrusted = true\n",
    );
    page.run(&out, "tenure config");
    page.title("Invalid settings");
    for text in [
        "lease = \"-5m\"",
        "lease = 5",
        "leese = \"5m\"",
        "lease",
        "[guard]\nmode = \"loud\"",
        "[[mirror]]\npath = \"x\"",
        "[[notify]]\nchannel = \"pigeon\"",
        "[[notify]]\nchannel = \"desktop\"\non = [\"nothing\"]",
        "[repo.web]\ntrusted = true",
        "[agents.mine]\ncommand = [\"mine\"]",
    ] {
        put(&config, text);
        page.run(&out, "tenure config");
    }
    put(&repo.join(".tenure.toml"), "[privacy]\ntitles = true\n");
    put(&config, "");
    page.run(&out, "tenure config");
    put(&repo.join(".tenure.toml"), "");
    page.run(&out, "TENURE_LEASE=soon tenure ps");
    page.run(&out, "TENURE_STORE=mysql://db/tenure tenure ps");
    page.title("Mirrors");
    let target = env.dir().join("mirrors");
    fs::write(&target, "a file").expect("the environment is ours");
    put(
        &config,
        &format!(
            "[[mirror]]\npath = \"{}/{{handle}}.json\"\n",
            target.display()
        ),
    );
    let claude = env.agent("claude");
    page.run(&claude, "tenure register");
    page.run(&claude, "tenure status");
    page.title("Notifications");
    put(&config, "");
    page.run(&out, "tenure notify list");
    page.run(&out, "tenure notify test desktop");
    page.run(&out, "tenure watch --notify");
    put(
        &config,
        "[[notify]]\nchannel = \"command\"\ncommand = \"cat >/dev/null\"\n[[notify]]\nchannel = \"command\"\n\
         name = \"broken\"\ncommand = \"echo no route; exit 3\"\non = [\"asks\", \"died\"]\n\
         [[notify]]\nchannel = \"terminal\"\n",
    );
    page.run(&out, "tenure notify list");
    page.run(&out, "tenure notify test command");
    page.run(&out, "tenure notify test broken");
    page.run(&out, "tenure notify test terminal");
    page.run(&out, "tenure notify test desktop");
    page.run(&out, "tenure watch --on nothing");
}

pub(super) fn install(env: &mut Env, page: &mut Page) {
    let out = env.agent("outsider");
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    page.cd(&repo);
    page.title("Install");
    page.run(&out, "tenure install --check");
    page.run(&out, "tenure install");
    let settings = env.home().join(".claude/settings.json");
    put(&settings, "{\n  \"model\": \"opus\"\n}\n");
    page.run(&out, "tenure ps");
    page.run(&out, "tenure install git --dry-run");
    page.run(&out, "tenure install claude --statusline");
    page.run(&out, "tenure install claude");
    page.run(&out, "tenure install claude --mode block");
    page.run(&out, "tenure install codex");
    page.run(&out, "tenure install claude --mcp");
    page.run(&out, "tenure install git");
    page.run(&out, "tenure install --check");
    page.run(&out, "tenure ps");
    page.run(&out, "tenure install claude --plugin plugin");
    page.title("Install: refused");
    page.run(&out, "tenure install cobol");
    page.run(&out, "tenure install claude --project ./missing");
    page.run(&out, "tenure install codex --plugin plugin");
    put(
        &repo.join("other/.claude-plugin/plugin.json"),
        "{\"name\": \"mine\"}",
    );
    page.run(&out, "tenure install claude --plugin other");
    let text = fs::read_to_string(&settings).expect("it was written");
    put(&settings, "{ \"model\": ");
    page.run(&out, "tenure install claude");
    put(
        &settings,
        "{\"statusLine\": {\"type\": \"command\", \"command\": \"mine\"}}",
    );
    page.run(&out, "tenure install claude --statusline");
    page.run(&out, "tenure install claude --check");
    put(&settings, &text);
    page.title("Uninstall");
    page.run(&out, "tenure uninstall git --dry-run");
    page.run(&out, "tenure uninstall gemini --dry-run");
    page.run(&out, "tenure uninstall git");
    page.run(&out, "tenure uninstall git");
    put(&settings, "{ \"model\": ");
    page.run_once(&out, "tenure uninstall --all", None);
    put(&settings, &text);
    page.run(&out, "tenure uninstall --all");
    page.run(&out, "tenure uninstall");
}
