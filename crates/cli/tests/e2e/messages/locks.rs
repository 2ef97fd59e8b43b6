//! Locks.

use tenure_testkit::{Cmd, Env, Signal, poll};

use super::page::Page;
use crate::support::line::{SOON, session};
use crate::support::lock::shown;

pub(super) fn locks(env: &mut Env, page: &mut Page) {
    let (claude, out) = (session(env, "claude"), env.agent("outsider"));
    page.title("Lock");
    page.run(&claude, "tenure locks");
    page.run(&claude, "tenure lock db-migrate -- echo migrated");
    page.run(&claude, "tenure lock db-migrate -- sh -c 'exit 7'");
    page.run(&claude, "tenure lock db-migrate --json -- true");
    page.run(&claude, "tenure lock nightly --hold");
    page.run(&claude, "tenure lock db-migrate -- ./missing");
    page.run_once(
        &claude,
        "tenure lock db-migrate -- tenure lock db-migrate -- true",
        Some("nested"),
    );
    page.run(&claude, "tenure lock 'a b/c' -- true");
    page.title("Held");
    let held = claude.start(Cmd::new("tenure").args("lock db-migrate -- sleep 1000".split(' ')));
    poll(SOON, "it is held", || {
        (shown(env, "db-migrate")["held"] == true).then_some(())
    });
    page.run(&out, "tenure lock db-migrate -- true");
    page.run(&out, "tenure lock db-migrate --conflict-exit 75 -- true");
    page.run(&out, "tenure lock db-migrate --wait 50ms -- true");
    let waits = out.start(Cmd::new("tenure").args("lock db-migrate --wait 60s -- true".split(' ')));
    let says = |text: &str| {
        poll(SOON, text, || waits.stderr().contains(text).then_some(()));
    };
    says("waiting for the lock");
    page.run(&out, "tenure locks --held");
    assert!(held.signal(Signal::TERM));
    assert_eq!(held.wait().code, 143);
    let said = waits.wait();
    page.show(
        out.pid(),
        "tenure lock db-migrate --wait 60s -- true",
        said,
        None,
    );
    page.run(&out, "tenure locks");
}
