//! The messages of a command, line by line, without what differs from case to case.
//!
//! Two messages are the same if all their words are, but for names: what was typed, what is quoted, and what has digits
//! or signs that words do not have. So a word that was changed is a message that no page shows.

use serde_json::Value;

use super::stable::Stable;

/// What a line of a message begins with.
const BEGINNINGS: [&str; 6] = [
    "error: ",
    "hint: ",
    "warning: ",
    "note: ",
    "notice: ",
    "store: ",
];

/// Verbs with verbs of their own.
const GROUPS: [&str; 10] = [
    "conversation",
    "dispatch",
    "keeper",
    "meta",
    "mission",
    "queue",
    "runs",
    "skill",
    "store",
    "transcript",
];

/// What stands for a name.
const NAME: &str = "NAME";

/// A line of a message, and its form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    pub form: String,
}

/// The messages that a command with these words printed, as text or in its JSON. Only an error's form has the exit code.
pub fn said(words: &[String], stdout: &str, stderr: &str, code: i32) -> Vec<Line> {
    let words: Vec<String> = words.iter().map(|word| short(word)).collect();
    let names = names(&words);
    let stable = Stable::by_form();
    let mut within_error = false;
    let mut lines = Vec::new();
    for text in objects(stdout, stderr).iter().chain(&texts(stderr)) {
        // The page of errors says which hints only a person sees.
        let text = &text.replacen("hint (to a person): ", "hint: ", 1);
        let begins = BEGINNINGS.iter().any(|start| text.starts_with(start));
        let is_error = text.starts_with("error: ");
        let goes_on = within_error && text.starts_with("  ");
        within_error = is_error || goes_on;
        if !begins && !goes_on {
            continue;
        }
        let text = stable.lines(&short(text), "").trim_end().to_owned();
        let form = if is_error {
            format!("{} {code})", form(&format!("{text} (exit"), &names))
        } else {
            form(&text, &names)
        };
        lines.push(Line { text, form });
    }
    lines
}

/// The text with `xxx...` for a letter that is repeated many times: some tests try the longest values.
pub fn short(text: &str) -> String {
    let mut short = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let mut times = 1;
        while letters.next_if_eq(&letter).is_some() {
            times += 1;
        }
        match times {
            ..=40 => short.extend(std::iter::repeat_n(letter, times)),
            _ => short.push_str(&format!("{letter}{letter}{letter}...")),
        }
    }
    short
}

/// What was typed behind the verb, and behind the verb of a verb.
fn names(words: &[String]) -> Vec<&str> {
    let verbs = words.iter().filter(|word| !word.starts_with('-')).take(2);
    let verbs: Vec<&String> = verbs.collect();
    let is_group = verbs
        .first()
        .is_some_and(|verb| GROUPS.contains(&verb.as_str()));
    let verbs = if is_group { 2 } else { 1 };
    let typed = words
        .iter()
        .filter(|word| !word.starts_with('-'))
        .skip(verbs);
    let values = words
        .iter()
        .filter_map(|word| Some(word.split_once('=')?.1));
    typed.map(String::as_str).chain(values).collect()
}

/// The lines of stderr that are text.
fn texts(stderr: &str) -> Vec<String> {
    let text = stderr.lines().filter(|line| !line.starts_with('{'));
    text.map(str::to_owned).collect()
}

/// The error of a JSON object on one of the outputs, as the lines that a person would see.
fn objects(stdout: &str, stderr: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for line in stdout.lines().chain(stderr.lines()) {
        let object: Value = serde_json::from_str(line).unwrap_or_default();
        let error = &object["error"];
        let Some(message) = error["message"].as_str() else {
            continue;
        };
        let mut parts = message.lines();
        lines.push(format!("error: {}", parts.next().unwrap_or_default()));
        lines.extend(parts.map(str::to_owned));
        let hints = error["hints"].as_array().into_iter().flatten();
        lines.extend(hints.map(|hint| format!("hint: {}", command_line(hint))));
    }
    lines
}

