//! The help of every command, and what is said of a command line that cannot be read.

use super::page::Page;
use crate::env;
use crate::support::output::commands;

#[test]
fn help() {
    let env = env();
    let mut page = Page::new("01-help", &env);
    let out = env.agent("outsider");
    page.run(&out, "tenure");
    page.ok(&out, "tenure help --all");
    page.ok(&out, "tenure help exit-codes");
    for words in commands(&env) {
        page.ok(&out, &format!("tenure {} --help", words.join(" ")));
    }
    page.check_as_printed();
}

#[test]
fn usage() {
    let env = env();
    let mut page = Page::new("02-usage", &env);
    let out = env.agent("outsider");
    page.keep_spans();
    page.title("Mistyped");
    for line in [
        "tenure clain wp:1",
        "tenure xyzzy",
        "tenure mission joi",
        "tenure ps --limt 3",
        "tenure ps -z",
        "tenure whoami now",
        "tenure help clain",
        "tenure help xyzzy",
        "tenure man xyzzy",
    ] {
        page.run(&out, line);
    }
    page.title("Missing");
    // A dispatcher needs no argument, and works until it is stopped.
    for words in commands(&env)
        .into_iter()
        .filter(|words| *words != ["dispatch"])
    {
        let line = format!("tenure {}", words.join(" "));
        let said = out.tenure(&words.iter().map(String::as_str).collect::<Vec<_>>());
        if said.code == 2 {
            page.run(&out, &line);
        }
    }
    page.title("Malformed");
    for line in [
        "tenure ps --limit many",
        "tenure ps --limit 99999999999999999999",
        "tenure claim wp:1 --wait soon",
        "tenure claim wp:1 --wait -5s",
        "tenure claim wp:1 --any --all",
        "tenure claim 'wp:a b\tc'",
        "tenure claim wp:1 --request-id ''",
        "tenure claim nonsense:1",
        "tenure claim '#42'",
        "tenure wait claude --for lunch",
        "tenure adopt 0",
        "tenure register --pid 99999999",
        "tenure takeover wp:1 --reason ''",
        "tenure guard wp:1 --lost",
        "tenure man --dir /proc/none",
    ] {
        page.run(&out, line);
    }
    page.check(&env);
}
