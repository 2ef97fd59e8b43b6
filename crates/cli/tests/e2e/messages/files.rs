//! Transcripts, mirrors, settings, and the hooks in agents' settings.

use std::fs;

use tenure_testkit::{Cmd, Signal, poll, scratch_git};

use super::page::Page;
use crate::env;
use crate::support::installed::put;
use crate::support::line::{SOON, register, session};
use crate::support::transcript::{claude, file_of, line_of};

#[test]
fn transcripts() {
    let env = env();
    let mut page = Page::new("60-transcripts", &env);
    let ann = claude(&env, "7f3c");
    let (out, human) = (env.agent("outsider"), session(&env, "human"));
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
    page.run(&human, "tenure transcript show nobody");
    page.run(&out, "tenure transcript verify human");
    let locked = format!(
        "tenure lock --path {} -- tenure transcript append claude",
        file_of(&env, "7f3c").display()
    );
    page.feed_once(&ann, line, &locked, Some("nested"));
    let words = [
        "lock",
        "--path",
        &file_of(&env, "7f3c").display().to_string(),
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
    let file = file_of(&env, "7f3c");
    let text = format!("{}not JSON\n{}{{\"torn", line_of("7f3c"), line_of("8a1b"));
    fs::write(&file, text).expect("the home is ours");
    page.run(&ann, "tenure transcript verify claude");
    fs::remove_file(&file).expect("it is there");
    page.run(&ann, "tenure transcript verify claude");
    page.run(&ann, "tenure transcript show claude");
    page.title("A path that belongs to another session");
    let codex = env.agent("codex");
    register(&codex, "codex", "--native-id 9c2d");
    let theirs = file_of(&env, "7f3c");
    page.run(
        &codex,
        &format!(
            "tenure register --native-id 9c2d --transcript {}",
            theirs.display()
        ),
    );
    page.run(&out, "tenure log");
    page.check(&env);
}

#[test]
fn settings() {
    let env = env();
    let mut page = Page::new("70-settings", &env);
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
        "[guard]\non_error = \"maybe\"",
        "[agent]\nbrief = \"yes\"",
        "[missions]\nroles = \"a\"",
        "[[mirror]]\nformat = \"xml\"",
        "[[mirror]]\npath = \"x\"",
        "[[mirror]]\npath = \"/x/{home}\"",
        "[[mirror]]\nend = \"keep\"",
        "[[mirror]]\ncolour = \"red\"",
        "[mirror]\npath = \"/x\"",
        "mirror = \"/x\"",
        "[[mirror]]\npath = \"/x/../y\"",
        "[[mirror]]\npath = \"/x/{handle\"",
        "[repo]\ntrusted = true",
        "[repo.web]\ntrusted = true",
        "[repo.\"acme/web\"]\ntrusted = \"yes\"",
        "[repo.\"acme/web\"]\nworktree = true",
        "[run]\nbudget = \"5\"",
        "[run]\nbudget = 0",
        "[run]\nkeep_last = -1",
        "[agents.claude]\ncommand = [\"claude\"]\ndone = \"/done\"",
        "[agents.\"My Agent\"]\ncommand = [\"mine\"]\ndone = \"/done\"",
        "[agents.mine]\ncommand = \"mine\"\ndone = \"/done\"",
        "[agents.mine]\ncommand = [1]\ndone = \"/done\"",
        "[agents.mine]\ncommand = [\"mine\"]",
        "[agents.mine]\ncommand = [\"mine\"]\ndnoe = \"/done\"",
        "agents.mine = \"mine\"",
        "[agents.mine]\ncommand = []\ndone = \"/done\"",
        "[agents.mine]\ncommand = [\"mine\", \"{id}\"]\ndone = \"/done\"",
        "[agents.mine]\ncommand = [\"mine\"]\nprompt = \"file\"\ndone = \"/done\"",
        "[agents.mine]\ncommand = [\"mine\", \"{prompt_file}\"]\ndone = \"/done\"",
        "[agents.mine]\ncommand = [\"mine\"]\ndone = \"/done\"\nunknown = \"(a{1000}){1000}\"",
        "[agents.mine]\ncommand = [\"mine\"]\nprompt = \"mail\"\ndone = \"/done\"",
        "[agents.mine]\ncommand = [\"mine\"]\nresume = [\"mine\", \"{id}\"]\ndone = \"/done\"",
        "[agents.mine]\ncommand = [\"mine\"]\ndone = \"done\"",
        "[agents.mine]\ncommand = [\"mine\"]\ndone = \"/done\"\nunknown = \"(\"",
        "[agents.mine]\ncommand = [\"mine\"]\ndone = \"/done\"\nunknown = \".*\"",
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
    for url in [
        "postgres://db/a#b",
        "postgres://db/a/b",
        "postgres://db/a?schema",
        "postgres://db/a?colour=red",
        "postgres://db/a?sslmode=on",
        "postgres://db/a?sslmode=verify-full",
        "postgres://db/a?sslmode=prefer",
        "postgres://db/a?schema=pg_x",
        "postgres://db:0/a",
        "postgres://[x]/a",
        "postgres://[::1]x/a",
        "postgres://a%20b/a",
        "postgres://a%2/a",
        "postgres://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q/a",
    ] {
        page.run(&out, &format!("TENURE_STORE='{url}' tenure ps"));
    }
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
    page.check(&env);
}

#[test]
fn setup() {
    let env = env();
    let mut page = Page::new("80-install", &env);
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
    page.run(&out, "tenure install git");
    page.run(&out, "tenure install --check");
    page.run(&out, "tenure ps");
    page.run(&out, "tenure install claude --plugin plugin");
    page.title("Install: refused");
    page.run(&out, "tenure install cobol");
    page.run(&out, "tenure install claude --project ./missing");
    page.run(&out, "tenure install codex --plugin plugin");
    page.run(&out, "tenure install git --project /");
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
    page.run(&out, "tenure uninstall git --project /");
    put(&env.state().join("installed.json"), "[]");
    page.run(&out, "tenure uninstall claude");
    page.check(&env);
}