/// A hint as it is typed.
fn command_line(hint: &Value) -> String {
    let why = hint["why"].as_str().unwrap_or_default();
    let Some(verb) = hint["verb"].as_str() else {
        return why.to_owned();
    };
    let words = hint["args"].as_array().into_iter().flatten();
    let words: String = words
        .filter_map(Value::as_str)
        .map(|word| format!(" {word}"))
        .collect();
    format!("run `tenure {verb}{words}` {why}")
}

/// The kind of the error in a JSON object on one of the outputs.
pub fn kind(stdout: &str, stderr: &str) -> Option<String> {
    let mut lines = stdout.lines().chain(stderr.lines());
    lines.find_map(|line| {
        let object: Value = serde_json::from_str(line).ok()?;
        object["error"]["kind"].as_str().map(str::to_owned)
    })
}

/// What stands between these is a name, or a command that is not tenure's advice.
const BETWEEN: [(&str, &str); 4] = [
    ("ago for `", "` (exit"),
    ("did you mean ", "? (exit"),
    ("is not valid: '", "' is not"),
    ("hint: run `", "` if that is what you meant"),
];

/// A line without its names.
fn form(line: &str, names: &[&str]) -> String {
    let mut line = without_quotes(line);
    for (before, behind) in BETWEEN {
        let within = line.split_once(before).and_then(|(head, rest)| {
            let (_, tail) = rest.rsplit_once(behind)?;
            Some(format!("{head}{before}{NAME}{behind}{tail}"))
        });
        line = within.unwrap_or(line);
    }
    let mut words: Vec<String> = Vec::new();
    for word in line.split(' ') {
        let is_sign = |letter: char| "`'\"(),;.:?".contains(letter);
        let core = word.trim_matches(is_sign);
        let differs =
            |letter: char| !letter.is_ascii_alphabetic() && !"-'_`().|<>[]".contains(letter);
        let is_flag = core.starts_with('-') && core.len() > 1;
        let is_letter = core.len() == 1 && core != "a";
        let is_name = is_letter || core.contains(differs) || names.contains(&core);
        let word = match core {
            core if is_name && !is_flag && !core.is_empty() => word.replace(core, NAME),
            _ => word.to_owned(),
        };
        // A list of names is one.
        let again = words
            .last()
            .is_some_and(|last| last.trim_matches(is_sign) == NAME);
        match words.last_mut() {
            Some(last) if again && word.trim_matches(is_sign) == NAME => *last = word,
            _ => words.push(word),
        }
    }
    words.join(" ")
}

/// The line with each quoted text as one name.
fn without_quotes(line: &str) -> String {
    let (mut text, mut quoted, mut escaped) = (String::new(), false, false);
    for letter in line.chars() {
        match letter {
            '"' if quoted && !escaped => {
                quoted = false;
                text.push_str(NAME);
            }
            '"' if !quoted => quoted = true,
            letter if !quoted => text.push(letter),
            _ => {}
        }
        escaped = quoted && letter == '\\' && !escaped;
    }
    text
}

#[test]
fn a_changed_word_is_another_message_and_another_name_is_not() {
    let words = |typed: &str| super::page::words(typed);
    let form_of = |typed: &str, text: &str| {
        let lines = said(&words(typed), "", text, 3);
        lines.first().map(|line| line.form.clone())
    };
    let one = form_of(
        "claim wp:1",
        "error: wp:1 is held by claude-k7qd (busy, 3m)\n",
    );
    assert_eq!(
        one,
        form_of(
            "claim wp:22",
            "error: wp:22 is held by codex-m3xb (busy, 14s)\n"
        )
    );
    assert_ne!(
        one,
        form_of(
            "claim wp:1",
            "error: wp:1 is owned by claude-k7qd (busy, 3m)\n"
        )
    );
    let lock = form_of("lock deploy", "error: the lock deploy is held by \"a b\"\n");
    assert_eq!(
        lock,
        form_of("lock x", "error: the lock x is held by \"c\"\n")
    );
    let json = r#"{"v":1,"error":{"kind":"held","message":"wp:1 is held by ann-k7qd (busy, 1s)","hints":[]}}"#;
    let lines = said(&words("claim wp:1 --json"), json, "", 3);
    assert_eq!(lines.first().map(|line| line.form.clone()), one);
}
