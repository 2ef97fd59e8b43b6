//! Unattended runs: their list, the log of one as it is written, and stopping it.

use tenure_testkit::{Cmd, Scripted, poll};

use crate::support::{Browser, SOON, Server, env};

const ROW: &str = "table[aria-label=Runs] tbody tr";

/// Opens the list, and the run on this item beside it.
fn open(browser: &mut Browser, item: &str) {
    browser.run(&format!(
        "await page.click('nav a:text-is(\"Runs\")'); await page.click('{ROW}:has-text({item:?}) th button');
         await page.waitForSelector('.tail')"
    ));
}

/// Waits for a line in the log at the side.
fn tail_has(browser: &mut Browser, line: &str) {
    browser.run(&format!(
        "await page.waitForSelector('.tail div:has-text({line:?})')"
    ));
}

/// Waits until a run's row and its details show how it ended.
fn ended(browser: &mut Browser, item: &str, word: &str) {
    browser.run(&format!(
        "await page.waitForSelector('{ROW}:has-text({item:?}) .state:has-text({word:?})');
         await page.waitForSelector('aside.detail dd .state:has-text({word:?})')"
    ));
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn the_log_of_a_run_is_shown_as_it_is_written() {
    let env = env();
    let lines =
        "init; work '<b>first</b> line'; hold $dir/wait; work 'second line'; done_ 'all is done'";
    let agent = Scripted::new(&env, "mine", lines);
    let wait = agent.keep("wait");
    let person = env.agent("person");
    let words = ["run", "mine", "wp:1", "--prompt", "hello"];
    let running = person.start(Cmd::new("tenure").args(words));
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    open(&mut browser, "wp:1");
    browser.run(&format!(
        "await page.waitForSelector('{ROW} .state:has-text(\"running\")')"
    ));
    tail_has(&mut browser, "<b>first</b> line");
    let markup = browser.run("return await page.$$eval('.tail b', (all) => all.length)");
    assert_eq!(markup, 0, "what an agent wrote is text");
    assert!(!browser.text().contains("second line"));
    browser.is_accessible("the log of a run");
    std::fs::remove_file(wait).unwrap();
    tail_has(&mut browser, "second line");
    tail_has(&mut browser, "all is done");
    ended(&mut browser, "wp:1", "done");
    let stop = "return await page.isVisible('button:text-is(\"Stop…\")')";
    assert_eq!(browser.run(stop), false, "it has ended");
    assert_eq!(running.wait().code, 0);
    browser.ends_clean();
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn a_run_is_stopped_with_a_reason_and_resumed_by_the_command_that_is_shown() {
    let env = env();
    let agent = Scripted::new(&env, "mine", "init; work waits; hold $dir/wait; done_");
    let person = env.agent("person");
    Scripted::new(&env, "other", "init; exit 1");
    let words = ["run", "other", "wp:1", "--prompt", "hello"];
    assert_eq!(person.tenure(&words).code, 1);
    let wait = agent.keep("wait");
    let running =
        person.start(Cmd::new("tenure").args(["run", "mine", "wp:2", "--prompt", "hello"]));
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    open(&mut browser, "wp:2");
    tail_has(&mut browser, "waits");
    browser.run(
        "await page.click('button:text-is(\"Stop…\")'); await page.fill('dialog textarea', 'the wrong branch');
         await page.click('dialog button[type=submit]'); await page.waitForSelector('dialog', { state: 'hidden' })",
    );
    ended(&mut browser, "wp:2", "stopped");
    assert!(browser.text().contains("the wrong branch"));
    assert_ne!(running.wait().code, 0);
    let rows = |browser: &mut Browser| {
        let rows = browser.run(&format!(
            "return await page.$$eval('{ROW}', (all) => all.length)"
        ));
        rows.as_u64().unwrap()
    };
    assert_eq!(rows(&mut browser), 2);
    browser.run("await page.check('text=Only failed ones')");
    browser.run(&format!(
        "await page.waitForSelector('{ROW}:has-text(\"wp:2\")', {{ state: 'detached' }})"
    ));
    assert_eq!(
        rows(&mut browser),
        1,
        "a run that was stopped has not failed"
    );
    // The command that resumes it does.
    let resume = browser.run("return await page.textContent('aside .command code')");
    let resume = resume.as_str().unwrap();
    assert!(resume.starts_with("tenure runs resume r-"), "{resume}");
    std::fs::remove_file(wait).unwrap();
    let words: Vec<&str> = resume.split(' ').skip(1).collect();
    person.tenure(&words).ok();
    browser.run("await page.uncheck('text=Only failed ones')");
    poll(SOON, "the run that goes on", || {
        (rows(&mut browser) == 3).then_some(())
    });
    browser.ends_clean();
}
