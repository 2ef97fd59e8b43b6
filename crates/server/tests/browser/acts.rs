//! What a person can do on the page: each with a reason, by mouse and by keyboard alone.

use serde_json::{Value, json};
use tenure_testkit::{Env, poll};

use crate::support::{Browser, Member, SOON, Server, env};

const KEY: &str = "issue:acme/web#42";

fn claim(env: &Env) -> Value {
    env.tenure(&["why", KEY, "--json"]).ok().json()["claim"].clone()
}

fn events(env: &Env) -> String {
    env.tenure(&["log", "--json"]).ok().stdout
}

fn two(env: &Env) -> (Member, Member) {
    let (one, other) = (
        Member::new(env, "claude", "c1"),
        Member::new(env, "codex", "c2"),
    );
    one.busy("Fix the login");
    other.busy("Write the docs");
    one.claim(KEY);
    (one, other)
}

fn choose(browser: &mut Browser, handle: &str) {
    browser.run(&format!(
        "await page.click('table.fleet button.link:has-text({handle:?})'); await page.waitForSelector('aside.detail td button')"
    ));
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn a_claim_is_given_and_freed_with_a_reason() {
    let env = env();
    let (one, other) = two(&env);
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    choose(&mut browser, &one.handle);
    browser.run(&format!(
        "await page.click('aside button[aria-label^=Give]'); await page.selectOption('dialog select', {:?});",
        other.handle
    ));
    // Without a reason nothing is sent.
    browser.run("await page.click('dialog button[type=submit]')");
    assert_eq!(browser.run("return await page.isVisible('dialog')"), true);
    assert_eq!(claim(&env)["holder"]["handle"], json!(one.handle));
    browser.run(
        "await page.fill('dialog textarea', 'it knows the code'); await page.click('dialog button[type=submit]');
         await page.waitForSelector('dialog', { state: 'hidden' })",
    );
    assert_eq!(claim(&env)["holder"]["handle"], json!(other.handle));
    assert!(events(&env).contains("it knows the code"));
    browser.row_shows(&other.handle, KEY);
    choose(&mut browser, &other.handle);
    browser.run(
        "await page.click('aside button[aria-label^=Free]'); await page.fill('dialog textarea', 'not needed any more');
         await page.click('dialog button[type=submit]'); await page.waitForSelector('dialog', { state: 'hidden' })",
    );
    assert_eq!(claim(&env)["state"], "free");
    assert!(events(&env).contains("not needed any more"));
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn an_act_on_what_has_changed_is_refused_and_says_so() {
    let env = env();
    let (one, other) = two(&env);
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    choose(&mut browser, &one.handle);
    browser.run("await page.click('aside button[aria-label^=Free]'); await page.fill('dialog textarea', 'old')");
    let words = ["handoff", KEY, "--to", &other.handle];
    one.agent.tenure(&words).ok();
    browser.run("await page.click('dialog button[type=submit]'); await page.waitForSelector('dialog .problem')");
    assert_eq!(claim(&env)["holder"]["handle"], json!(other.handle));
    browser.run("await page.click('dialog button:text-is(\"Cancel\")')");
    browser.ends_clean();
}

/// The names of what the keyboard reaches, one Tab after another.
fn tab_to(browser: &mut Browser, what: &str) {
    for _ in 0..60 {
        browser.run("await page.keyboard.press('Tab')");
        let found = browser.run(
            "return await page.evaluate(() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent)",
        );
        if found.as_str().is_some_and(|found| found.starts_with(what)) {
            return;
        }
    }
    panic!("Tab does not reach {what}");
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn every_act_is_done_by_keyboard_alone() {
    let env = env();
    let (one, other) = two(&env);
    let dead = Member::new(&env, "gemini", "c3");
    dead.busy("Read");
    dead.claim("issue:acme/web#9");
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    browser.row_shows(&one.handle, KEY);
    let open = |browser: &mut Browser, handle: &str| {
        tab_to(browser, handle);
        browser.run(
            "await page.keyboard.press('Enter'); await page.waitForSelector('aside.detail dl')",
        );
    };
    let send = |browser: &mut Browser, text: &str| {
        browser.run("await page.waitForSelector('dialog[open]')");
        browser.run(&format!("await page.keyboard.type({text:?})"));
        browser.run("await page.keyboard.press('Tab'); await page.keyboard.press('Enter'); await page.waitForSelector('dialog', { state: 'hidden' })");
    };
    let close = |browser: &mut Browser| {
        browser.run("await page.keyboard.press('Escape'); await page.waitForSelector('aside.detail', { state: 'detached' })");
    };
    open(&mut browser, &one.handle);
    tab_to(&mut browser, "Tell");
    browser.run("await page.keyboard.press('Enter')");
    send(&mut browser, "please look at the tests");
    let read = one.agent.tenure(&["whoami"]).ok();
    let notices = format!("{}{}", read.stdout, read.stderr);
    assert!(notices.contains("please look at the tests"), "{notices}");
    tab_to(&mut browser, "Give");
    browser.run(
        "await page.keyboard.press('Enter'); await page.waitForSelector('dialog[open] select')",
    );
    browser.run(&format!(
        "await page.keyboard.type({:?}); await page.keyboard.press('Tab')",
        other.handle
    ));
    send(&mut browser, "it has time");
    poll(SOON, "the claim was given", || {
        (claim(&env)["holder"]["handle"] == json!(other.handle)).then_some(())
    });
    tab_to(&mut browser, "Close");
    close(&mut browser);
    open(&mut browser, &other.handle);
    browser.run("await page.waitForSelector('aside.detail td button')");
    tab_to(&mut browser, "Free");
    browser.run("await page.keyboard.press('Enter')");
    send(&mut browser, "done elsewhere");
    poll(SOON, "the claim is free", || {
        (claim(&env)["state"] == "free").then_some(())
    });
    tab_to(&mut browser, "End");
    browser.run("await page.keyboard.press('Enter')");
    send(&mut browser, "its window is lost");
    poll(SOON, "the session is ended", || {
        let ended = env.tenure(&["show", &other.handle, "--json"]).ok().json();
        (ended["session"]["state"] == "ended").then_some(())
    });
    close(&mut browser);
    dead.agent.kill9();
    browser.row_shows(&dead.handle, "cut off");
    open(&mut browser, &dead.handle);
    tab_to(&mut browser, "Dismiss");
    browser.run("await page.keyboard.press('Enter')");
    send(&mut browser, "not needed");
    poll(SOON, "the session is dismissed", || {
        (!browser.rows().contains(&dead.handle)).then_some(())
    });
    browser.ends_clean();
}
