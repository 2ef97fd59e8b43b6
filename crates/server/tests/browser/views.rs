//! The other views: claims with their lines, missions with who collides, usage, the queue, and agents that are not
//! registered.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use tenure_testkit::{Cmd, Env, Scripted, poll};

use crate::support::{Browser, Member, SOON, Server, env};

const KEY: &str = "issue:acme/web#42";

fn go(browser: &mut Browser, view: &str) {
    browser.run(&format!(
        "await page.click('nav a:text-is({view:?})'); await page.waitForSelector('main[aria-label={view:?}]')"
    ));
}

fn waits_for(browser: &mut Browser, selector: &str) {
    browser.run(&format!("await page.waitForSelector({selector:?})"));
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn a_claim_shows_its_holder_its_line_and_why() {
    let env = env();
    let (one, other) = (
        Member::new(&env, "claude", "c1"),
        Member::new(&env, "codex", "c2"),
    );
    one.claim(KEY);
    let waits = other
        .agent
        .start(Cmd::new("tenure").args(["claim", KEY, "--wait", "60s"]));
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    go(&mut browser, "Claims");
    let row = format!("table[aria-label=Claims] tr:has-text({KEY:?})");
    waits_for(&mut browser, &format!("{row}:has-text({:?})", one.handle));
    waits_for(&mut browser, &format!("{row}:has-text({:?})", other.handle));
    browser.run(&format!(
        "await page.click({:?})",
        format!("{row} th button")
    ));
    waits_for(&mut browser, "aside h3:has-text(\"Line\")");
    waits_for(
        &mut browser,
        &format!("aside ol li:has-text({:?})", other.handle),
    );
    let why = env.tenure(&["why", KEY, "--json"]).ok().json();
    let because = why["why"]["because"].as_array().unwrap().len();
    let shown = browser.run("return await page.$$eval('aside ul li', (all) => all.length)");
    assert_eq!(shown, because);
    browser.is_accessible("why a claim is held");
    // Freed here, it goes to the one that waits, and the page follows.
    browser.run(
        "await page.click('aside button:text-is(\"Free…\")'); await page.fill('dialog textarea', 'its laptop is closed');
         await page.click('dialog button[type=submit]'); await page.waitForSelector('dialog', { state: 'hidden' })",
    );
    assert_eq!(waits.wait().code, 0);
    let held = format!(
        "{row}:not(:has-text({:?})):has-text({:?})",
        one.handle, other.handle
    );
    waits_for(&mut browser, &held);
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn a_mission_shows_who_takes_part_and_who_collides() {
    let env = env();
    let members = ["claude", "codex"].map(|name| Member::new(&env, name, name));
    for member in &members {
        let words = ["mission", "join", "release", "--role", "developer"];
        member.agent.tenure(&words).ok();
        member.agent.tenure(&["mission", "focus", "wp:7"]).ok();
    }
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    go(&mut browser, "Missions");
    browser
        .run("await page.click('table[aria-label=Missions] tr:has-text(\"release\") th button')");
    let row = |one: &Member| {
        format!(
            "table[aria-label=Participants] tr:has(td:first-child:has-text({:?}))",
            one.handle
        )
    };
    for member in &members {
        waits_for(&mut browser, &format!("{}:has-text(\"wp:7\")", row(member)));
    }
    // Both work on it: the page says so by itself.
    for member in &members {
        member.agent.tenure(&["mission", "drive", "active"]).ok();
    }
    for (one, other) in [(0, 1), (1, 0)] {
        let collides = format!(
            "{}:has-text({:?})",
            row(&members[one]),
            members[other].handle
        );
        waits_for(&mut browser, &format!("{collides}:has-text(\"active\")"));
        let cell = format!("{} td:nth-of-type(6)", row(&members[one]));
        let cell = browser.run(&format!("return await page.innerText({cell:?})"));
        assert_eq!(cell, members[other].handle.as_str());
    }
    browser.is_accessible("a mission");
    browser.run(&format!(
        "await page.click({:?})",
        format!("{} a", row(&members[0]))
    ));
    waits_for(&mut browser, "aside.detail dl");
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn the_queue_shows_its_jobs_and_those_that_are_over() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    let person = env.agent("person");
    let queue = |item: &str| {
        let words = ["run", "mine", item, "--prompt", "hello", "--queue"];
        person.tenure(&words).ok();
    };
    queue("wp:1");
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    go(&mut browser, "Queue");
    waits_for(
        &mut browser,
        "table[aria-label=Jobs] tr:has-text(\"wp:1\"):has-text(\"mine\")",
    );
    queue("wp:2");
    waits_for(&mut browser, "table[aria-label=Jobs] tr:has-text(\"wp:2\")");
    let cancel = [
        "queue",
        "cancel",
        "--item",
        "wp:1",
        "--reason",
        "not needed",
    ];
    person.tenure(&cancel).ok();
    let rows = "return await page.$$eval('table[aria-label=Jobs] tbody tr', (all) => all.length)";
    poll(SOON, "only what waits", || {
        (browser.run(rows) == 1).then_some(())
    });
    browser.run("await page.check('text=Also ended ones')");
    waits_for(
        &mut browser,
        "table[aria-label=Jobs] tr:has-text(\"wp:1\"):has-text(\"cancelled\")",
    );
    browser.is_accessible("the queue");
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn an_agent_that_is_not_registered_is_shown_with_the_command_that_registers_it() {
    let mut env = env();
    env.set("TENURE_PS_UNMANAGED", "true");
    let agent = env.agent("claude");
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    let adopt = format!("tenure adopt {}", agent.pid());
    waits_for(&mut browser, &format!(".nobody tr:has-text({adopt:?})"));
    // Its command does what it says, and the page follows.
    let words: Vec<&str> = adopt.split(' ').skip(1).collect();
    let answer = env.tenure(&[&words[..], &["--json"]].concat()).ok().json();
    let handle = answer["session"]["handle"].as_str().unwrap().to_owned();
    poll(SOON, "it is a session", || {
        browser.rows().contains(&handle).then_some(())
    });
    let left = browser.run(&format!("return await page.isVisible('text={adopt}')"));
    assert_eq!(left, json!(false));
    browser.ends_clean();
}

/// A program called `opencode` that reports what its one step used.
fn opencode(env: &Env) {
    let program = env.dir().join("bin/opencode");
    let script = r#"#!/bin/sh
[ "$1" = session ] && exit 0
cat >/dev/null
say() { printf '{"type":"%s","sessionID":"ses_1","part":%s}\n' "$1" "$2"; }
say step_start '{}'
say text '{"text":"hi"}'
say step_finish '{"reason":"stop","cost":0.6,"tokens":{"input":120,"output":45}}'
"#;
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn usage_is_added_up_by_what_is_chosen() {
    let env = env();
    opencode(&env);
    let person = env.agent("person");
    let run = |item: &str| {
        let words = ["run", "opencode", item, "--prompt", "hello"];
        person.tenure(&words).ok();
    };
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    go(&mut browser, "Usage");
    waits_for(&mut browser, "main .empty:has-text(\"No usage counted\")");
    // The page follows what is used.
    run("wp:1");
    run("wp:2");
    waits_for(&mut browser, "main p:has-text(\"$1.20\")");
    let choose = |browser: &mut Browser, by: &str| {
        browser.run(&format!(
            "await page.selectOption('label:has-text(\"By\") select', {by:?})"
        ));
    };
    let row = "table[aria-label=Usage] tbody tr";
    choose(&mut browser, "item");
    for item in ["wp:1", "wp:2"] {
        let one = format!("{row}:has-text({item:?}):has-text(\"$0.60\")");
        waits_for(&mut browser, &one);
        let cells = browser.run(&format!(
            "return await page.$$eval(`{row}`, (all, item) => all.map((one) => [...one.cells].map((cell) => cell.textContent)).find(([name]) => name === item), {item:?})"
        ));
        assert_eq!(cells, json!([item, "120", "45", "$0.60"]));
    }
    choose(&mut browser, "agent");
    let one = format!("{row}:has-text(\"opencode\"):has-text(\"240\"):has-text(\"$1.20\")");
    waits_for(&mut browser, &one);
    assert!(!browser.text().contains("wp:1"));
    browser.is_accessible("the usage");
    browser.ends_clean();
}
