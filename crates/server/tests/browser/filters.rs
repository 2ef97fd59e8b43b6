//! What a person does with the fleet's list: filters, groups, and sessions kept on top.

use serde_json::json;
use tenure_testkit::{Env, poll, scratch_git};

use crate::support::{Browser, Member, SOON, Server, env};

/// Waits for these rows, in this order.
#[track_caller]
fn shows(browser: &mut Browser, what: &str, expected: &[&Member]) {
    let expected: Vec<&str> = expected.iter().map(|one| one.handle.as_str()).collect();
    poll(SOON, what, || (browser.rows() == expected).then_some(()));
}

fn three(env: &Env) -> [Member; 3] {
    ["claude", "codex", "gemini"].map(|name| {
        let member = Member::new(env, name, name);
        member.busy("work");
        member
    })
}

fn repo_of(env: &Env, member: &Member) -> String {
    let shown = env.tenure(&["show", &member.handle, "--json"]).ok().json();
    shown["session"]["repo"].as_str().unwrap().to_owned()
}

/// The page follows the fleet, whatever a person did with its rows.
fn moves_no_row_away(browser: &mut Browser) {
    browser.run(
        "await page.mouse.move(5, 715); await page.evaluate(() => document.activeElement.blur())",
    );
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn a_pinned_session_stays_on_top_until_it_is_unpinned() {
    let env = env();
    let [oldest, middle, newest] = three(&env);
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    shows(&mut browser, "newest first", &[&newest, &middle, &oldest]);
    let pin = |browser: &mut Browser| {
        browser.run(&format!(
            "await page.click('table.fleet button.link:has-text({:?})'); await page.click('aside button:text-is(\"Pin\")')",
            oldest.handle
        ));
        moves_no_row_away(browser);
    };
    pin(&mut browser);
    shows(
        &mut browser,
        "the pinned one first",
        &[&oldest, &newest, &middle],
    );
    let pressed = browser
        .run("return await page.getAttribute('aside button:text-is(\"Pin\")', 'aria-pressed')");
    assert_eq!(pressed, "true");
    // One that asks comes behind it, and the choice is this browser's.
    middle.asks("Which colour?");
    shows(
        &mut browser,
        "also before one that asks",
        &[&oldest, &middle, &newest],
    );
    browser.run("await page.goto(page.url().split('#')[0]); await page.waitForSelector('table.fleet tbody tr')");
    shows(
        &mut browser,
        "after the page was loaded again",
        &[&oldest, &middle, &newest],
    );
    pin(&mut browser);
    shows(
        &mut browser,
        "the order of ps",
        &[&middle, &newest, &oldest],
    );
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn sessions_are_grouped_by_repository() {
    let env = env();
    let member = |name: &str, repo: &str| {
        let dir = env.work().join(repo);
        if !dir.exists() {
            scratch_git(&dir, Some(&format!("https://github.com/acme/{repo}.git")));
        }
        Member::in_dir(&env, name, name, &dir)
    };
    let one = member("claude", "web");
    let two = member("codex", "api");
    let three = member("gemini", "web");
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    shows(&mut browser, "newest first", &[&three, &two, &one]);
    browser.run("await page.check('text=Group by repository')");
    moves_no_row_away(&mut browser);
    let groups = |browser: &mut Browser| -> Vec<Vec<String>> {
        let code = "return await page.$$eval('table.fleet tbody', (all) => all.map((body) => [...body.querySelectorAll('.group th bdi, button.link')].map((one) => one.textContent)))";
        serde_json::from_value(browser.run(code)).unwrap()
    };
    let names = |members: &[&Member]| -> Vec<String> {
        let handles = members.iter().map(|one| one.handle.clone());
        [repo_of(&env, members[0])]
            .into_iter()
            .chain(handles)
            .collect()
    };
    poll(SOON, "two groups", || {
        let expected = [names(&[&three, &one]), names(&[&two])];
        (groups(&mut browser) == expected).then_some(())
    });
    browser.is_accessible("the fleet in groups");
    // The group with the most urgent session comes first.
    let dir = env.work().join("api");
    two.report(json!({"event": "waiting", "asks": "Which colour?", "cwd": dir}));
    poll(SOON, "the other group first", || {
        let expected = [names(&[&two]), names(&[&three, &one])];
        (groups(&mut browser) == expected).then_some(())
    });
    browser.run(&format!(
        "await page.selectOption('label:has-text(\"Repository\") select', {:?})",
        repo_of(&env, &one)
    ));
    shows(&mut browser, "one repository", &[&three, &one]);
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn the_fleet_is_filtered_by_mission_agent_and_state() {
    let env = env();
    let [one, two, three] = three(&env);
    let join = |member: &Member| {
        let words = ["mission", "join", "release", "--role", "developer"];
        member.agent.tenure(&words).ok();
    };
    join(&one);
    join(&three);
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    shows(&mut browser, "all of them", &[&three, &two, &one]);
    let choose = |browser: &mut Browser, label: &str, value: &str| {
        browser.run(&format!(
            "await page.selectOption('.filters label:has-text({label:?}) select', {value:?})"
        ));
    };
    choose(&mut browser, "Mission", "release");
    shows(&mut browser, "those of the mission", &[&three, &one]);
    // Who joins later is shown then.
    join(&two);
    shows(&mut browser, "who joined", &[&three, &two, &one]);
    choose(&mut browser, "Agent", "codex");
    shows(&mut browser, "one agent of the mission", &[&two]);
    choose(&mut browser, "Mission", "");
    choose(&mut browser, "Agent", "");
    one.asks("Which colour?");
    browser.row_shows(&one.handle, "Which colour?");
    browser.run("await page.click('.counts button:has-text(\"wait for you\")')");
    shows(&mut browser, "those that wait", &[&one]);
    browser.run("await page.click('.counts button:has-text(\"died with work\")')");
    browser.run("await page.waitForSelector('text=No session fits these filters.')");
    browser.ends_clean();
}
