//! A fleet of two hosts on one store: what is here, what is elsewhere, and what can be done to which.

use serde_json::Value;
use tenure_testkit::postgres::PostgresServer;
use tenure_testkit::{Agent, Background, Cmd, Env, Host, Output, Scripted, poll};

use crate::support::{Browser, SOON, Server, env};

/// A machine whose processes see no others, with a state directory of its own.
struct Machine {
    home: String,
    person: Agent,
    host: Host,
}

impl Machine {
    /// None if this system makes no pid namespaces for us.
    fn new(env: &Env, name: &str, boot: &str) -> Option<Self> {
        let host = env.host(name, boot)?;
        Some(Self {
            home: env.dir().join(name).display().to_string(),
            person: host.agent("human"),
            host,
        })
    }

    fn command(&self, words: &[&str]) -> Cmd {
        let command = Cmd::new("tenure").args(words.iter().copied());
        command.env("TENURE_HOME", self.home.clone())
    }

    /// What a person desk is answered.
    fn person(&self, words: &[&str]) -> Output {
        self.person.run(self.command(words))
    }

    /// A session desk that the keeper watches, and its handle.
    fn session(&self, name: &str, title: &str, key: &str) -> (Agent, String) {
        let agent = self.host.agent(name);
        let pid = agent.pid().to_string();
        let words = ["register", "--agent", name, "--pid", &pid, "--json"];
        let words = [&words[..], &["--native-id", name, "--title", title]].concat();
        let answer = agent.run(self.command(&words)).ok().json();
        agent.run(self.command(&["claim", key])).ok();
        let handle = answer["session"]["handle"].as_str().unwrap().to_owned();
        poll(SOON, "the keeper watches it", || {
            let status = self.person(&["keeper", "status", "--json"]).json();
            let watched = status["keeper"]["local"]["sessions"].as_u64();
            watched.is_some_and(|count| count > 0).then_some(())
        });
        (agent, handle)
    }

    /// An unattended run here, which goes on until the environment is dropped.
    fn runs(&self, item: &str) -> Background {
        let words = ["run", "mine", item, "--prompt", "hello"];
        self.person.start(self.command(&words))
    }
}

fn claim(machine: &Machine, key: &str) -> Value {
    let answer = machine.person(&["why", key, "--json"]).ok().json();
    answer["claim"].clone()
}

/// Fills in and sends the dialog that is open.
fn send(browser: &mut Browser, reason: &str) {
    browser.run(&format!(
        "await page.fill('dialog textarea', {reason:?}); await page.click('dialog button[type=submit]');
         await page.waitForSelector('dialog', {{ state: 'hidden' }})"
    ));
}

/// Opens a session at the side, and waits for this in it.
fn choose(browser: &mut Browser, handle: &str, text: &str) {
    browser.run(&format!(
        "await page.click('table.fleet button.link:has-text({handle:?})'); await page.waitForSelector('aside.detail:has-text({text:?})')"
    ));
}

