//! What the page shows when the connection, the server or the login is gone, and in several tabs.

use serde_json::json;
use tenure_testkit::{Env, Signal, poll};

use crate::support::{Browser, Member, SOON, Server, env};

const LIVE: &str = "await page.waitForSelector('.link-state:has-text(\"live\")')";

/// A busy session, and the server that shows it.
fn one_busy() -> (Env, Member, Server) {
    let env = env();
    let member = Member::new(&env, "claude", "c1");
    member.busy("work");
    let server = Server::new(&env);
    (env, member, server)
}

/// A logged-in page whose clock only the test moves.
fn with_own_clock(env: &Env, server: &Server) -> Browser {
    let mut browser = Browser::start(env);
    browser.run("await page.clock.install()");
    browser.run(&format!("await page.goto({:?}); {LIVE}", server.url));
    browser
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn eight_tabs_are_live_by_one_stream() {
    let (env, member, server) = one_busy();
    let mut browser = Browser::login(&env, &server);
    let streams = "context.on('request', (one) => { if (one.url().includes('/api/v1/events?rows')) globalThis.streams = (globalThis.streams ?? 0) + 1; })";
    browser.run(streams);
    for tab in 1..8 {
        browser.run_in(
            tab,
            &format!("await page.goto({:?}); {LIVE}", server.page()),
        );
    }
    member.asks("Which colour?");
    for tab in 0..8 {
        browser.run_in(
            tab,
            "await page.waitForSelector('table.fleet tr:has-text(\"Which colour?\")')",
        );
        assert_eq!(
            browser.run_in(tab, "return await page.title()"),
            "(1) tenure"
        );
    }
    assert_eq!(
        browser.run("return globalThis.streams ?? 0"),
        0,
        "no tab but the first reads the stream"
    );
    // The tab that reads the stream is closed; another one does.
    browser.run("await page.close()");
    member.busy("work");
    browser.run_in(
        7,
        "await page.waitForSelector('table.fleet tr:has-text(\"busy\")')",
    );
    assert_eq!(browser.run_in(7, "return globalThis.streams"), 1);
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn a_cut_line_is_said_and_repaired() {
    let (env, member, server) = one_busy();
    let mut browser = with_own_clock(&env, &server);
    browser.row_shows(&member.handle, "busy");
    // Nothing comes any more, and nothing says so.
    server.process.signal(Signal::STOP);
    browser.run("await page.clock.fastForward(13_000); await page.waitForSelector('.link-state.bad:has-text(\"data is 1\")')");
    assert!(
        browser.text().contains(&member.handle),
        "the last data stays"
    );
    member.asks("Which colour?");
    server.process.signal(Signal::CONT);
    browser.run("await page.clock.fastForward(30_000)");
    browser.row_shows(&member.handle, "Which colour?");
    browser.run(LIVE);
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn the_page_waits_for_as_many_beats_as_the_server_says_that_it_sends() {
    let (env, _member, server) = one_busy();
    let mut browser = with_own_clock(&env, &server);
    server.process.signal(Signal::STOP);
    // As from a server that says once a minute that it is there.
    browser.run(
        "await page.evaluate(async () => {
           const store = await import('./store.js');
           store.apply('snapshot', { ...store.state, at: new Date().toISOString(), beat_ms: 60_000 });
         })",
    );
    let shown = "return await page.$eval('.link-state', (one) => one.textContent)";
    browser.run("await page.clock.runFor(50_000)");
    assert_eq!(browser.run(shown), "live");
    browser.run("await page.clock.runFor(25_000)");
    browser.run("await page.waitForSelector('.link-state.bad:has-text(\"data is 1m old\")')");
    server.process.signal(Signal::CONT);
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn a_tab_that_was_hidden_for_ten_minutes_is_right_at_once() {
    let (env, member, server) = one_busy();
    let mut browser = with_own_clock(&env, &server);
    let hidden = |is: bool| {
        format!(
            "await page.evaluate(() => {{ Object.defineProperty(document, 'hidden', {{ value: {is}, configurable: true }}); document.dispatchEvent(new Event('visibilitychange')); }});"
        )
    };
    browser.run(&hidden(true));
    server.process.signal(Signal::STOP);
    browser.run("await page.clock.fastForward('10:00')");
    member.asks("Which colour?");
    server.process.signal(Signal::CONT);
    browser.run(&format!("{} await page.clock.runFor(2_000)", hidden(false)));
    browser.row_shows(&member.handle, "Which colour?");
    browser.run(LIVE);
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn a_restarted_server_asks_for_a_login_and_the_last_data_stays() {
    let (env, member, server) = one_busy();
    let port = server.port;
    let mut browser = Browser::login(&env, &server);
    browser.row_shows(&member.handle, "busy");
    server.process.kill9();
    browser.run("await page.waitForSelector('.link-state.bad:has-text(\"data is\")')");
    drop(server);
    let server = Server::at(&env, port);
    browser.run("await page.waitForSelector('.link-state:has-text(\"tenure serve --open\")')");
    assert!(
        browser.text().contains(&member.handle),
        "the last data stays"
    );
    browser.run_in(1, &format!("await page.goto({:?}); {LIVE}", server.url));
    browser.run(LIVE);
    member.asks("Which colour?");
    browser.row_shows(&member.handle, "Which colour?");
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn without_a_login_there_is_one_line_and_no_data() {
    let env = env();
    let member = Member::new(&env, "claude", "c1");
    let server = Server::new(&env);
    let mut browser = Browser::start(&env);
    browser.run(&format!(
        "await page.goto({:?}); await page.waitForSelector('text=Not logged in')",
        server.page()
    ));
    let text = browser.text();
    assert!(
        text.contains("tenure serve --open") && !text.contains(&member.handle),
        "{text}"
    );
    browser.is_accessible("no login");
    // A code works once.
    browser.run_in(1, &format!("await page.goto({:?}); {LIVE}", server.url));
    browser.run(LIVE);
    let address = browser.run_in(1, "return page.url()");
    assert_eq!(address, json!(server.page()));
    let again = format!(
        "const other = await context.browser().newContext(); const one = await other.newPage(); await one.goto({:?});
         await one.waitForSelector('text=Not logged in'); return await one.innerText('body')",
        server.url
    );
    let text = browser.run(&again);
    assert!(!text.as_str().unwrap().contains(&member.handle), "{text}");
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn the_log_is_live_and_filtered() {
    let env = env();
    let (one, other) = (
        Member::new(&env, "claude", "c1"),
        Member::new(&env, "codex", "c2"),
    );
    one.claim("issue:acme/web#1");
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    browser.run("await page.click('nav a:text-is(\"Log\")'); await page.waitForSelector('td:has-text(\"issue:acme/web#1\")')");
    other.claim("issue:acme/web#2");
    browser.run("await page.waitForSelector('td:has-text(\"issue:acme/web#2\")')");
    browser.run("await page.fill('input[type=search]', 'web#1')");
    let shown = |browser: &mut Browser| browser.text().contains("issue:acme/web#2");
    poll(SOON, "the filter", || (!shown(&mut browser)).then_some(()));
    assert!(browser.text().contains("issue:acme/web#1"));
    browser.ends_clean();
}
