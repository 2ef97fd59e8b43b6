//! Manual pages: one for each verb and each verb of a verb, whole, and the same wherever they are made.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use tenure_testkit::{Cmd, Env};

use crate::env;
use crate::support::line::{crew, handle, run, take};
use crate::support::output::verbs;
use crate::support::skip::skipped;

/// The verbs below a verb, as its help lists them.
fn below(env: &Env, verb: &str) -> Vec<String> {
    let help = env.tenure(&["help", verb]).ok().stdout;
    let list = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let rows = list.lines().take_while(|line| !line.is_empty());
    rows.filter_map(|row| row.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

/// Every page by its name, as `man --dir` writes them.
fn pages(env: &Env) -> BTreeMap<String, String> {
    let dir = env.dir().join("man1");
    env.tenure(&["man", "--dir", dir.to_str().expect("text")])
        .ok();
    let mut pages = BTreeMap::new();
    for entry in fs::read_dir(&dir).expect("it was made") {
        let path = entry.expect("it was made").path();
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .expect("text");
        let text = fs::read_to_string(&path).expect("a page");
        pages.insert(name.to_owned(), text);
    }
    pages
}

#[test]
fn every_verb_and_every_verb_of_a_verb_has_a_page() {
    let env = env();
    let mut expected = BTreeSet::from(["tenure".to_owned()]);
    for verb in verbs(&env) {
        let name = format!("tenure-{verb}");
        for word in below(&env, &verb) {
            expected.insert(format!("{name}-{word}"));
        }
        expected.insert(name);
    }
    assert!(expected.contains("tenure-mission-join"), "{expected:?}");
    assert!(expected.contains("tenure-meta-set"), "{expected:?}");
    let pages = pages(&env);
    let found: BTreeSet<String> = pages.keys().cloned().collect();
    assert_eq!(found, expected);
    let one = env.tenure(&["man", "mission", "join"]).ok().stdout;
    assert_eq!(one.trim_end(), pages["tenure-mission-join"].trim_end());
    env.tenure(&["man", "mission", "nonsense"]).fails(4);
}

/// What roff is asked to do; anything else would be shown or lost.
const REQUESTS: &[&str] = &[
    ".TH", ".SH", ".TP", ".PP", ".RS", ".RE", ".nf", ".fi", ".br", ".ie", ".el", ".IP",
];

#[test]
fn every_page_is_whole_and_names_only_pages_that_exist() {
    let env = env();
    let pages = pages(&env);
    for (name, page) in &pages {
        let title = page.lines().find(|line| line.starts_with(".TH"));
        let title = title.unwrap_or_else(|| panic!("{name} has no title\n{page}"));
        let version = env!("CARGO_PKG_VERSION");
        assert!(title.contains(&format!("tenure {version}")), "{title}");
        let is_date = |word: &str| word.len() == 10 && word.matches('-').count() == 2;
        let words = title.split([' ', '"']).map(|word| word.replace("\\-", "-"));
        assert!(words.clone().any(|word| is_date(&word)), "{name}: {title}");
        for section in [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "\"EXIT STATUS\"",
            "\"SEE ALSO\"",
        ] {
            let heading = format!(".SH {section}");
            assert_eq!(
                page.lines().filter(|line| **line == heading).count(),
                1,
                "{name}: {section}\n{page}"
            );
        }
        for line in page.lines().filter(|line| line.starts_with(['.', '\''])) {
            let request = line.split(' ').next().unwrap_or_default();
            assert!(REQUESTS.contains(&request), "{name}: {line}");
        }
        let (_, see) = page.split_once(".SH \"SEE ALSO\"\n").expect("a section");
        let mut named = 0;
        for other in see.lines().filter_map(|line| line.split("\\fB").nth(1)) {
            let other = other.split("\\fR").next().unwrap_or_default();
            let other = other.replace("\\-", "-");
            assert!(
                pages.contains_key(&other) && other != *name,
                "{name} names {other}"
            );
            named += 1;
        }
        assert!(named > 0, "{name} names no other page");
    }
    let claim = &pages["tenure-claim"];
    let (_, exits) = claim
        .split_once(".SH \"EXIT STATUS\"\n")
        .expect("a section");
    assert!(exits.contains("\\fB3\\fR\nheld by another"), "{exits}");
    assert!(!pages["tenure-ps"].contains("held by another"));
    assert_eq!(pages, self::pages(&env), "pages differ from run to run");
}

#[test]
fn groff_finds_nothing_wrong_with_a_page() {
    let env = env();
    let agent = env.agent("ann");
    let format = "groff -man -Tutf8 -ww -P-cbou";
    let works = agent.run(Cmd::shell(&format!("printf '.TH A 1\\n' | {format}")));
    if works.code != 0 {
        return skipped("groff is missing");
    }
    for words in ["", "claim", "mission join", "install"] {
        let line = format!("tenure man {words} | {format}");
        let said = agent.tenure_shell(&line).ok();
        assert_eq!(said.stderr, "", "{words}: {said}");
        assert!(said.stdout.contains("SEE ALSO"), "{words}: {said}");
    }
}

/// The codes on a verb's page.
fn codes(page: &str) -> BTreeSet<i32> {
    let (_, section) = page.split_once(".SH \"EXIT STATUS\"\n").expect("a section");
    let (section, _) = section.split_once(".SH ").expect("a section after it");
    let code = |line: &str| {
        line.strip_prefix("\\fB")?
            .strip_suffix("\\fR")?
            .parse()
            .ok()
    };
    section.lines().filter_map(code).collect()
}

#[test]
fn codes_that_verbs_end_with_are_on_their_pages() {
    let (env, [ann, bob, eve]) = crew(["ann", "bob", "eve"]);
    let pages = pages(&env);
    take(&ann, "wp:own");
    run(&ann, 0, "claim wp:done");
    run(&ann, 0, "release wp:done --done");
    run(&ann, 0, "register --unverified --agent cron");
    let gone = handle(&eve);
    eve.kill9();
    let mut met = BTreeSet::new();
    for line in [
        "ps",
        "claim wp:own",
        "claim wp:done",
        "claim nonsense",
        "claim wp:own --wait 10ms",
        "claim wp:own -- true",
        "claim wp:x -- no-such-program",
        "lock x -- no-such-program",
        "release wp:own",
        "release wp:free",
        "guard wp:own",
        "guard wp:free",
        "handoff wp:own --to nobody",
        "takeover wp:free --reason test",
        "takeover wp:own --reason test",
        "show nobody",
        "alive nobody",
        "alive cron",
        &format!("alive {gone}"),
        "wait cron --timeout 10ms",
        "why nonsense",
        "log nonsense",
        "mission status",
        "mission join m --role developer --participant nonsense",
        "meta get nonsense",
        "tell nobody hello",
        "resume nobody --print",
        "transcript show bob",
        "verify --file /nonexistent",
        "install --check",
        "help nonsense",
        "man nonsense",
        "adopt 1",
        "renew",
        "end --session nobody",
        "whoami --session nobody",
        "register --parent nobody",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let said = bob.tenure(&words);
        let page = &pages[&format!("tenure-{}", words[0])];
        assert!(codes(page).contains(&said.code), "{line}\n{said}");
        met.insert(said.code);
    }
    assert!(met.len() > 7, "{met:?}");
    assert!(codes(&pages["tenure-guard"]).contains(&5));
}
