//! What people meet when they use tenure, on pages that can be read from top to bottom: crates/cli/tests/messages.
//!
//! Each page is made by the real binary in a world of its own, and has the name of its test. After a change of a message:
//! `UPDATE=1 cargo nextest run --workspace --test e2e messages::` writes the pages; read what changed. A page shows the
//! common answers and errors of its verbs. A rare error is tested where it is made.

mod claims;
mod dispatch;
mod files;
mod hooks;
mod jobs;
mod locks;
mod missions;
mod page;
mod runs;
mod serve;
mod server;
mod sessions;
mod stable;
mod store;
mod usage;

use std::collections::BTreeSet;

use crate::support::output::commands;

/// A test for each page.
macro_rules! pages {
    ($($(#[$attribute:meta])* $module:ident::$page:ident;)+) => {
        const PAGES: &[&str] = &[$(stringify!($page)),+];
        $(
            #[test]
            $(#[$attribute])*
            fn $page() {
                page::check(stringify!($page), $module::$page);
            }
        )+
    };
}

pages! {
    usage::usage;
    sessions::register;
    sessions::sessions;
    sessions::ends;
    claims::claims;
    claims::dead_holders;
    claims::queue;
    claims::claim_command;
    locks::locks;
    hooks::hooks;
    hooks::hook_generic;
    hooks::outages;
    missions::missions;
    runs::runs;
    runs::conversations;
    runs::skills;
    serve::tokens;
    jobs::jobs;
    dispatch::dispatch;
    dispatch::dispatcher;
    files::transcripts;
    files::settings;
    files::install;
    store::store;
    store::store_copy;
    store::store_backup;
    store::doctor;
    store::gc;
    store::keeper;
    #[ignore = "needs a server: scripts/test --stage postgres"]
    server::server;
    #[ignore = "needs a server: scripts/test --stage postgres"]
    server::keeper_on_server;
}

#[test]
fn every_page_has_a_test() {
    let files = std::fs::read_dir(page::folder()).expect("there are pages");
    let files: BTreeSet<String> = files
        .map(|file| file.expect("an entry").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    let tests: BTreeSet<String> = PAGES.iter().map(|page| format!("{page}.txt")).collect();
    assert_eq!(files, tests);
}

/// The codes that the manual page of a command lists.
fn listed(env: &tenure_testkit::Env, command: &str) -> Vec<u8> {
    let manual = env.tenure(&["man", command]).ok().stdout;
    let status = manual.split("EXIT STATUS").nth(1).expect("a list of codes");
    let status = status.split(".SH").next().unwrap_or_default();
    let codes = status.lines().filter_map(|line| {
        let code = line.strip_prefix("\\fB")?.strip_suffix("\\fR")?;
        code.parse().ok()
    });
    codes.collect()
}

/// The verb and the code of a failure of ours, which has a kind. A code that the caller or a command behind `--` chose
/// is in no list.
fn failure<'a>((typed, ended): (&'a str, &str)) -> Option<(&'a str, u8)> {
    let (own, behind) = typed.split_once(" -- ").unwrap_or((typed, ""));
    let (code, _kind) = ended.split_once(" (")?;
    let is_chosen = behind.contains("tenure") || own.contains("--conflict-exit");
    let mut words = own.split(' ').skip_while(|word| *word != "tenure");
    let verb = words.nth(1).filter(|_| !is_chosen)?;
    Some((verb, code.parse().ok()?))
}

#[test]
fn every_exit_code_on_a_page_is_in_the_manual() {
    let env = crate::env();
    let pages: Vec<String> = PAGES.iter().map(|page| page::kept(page)).collect();
    let calls = pages.iter().flat_map(|page| page::calls(page));
    let shown: BTreeSet<(&str, u8)> = calls.filter_map(failure).collect();
    assert!(shown.len() > 50, "{shown:?}");
    for verb in commands(&env).iter().filter(|words| words.len() == 1) {
        let listed = listed(&env, &verb[0]);
        for (_, code) in shown.iter().filter(|(shown, _)| *shown == verb[0]) {
            assert!(
                listed.contains(code),
                "{} can exit {code}: add it to crates/cli/src/verbs/man/exits.rs",
                verb[0]
            );
        }
    }
}
