//! The page at every width, in every scheme, and what axe finds.

use tenure_testkit::Env;

use crate::support::{Browser, Member, Server, env};

fn busy_house(env: &Env) -> Vec<Member> {
    let names = ["claude", "codex", "gemini"];
    let members: Vec<Member> = names
        .iter()
        .map(|name| Member::new(env, name, name))
        .collect();
    members[0].asks(
        "permission for rm -rf a/very/long/path/that/nobody/would/type/by/hand/into/a/terminal",
    );
    members[1].busy("A long title that says in many words what the session works on, and more");
    members[1].claim("path:acme/web:a/very/long/path/**");
    members[2].claim("issue:acme/web#2");
    members[2].agent.kill9();
    let words = ["mission", "join", "release", "--role", "developer"];
    members[1].agent.tenure(&words).ok();
    members
}

const VIEWS: [&str; 8] = [
    "fleet", "timeline", "claims", "missions", "runs", "usage", "queue", "log",
];

fn go(browser: &mut Browser, view: &str) {
    browser.run(&format!(
        "await page.evaluate(() => {{ location.hash = {view:?}; }}); await page.waitForSelector('nav a[aria-current][href=\"#{view}\"]');
         await page.waitForFunction(() => !document.querySelector('main .empty')?.textContent.includes('…'))"
    ));
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn every_view_is_accessible_in_light_and_dark() {
    let env = env();
    let members = busy_house(&env);
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    for scheme in ["light", "dark"] {
        browser.run(&format!(
            "await page.emulateMedia({{ colorScheme: {scheme:?} }})"
        ));
        for view in VIEWS {
            go(&mut browser, view);
            browser.is_accessible(&format!("{view}, {scheme}"));
        }
        go(&mut browser, "fleet");
        browser.run(&format!(
            "await page.click('table.fleet button.link:has-text({:?})'); await page.waitForSelector('aside.detail td button')",
            members[1].handle
        ));
        browser.is_accessible(&format!("the details, {scheme}"));
        browser.run("await page.click('aside button[aria-label^=Free]')");
        browser.is_accessible(&format!("a dialog, {scheme}"));
        browser.run("await page.click('dialog button:text-is(\"Cancel\")')");
    }
    let background = "return await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)";
    assert_eq!(browser.run(background), "rgb(20, 23, 27)");
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn nothing_is_cut_off_at_360_pixels_or_at_200_percent() {
    let env = env();
    let members = busy_house(&env);
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    for (width, height) in [(360, 740), (640, 360)] {
        browser.run(&format!(
            "await page.setViewportSize({{ width: {width}, height: {height} }})"
        ));
        for view in VIEWS {
            go(&mut browser, view);
            let wide = browser.run("return await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)");
            assert_eq!(wide, 0, "{view} at {width}");
        }
        go(&mut browser, "fleet");
        browser.row_shows(&members[1].handle, "path:acme/web");
        let outside = browser.run(
            "return await page.$$eval('table.fleet tbody button, header a', (all) => all.filter((one) => one.getBoundingClientRect().right > innerWidth).length)",
        );
        assert_eq!(outside, 0, "at {width}");
        browser.is_accessible(&format!("the fleet at {width}"));
    }
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn states_are_told_apart_without_colours() {
    let env = env();
    let members = busy_house(&env);
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    browser.run("await page.emulateMedia({ forcedColors: 'active', reducedMotion: 'reduce' })");
    let state = |browser: &mut Browser, handle: &str| {
        let code = format!(
            "return await page.$eval(`table.fleet tr:has(button.link:has-text({handle:?})) .state`, (one) => one.textContent.trim())"
        );
        browser.run(&code).as_str().unwrap().to_owned()
    };
    let found: Vec<String> = members
        .iter()
        .map(|member| state(&mut browser, &member.handle))
        .collect();
    assert_eq!(found, ["? asks", "● busy", "✝ cut off"]);
    let moving = browser.run("return await page.$$eval('button, nav a', (all) => all.filter((one) => getComputedStyle(one).transitionDuration !== '0s').length)");
    assert_eq!(moving, 0);
    browser.is_accessible("forced colours");
    browser.ends_clean();
}
