//! The timeline: what it shows is what `tenure timeline` answers, and it goes on by itself.

use serde_json::Value;
use tenure_testkit::{Env, poll};

use crate::support::{Browser, Member, SOON, Server, env};

/// Item, epoch and holder of each hold, in the order of the answer.
fn holds(env: &Env) -> Vec<[String; 3]> {
    let answer = env.tenure(&["timeline", "--json"]).ok().json();
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let row = |hold: &Value| {
        [
            text(&hold["key"]),
            text(&hold["epoch"]),
            text(&hold["session"]["handle"]),
        ]
    };
    answer["holds"]
        .as_array()
        .unwrap()
        .iter()
        .map(row)
        .collect()
}

fn shown(browser: &mut Browser) -> Vec<[String; 3]> {
    let rows = browser.run(
        "return await page.$$eval('.tl-table tbody tr', (all) => all.map((row) => [...row.cells].slice(0, 3).map((one) => one.textContent)))",
    );
    serde_json::from_value(rows).unwrap()
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn the_timeline_shows_every_hold() {
    let env = env();
    let (one, other) = (
        Member::new(&env, "claude", "c1"),
        Member::new(&env, "codex", "c2"),
    );
    for key in ["issue:acme/web#1", "issue:acme/web#2"] {
        one.claim(key);
    }
    one.agent.tenure(&["release", "issue:acme/web#1"]).ok();
    let words = ["takeover", "issue:acme/web#2", "--reason", "it is stuck"];
    other.agent.tenure(&words).ok();
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    browser.run(
        "await page.click('nav a:text-is(\"Timeline\")'); await page.waitForSelector('.tl-one')",
    );
    assert_eq!(holds(&env).len(), 3);
    assert_eq!(shown(&mut browser), holds(&env));
    let bars = browser.run("return await page.$$eval('.tl-one', (all) => all.length)");
    assert_eq!(bars, 3);
    assert!(browser.text().contains("it is stuck"));
    // It goes on by itself, also when its holder dies.
    other.claim("issue:acme/web#3");
    other.agent.kill9();
    poll(SOON, "what happened since", || {
        (shown(&mut browser).len() == 4 && browser.text().contains("holder died")).then_some(())
    });
    assert_eq!(shown(&mut browser), holds(&env));
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn the_file_of_the_timeline_works_without_a_server_and_asks_for_nothing() {
    let env = env();
    let member = Member::new(&env, "claude", "c1");
    member.busy("</script><img src=x onerror=alert(1)>");
    member.claim("issue:acme/web#1");
    member.claim("issue:acme/web#2");
    member.agent.tenure(&["release", "issue:acme/web#1"]).ok();
    let file = env.dir().join("timeline.html");
    let file = file.to_str().unwrap();
    env.tenure(&["timeline", "--html", file]).ok();
    let mut browser = Browser::start(&env);
    browser.run("globalThis.asked = []; page.on('request', (one) => asked.push(one.url()))");
    browser.run(&format!(
        "await page.goto('file://{file}'); await page.waitForSelector('.tl-one')"
    ));
    assert_eq!(shown(&mut browser), holds(&env));
    let made = browser.run("return await page.$$eval('img', (all) => all.length)");
    assert_eq!(made, 0);
    let asked = browser.run("return asked.filter((one) => !one.startsWith('file:')).length");
    assert_eq!(asked, 0);
    browser.is_accessible("the file of the timeline");
    browser.ends_clean();
}