#[test]
#[ignore = "needs Chromium and PostgreSQL: scripts/test --stage browser"]
fn the_fleet_of_two_hosts_says_what_is_elsewhere_and_what_can_be_done_there() {
    let store = PostgresServer::own(&[]);
    let mut env = env();
    env.set("TENURE_STORE", store.url("tenure"));
    env.tenure(&["store", "migrate"]).ok();
    env.set("TENURE_KEEPER_START", "true");
    let scripted = Scripted::new(&env, "mine", "init; work waits; hold $dir/wait; done_");
    scripted.keep("wait");
    let boots = [
        "00000000-0000-4000-8000-00000000000a",
        "00000000-0000-4000-8000-00000000000b",
    ];
    let there = Machine::new(&env, "attic", boots[0]);
    let here = Machine::new(&env, "desk", boots[1]);
    let (Some(there), Some(here)) = (there, here) else {
        eprintln!("skipped: this machine makes no pid namespaces for us");
        return;
    };
    let (far, far_handle) = there.session("claude", "Fix the login", "wp:1");
    let (near, near_handle) = here.session("codex", "Write the docs", "wp:2");
    let _runs = [there.runs("wp:8"), here.runs("wp:9")];
    let person = here.host.agent("person");
    let server = Server::by(
        person,
        here.command(&["serve", "--listen", "127.0.0.1:0", "--open"]),
    );
    let mut browser = Browser::login(&env, &server);
    browser.run("await page.waitForSelector('header .host:has-text(\"on desk\")')");

    // Both are there, live, each with what it holds; the other host's name stands before its directory.
    let work = env.work().display().to_string();
    browser.row_shows(&far_handle, &format!("attic:{work}"));
    browser.row_shows(&far_handle, "wp:1");
    browser.row_shows(&near_handle, "wp:2");
    let near_row = browser.run(&format!(
        "return await page.innerText('table.fleet tr:has(button.link:has-text({near_handle:?})) td:nth-of-type(2)')"
    ));
    assert!(near_row.as_str().unwrap().starts_with('/'), "{near_row}");
    choose(&mut browser, &near_handle, "desk, where this server runs");
    choose(
        &mut browser,
        &far_handle,
        "attic, not the machine of this server",
    );
    browser.is_accessible("two hosts");

    // Claims are of the store: they are given, freed, and messages are sent, wherever the session is.
    browser.run("await page.click('aside button[aria-label^=Give]')");
    browser.run(&format!(
        "await page.selectOption('dialog select', {near_handle:?})"
    ));
    send(&mut browser, "it is nearer");
    assert_eq!(
        claim(&there, "wp:1")["holder"]["handle"],
        near_handle.as_str()
    );
    browser.run("await page.click('aside button:text-is(\"Tell…\")')");
    send(&mut browser, "wp:1 goes on elsewhere");
    let notices = far.run(there.command(&["status"])).ok();
    assert!(
        notices.stderr.contains("wp:1 goes on elsewhere"),
        "{notices}"
    );
    choose(&mut browser, &near_handle, "wp:1");
    browser.run("await page.click('aside button[aria-label=\"Give wp:2\"]')");
    browser.run(&format!(
        "await page.selectOption('dialog select', {far_handle:?})"
    ));
    send(&mut browser, "the other way");
    browser.row_shows(&far_handle, "wp:2");

    // So is a session ended, wherever it is, and its claim freed before.
    let (_third, third_handle) = there.session("gemini", "Clean up", "wp:3");
    browser.row_shows(&third_handle, "wp:3");
    choose(&mut browser, &third_handle, "wp:3");
    browser.run("await page.click('aside button[aria-label^=Free]')");
    send(&mut browser, "not needed any more");
    assert_eq!(claim(&there, "wp:3")["state"], "free");
    browser.run("await page.click('aside button:text-is(\"End…\")')");
    send(&mut browser, "nobody needs it");
    poll(SOON, "it is ended", || {
        let shown = there.person(&["show", &third_handle, "--json"]).ok().json();
        (shown["session"]["state"] == "ended").then_some(())
    });

    // A run is stopped only where it runs; elsewhere the answer says so, and nothing is stopped.
    let stop = |browser: &mut Browser, item: &str| {
        browser.run(&format!(
            "await page.evaluate(() => {{ location.hash = 'runs'; }});
             await page.click('table[aria-label=Runs] tr:has-text({item:?}):has-text(\"running\") th button');
             await page.click('button:text-is(\"Stop…\")'); await page.fill('dialog textarea', 'enough');
             await page.click('dialog button[type=submit]')"
        ));
    };
    stop(&mut browser, "wp:8");
    browser.run("await page.waitForSelector('dialog .problem:has-text(\"is on another host\")'); await page.click('dialog button:text-is(\"Cancel\")')");
    stop(&mut browser, "wp:9");
    browser.run("await page.waitForSelector('dialog', { state: 'hidden' }); await page.waitForSelector('table[aria-label=Runs] tr:has-text(\"wp:9\"):has-text(\"stopped\")')");
    let runs = there.person(&["runs", "--json"]).ok().json();
    let left = runs["runs"].as_array().unwrap().iter();
    let left = left.filter(|run| run["state"] == "running" && run["item"] == "wp:8");
    assert_eq!(left.count(), 1, "{runs}");

    // Each host's keeper reports its deaths; the one elsewhere is resumed there.
    browser.run("await page.evaluate(() => { location.hash = 'fleet'; })");
    choose(&mut browser, &far_handle, "wp:2");
    far.kill9();
    browser.row_shows(&far_handle, "cut off");
    browser.row_shows(&far_handle, "held wp:2");
    browser.row_shows(&far_handle, "it ran on attic; resume it there");
    let resume = |machine: &Machine| machine.person(&["resume", &far_handle, "--print", "--json"]);
    assert_ne!(resume(&here).code, 0);
    resume(&there).ok();
    browser.run("await page.click('aside button:text-is(\"Tell…\")')");
    send(&mut browser, "when you are back: wp:2 is urgent");
    near.kill9();
    browser.row_shows(&near_handle, "cut off");
    browser.row_shows(&near_handle, &format!("tenure resume {near_handle}"));
    browser.ends_clean();
}
