//! The fleet: what stands on the first screen, how soon, in which order, and what stays where it is.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_testkit::Env;

use crate::fill::fill;
use crate::support::{Browser, Member, SOON, Server, env};

/// How soon a death is shown.
const LIVE_WITHIN: Duration = Duration::from_secs(1);

fn order(env: &Env) -> Vec<String> {
    let answer = env.tenure(&["ps", "--json"]).ok().json();
    let rows = answer["sessions"].as_array().unwrap().iter();
    rows.map(|row| row["handle"].as_str().unwrap().to_owned())
        .collect()
}

/// Ten sessions of which one asks, one died with work, one waits for another's claim, and two wrote the same file.
fn ten(env: &Env) -> Vec<Member> {
    let names = ["claude", "codex", "gemini", "opencode", "qwen"];
    let members: Vec<Member> = (0..10)
        .map(|n| Member::new(env, names[n % names.len()], &format!("c{n}")))
        .collect();
    for (n, member) in members.iter().enumerate() {
        member.busy(&format!("Work on part {n}"));
    }
    members[0].asks("permission for rm -rf build");
    members[0].claim("issue:acme/web#1");
    members[1].claim("issue:acme/web#2");
    members[1].agent.kill9();
    members[2].claim("issue:acme/web#3");
    let join = |member: &Member| {
        let words = ["mission", "join", "release", "--role", "developer"];
        member.agent.tenure(&words).ok();
        member.agent.tenure(&["mission", "focus", "wp:7"]).ok();
        member.agent.tenure(&["mission", "drive", "active"]).ok();
    };
    join(&members[3]);
    join(&members[4]);
    members
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn the_four_questions_are_answered_on_the_first_screen() {
    let env = env();
    let members = ten(&env);
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    browser.row_shows(&members[1].handle, "cut off");
    let shown = |browser: &mut Browser, handle: &str| -> String {
        let code = format!(
            "const row = page.locator(`table.fleet tbody tr:has(button.link:has-text({handle:?}))`);
             const box = await row.boundingBox();
             if (box.y < 0 || box.y + box.height > 720 || box.x + box.width > 1280) throw new Error(JSON.stringify(box));
             return await row.innerText()"
        );
        browser.run(&code).as_str().unwrap().to_owned()
    };
    let asks = shown(&mut browser, &members[0].handle);
    assert!(
        asks.contains("asks") && asks.contains("permission for rm -rf build"),
        "{asks}"
    );
    let dead = shown(&mut browser, &members[1].handle);
    let command = format!("tenure resume {}", members[1].handle);
    assert!(
        dead.contains("cut off") && dead.contains(&command),
        "{dead}"
    );
    assert!(dead.contains("held issue:acme/web#2"), "{dead}");
    browser.run("await page.waitForSelector('table.fleet td.keys time')");
    let holds = shown(&mut browser, &members[2].handle);
    assert!(holds.contains("issue:acme/web#3"), "{holds}");
    let since = browser.run(&format!(
        "return await page.textContent(`table.fleet tr:has(button.link:has-text({:?})) td.keys time`)",
        members[2].handle
    ));
    assert!(since.as_str().unwrap().ends_with(['s', 'm']), "{since}");
    for (one, other) in [(3, 4), (4, 3)] {
        let collides = shown(&mut browser, &members[one].handle);
        let with = format!("collides with {}", members[other].handle);
        assert!(collides.contains(&with), "{collides}");
    }
    assert_eq!(browser.rows(), order(&env));
    assert_eq!(browser.run("return await page.title()"), "(1) tenure");
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn a_death_is_shown_within_a_second() {
    let env = env();
    let members: Vec<Member> = (0..4)
        .map(|n| Member::new(&env, "claude", &format!("c{n}")))
        .collect();
    for member in &members {
        member.claim(&format!("issue:acme/web#{}", member.agent.pid()));
    }
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    // What this machine adds is not the same each time.
    let mut shortest = Duration::MAX;
    for member in &members {
        let began = Instant::now();
        member.agent.kill9();
        browser.row_shows(&member.handle, "cut off");
        shortest = shortest.min(began.elapsed());
    }
    assert!(shortest < LIVE_WITHIN, "{shortest:?}");
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn the_row_under_the_cursor_and_the_focus_stay() {
    let env = env();
    let members: Vec<Member> = (0..5)
        .map(|n| Member::new(&env, "claude", &format!("c{n}")))
        .collect();
    for member in &members {
        member.busy("work");
    }
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    let before = order(&env);
    browser.run(&format!("await page.waitForFunction(() => document.querySelectorAll('table.fleet tbody tr').length === {})", before.len()));
    assert_eq!(browser.rows(), before);
    let (still, last) = (&before[1], &before[4]);
    browser.run(&format!("await page.focus('table.fleet button.link:has-text({last:?})'); await page.hover('table.fleet tr:has(button.link:has-text({still:?})) td.proof')"));
    let place = format!(
        "return (await page.locator('table.fleet tr:has(button.link:has-text({still:?}))').boundingBox()).y"
    );
    let was = browser.run(&place);
    let below = before[3].clone();
    let asker = members
        .iter()
        .find(|member| member.handle == below)
        .unwrap();
    asker.asks("Which colour?");
    browser.row_shows(&below, "Which colour?");
    assert_eq!(browser.rows()[0], below);
    assert_eq!(browser.rows()[1], *still, "the row under the cursor");
    assert_eq!(browser.run(&place), was);
    let focused =
        browser.run("return await page.evaluate(() => document.activeElement.textContent)");
    assert_eq!(focused, json!(last), "the focus survives an update");
    browser.run(
        "await page.mouse.move(5, 715); await page.evaluate(() => document.activeElement.blur())",
    );
    members[0].busy("more work");
    let same = |browser: &mut Browser| browser.rows() == order(&env);
    tenure_testkit::poll(SOON, "the order of ps", || same(&mut browser).then_some(()));
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn text_and_paths_of_agents_are_text() {
    let env = env();
    let dir = env.dir().join("<img src=y>\u{1b}[31m\u{202e}gpj");
    std::fs::create_dir(&dir).unwrap();
    let member = Member::in_dir(&env, "claude", "c1", &dir);
    let title =
        "<img src=x onerror=alert(1)><script>alert(2)</script> \u{202e}gnp.exe \u{1b}]0;gone\u{7}";
    member.busy(title);
    let claim = ["claim", "wp:1", "--note", "<u>note</u>\u{1b}[2J"];
    member.agent.tenure(&claim).ok();
    member.asks("<b onmouseover=alert(3)>now</b>?");
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    browser.row_shows(&member.handle, "<b onmouseover=alert(3)>now</b>?");
    browser.row_shows(&member.handle, "<img src=x onerror=alert(1)>");
    let made = browser.run("return await page.$$eval('#app img, #app script, #app b[onmouseover]', (all) => all.length)");
    assert_eq!(made, 0);
    browser.row_shows(&member.handle, "<img src=y>");
    let attributes = "return await page.$$eval('body *', (all) => all.flatMap((one) => [...one.attributes].map((a) => a.value)).join(' '))";
    for view in ["fleet", "claims", "timeline", "log"] {
        browser.run(&format!(
            "await page.evaluate(() => {{ location.hash = '{view}'; }}); await page.waitForSelector('#app :text(\"{}\")', {{ state: 'attached' }})",
            member.handle
        ));
        let shown = browser.run(attributes).as_str().unwrap().to_owned() + &browser.text();
        let acts = |c: char| c.is_control() && !"\n\t".contains(c) || c == '\u{202e}';
        assert!(!shown.contains(acts), "{view}: {shown:?}");
    }
    browser.run("await page.evaluate(() => { location.hash = 'fleet'; })");
    let isolated = browser.run(
        "return await page.$eval('table.fleet .title', (one) => one.firstElementChild.tagName)",
    );
    assert_eq!(isolated, "BDI");
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn details_stand_at_the_side_and_follow_what_happens() {
    let env = env();
    let member = Member::new(&env, "claude", "c1");
    member.busy("Fix the login");
    member.claim("issue:acme/web#5");
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    browser.run(&format!(
        "await page.click('table.fleet button.link:has-text({:?})')",
        member.handle
    ));
    let detail = |browser: &mut Browser, text: &str| {
        browser.run(&format!(
            "await page.waitForSelector('aside.detail:has-text({text:?})')"
        ));
    };
    detail(&mut browser, "issue:acme/web#5");
    detail(&mut browser, "Fix the login");
    detail(&mut browser, &format!("pid {}", member.agent.pid()));
    detail(&mut browser, "claim.granted");
    member.agent.tenure(&["release", "issue:acme/web#5"]).ok();
    detail(&mut browser, "claim.released");
    let focus = browser.run("return await page.evaluate(() => document.activeElement.id)");
    assert_eq!(focus, "detail-head");
    browser.run("await page.keyboard.press('Escape'); await page.waitForSelector('aside.detail', { state: 'detached' })");
    let back = |browser: &mut Browser| -> Option<Value> {
        let focus =
            browser.run("return await page.evaluate(() => document.activeElement.textContent)");
        (focus == json!(member.handle)).then_some(focus)
    };
    tenure_testkit::poll(SOON, "the focus is back in its row", || back(&mut browser));
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn nobody_there_yet_shows_what_to_do() {
    let env = env();
    // One agent has no hooks, one has those of another tenure, and one has ours.
    std::fs::create_dir_all(env.home().join(".claude")).unwrap();
    env.tenure(&["install", "gemini"]).ok();
    env.tenure(&["install", "qwen"]).ok();
    let settings = env.home().join(".gemini/settings.json");
    let text = std::fs::read_to_string(&settings).unwrap();
    let ours = env.tenure_path().to_str().unwrap();
    std::fs::write(&settings, text.replace(ours, "/opt/old/tenure")).unwrap();
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    browser.run("await page.waitForSelector('table[aria-label=\"Hooks of agents\"]')");
    let rows = browser.run(
        "return await page.$$eval('table[aria-label=\"Hooks of agents\"] tbody tr', (all) => all.map((row) =>
           [row.cells[0].textContent, row.querySelector('.state').lastChild.textContent.trim(), row.querySelector('code')?.textContent ?? null]))",
    );
    let expected = json!([
        ["claude", "not installed", "tenure install claude"],
        ["gemini", "outdated", "tenure install gemini"],
        ["qwen", "installed", null],
    ]);
    assert_eq!(rows, expected);
    let text = browser.text();
    let host = rustix::system::uname();
    let host = format!("on {}", host.nodename().to_str().unwrap());
    assert!(
        text.contains("No sessions yet") && text.contains(&host),
        "{text}"
    );
    browser.is_accessible("nobody there yet");
    // Who did what it says comes back to the page and sees it.
    env.tenure(&["install"]).ok();
    browser.run(
        "await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
         await page.waitForSelector('text=Start an agent: its session is shown here.')",
    );
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn ten_thousand_ended_sessions_are_folded() {
    let env = env();
    fill(&env, 10_000);
    let member = Member::new(&env, "claude", "c1");
    member.busy("work");
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    browser.row_shows(&member.handle, "busy");
    let rows = "return await page.$$eval('tbody tr', (all) => all.length)";
    let live = browser.run(rows).as_u64().unwrap();
    assert!(live < 20, "{live} rows");
    browser.run("await page.click('button:has-text(\"Show ended\")'); await page.waitForSelector('table[aria-label=\"Ended sessions\"] tbody tr', { timeout: 60_000 })");
    let ended = "return await page.$$eval('table[aria-label=\"Ended sessions\"] tbody tr', (all) => all.length)";
    assert_eq!(browser.run(ended), 100);
    browser.run("await page.click('.ended button:has-text(\"100 more\")'); await page.waitForFunction(() => document.querySelectorAll('table[aria-label=\"Ended sessions\"] tbody tr').length === 200, undefined, { timeout: 60_000 })");
    // The page still follows at once.
    member.asks("Which colour?");
    browser.row_shows(&member.handle, "Which colour?");
    browser.ends_clean();
}
