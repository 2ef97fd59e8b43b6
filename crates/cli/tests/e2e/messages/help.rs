//! The help of every command, the documents that tenure prints, and what is said of a command line that cannot be read.

use serde_json::Value;
use tenure_testkit::Cmd;

use super::page::Page;
use crate::env;
use crate::support::output::commands;

#[test]
fn help() {
    let env = env();
    let mut page = Page::new("01-help", &env);
    let out = env.agent("outsider");
    page.run(&out, "tenure");
    page.ok(&out, "tenure help");
    page.ok(&out, "tenure help --all");
    page.ok(&out, "tenure help exit-codes");
    for words in commands(&env) {
        page.ok(&out, &format!("tenure {} --help", words.join(" ")));
    }
    page.check_as_printed();
}

#[test]
fn documents() {
    let env = env();
    let mut page = Page::new("04-documents", &env);
    let out = env.agent("outsider");
    page.title("The manual: of tenure, and of one command");
    page.ok(&out, "tenure man");
    page.ok(&out, "tenure man wait");
    page.title("Exit codes in the manual");
    for verb in ["hook", "claim"] {
        let line = format!("tenure man {verb} | sed -n '/EXIT STATUS/,$p' | sed 's/\\\\-/-/g'");
        let said = out.run(Cmd::shell(&line)).ok();
        page.show(out.pid(), &line, said, None);
    }
    page.title("Completions; those of elvish and powershell repeat the help");
    for shell in ["bash", "zsh", "fish"] {
        page.ok(&out, &format!("tenure completions {shell}"));
    }
    page.title("The descriptions in the schema, and where each is");
    let mut schema = out.tenure(&["schema"]).ok();
    let document = serde_json::from_str(&schema.stdout).expect("it is JSON");
    schema.stdout = String::new();
    descriptions(&document, "", &mut schema.stdout);
    page.show(out.pid(), "tenure schema", schema, None);
    page.check_as_printed();
}

/// Each description of a schema, with the path to what it describes.
fn descriptions(value: &Value, at: &str, text: &mut String) {
    if let Some(words) = value.get("description").and_then(Value::as_str) {
        let words: Vec<&str> = words.split_whitespace().collect();
        *text += &format!("{at}: {}\n", words.join(" "));
    }
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                match name.as_str() {
                    "$defs" | "properties" => descriptions(value, at, text),
                    "items" => descriptions(value, &format!("{at}[]"), text),
                    _ if at.is_empty() => descriptions(value, name, text),
                    _ => descriptions(value, &format!("{at}.{name}"), text),
                }
            }
        }
        Value::Array(values) => values
            .iter()
            .for_each(|value| descriptions(value, at, text)),
        _ => {}
    }
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
        "tenure log --since soon",
    ] {
        page.run(&out, line);
    }
    page.check(&env);
}
