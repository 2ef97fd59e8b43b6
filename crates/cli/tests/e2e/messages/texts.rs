//! The texts in the sources that no page shows, on a page of their own: 99-texts.txt.
//!
//! The other pages show messages as commands print them, and some states are too rare to be made there: a disk that
//! fails in the wrong moment, a row of another version, a server that speaks nonsense. Their words are read here, as
//! they stand in the sources, with {} for a value. So every message is in this folder, in one way or the other, and
//! a new one that no test prints changes this page. Documents with tests of their own are not read: the plugin, the
//! completion scripts, the descriptions in `tenure schema`. After such a change, and after that of any other page:
//! `UPDATE=texts cargo nextest run -p tenure --test e2e messages::texts` writes it.

use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use similar::TextDiff;

use super::page::folder;

pub(super) const PAGE: &str = "99-texts.txt";

/// The crates that are in no program that people install.
const FOR_DEVELOPERS: &[&str] = &["bench", "chaos", "testkit"];

/// Sources whose texts are compared with what others say, or put into it, and said to nobody.
const READ_NOT_SAID: &[&str] = &[
    "agents/src/codex.rs",
    "agents/src/gemini.rs",
    "agents/src/run/body.rs",
    "agents/src/run/claude.rs",
    "agents/src/run/codex.rs",
    "agents/src/run/gemini.rs",
    "agents/src/run/opencode.rs",
    "agents/src/run/qwen.rs",
];

/// What is said in these sources after all.
const SAID_THERE: &[&str] = &[
    "asks again in {seconds}s, attempt {attempt}",
    "the turn failed",
    "the turn was aborted",
];

/// Words by which a statement for a database is known.
const SQL: &[&str] = &[
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "WHERE",
    "FROM",
    "VALUES",
    "CREATE",
    "ALTER",
    "DROP",
    "SET",
    "ORDER",
    "LIMIT",
    "JOIN",
    "AND",
    "PRAGMA",
    "BEGIN",
    "LOCK",
    "ISOLATION",
    "INDEXED",
    "CONFLICT",
    "SHOW",
    "CLOSE",
    "GRANT",
    "REVOKE",
    "EXISTS",
    "NULL",
    "EXPLAIN",
    "COPY",
    "FETCH",
    "RETURNING",
    "CASE",
    "DECLARE",
    "ROLLBACK",
    "CHECK",
    "INTO",
    "DESC",
    "SAVEPOINT",
    "KEY",
];

fn crates() -> PathBuf {
    let cli = Path::new(env!("CARGO_MANIFEST_DIR"));
    cli.parent().expect("a folder of crates").to_owned()
}

/// The sources below a directory, without those of tests.
fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    for path in paths {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        if stem == "tests" {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// What a file says, and the modules that it has for tests only.
#[derive(Default)]
struct Found {
    texts: Vec<String>,
    for_tests: Vec<String>,
}

impl Found {
    fn walk(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            at += self.step(&tokens[at..]);
        }
    }

    /// Reads what begins here, and tells how many tokens that were.
    fn step(&mut self, tokens: &[TokenTree]) -> usize {
        if let Some((attribute, length)) = attribute(tokens) {
            let words: Vec<String> = attribute
                .clone()
                .into_iter()
                .map(|word| word.to_string())
                .collect();
            let is_test = |group: &String| group == "(test)" || group.starts_with("(all (test");
            let name = words.first().map(String::as_str);
            if name == Some("cfg") && words.get(1).is_some_and(is_test) {
                return length + self.test_item(&tokens[length..]);
            }
            if matches!(name, Some("error" | "command" | "arg")) {
                self.walk(attribute);
            }
            return length;
        }
        if let Some(length) = unspoken(tokens) {
            return length;
        }
        match &tokens[0] {
            TokenTree::Group(group) => self.walk(group.stream()),
            TokenTree::Literal(literal) => self.literal(&literal.to_string()),
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
        1
    }

    fn literal(&mut self, source: &str) {
        let text = match syn::parse_str(source) {
            Ok(syn::Lit::Str(text)) => text.value(),
            Ok(syn::Lit::ByteStr(text)) => String::from_utf8_lossy(&text.value()).into_owned(),
            _ => return,
        };
        if !self.texts.contains(&text) {
            self.texts.push(text);
        }
    }

    /// Passes over an item that only tests have.
    fn test_item(&mut self, tokens: &[TokenTree]) -> usize {
        let ends = |token: &TokenTree| match token {
            TokenTree::Punct(mark) => mark.as_char() == ';',
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            TokenTree::Ident(_) | TokenTree::Literal(_) => false,
        };
        let end = tokens.iter().position(ends).unwrap_or(tokens.len() - 1);
        if let [.., TokenTree::Ident(word), TokenTree::Ident(name)] = &tokens[..end]
            && word == "mod"
        {
            self.for_tests.push(name.to_string());
        }
        end + 1
    }
}

/// What is between the brackets of an attribute, and how many tokens it has.
fn attribute(tokens: &[TokenTree]) -> Option<(TokenStream, usize)> {
    let is = |at: usize, c: char| matches!(tokens.get(at), Some(TokenTree::Punct(mark)) if mark.as_char() == c);
    let at = if is(1, '!') { 2 } else { 1 };
    match tokens.get(at) {
        Some(TokenTree::Group(group)) if is(0, '#') && group.delimiter() == Delimiter::Bracket => {
            Some((group.stream(), at + 1))
        }
        _ => None,
    }
}

/// How many tokens a claim of the programmer has, which is said only if the program is wrong: a panic's words.
fn unspoken(tokens: &[TokenTree]) -> Option<usize> {
    match tokens {
        [
            TokenTree::Punct(dot),
            TokenTree::Ident(name),
            TokenTree::Group(_),
            ..,
        ] if dot.as_char() == '.' && name == "expect" => Some(3),
        [
            TokenTree::Ident(name),
            TokenTree::Punct(mark),
            TokenTree::Group(_),
            ..,
        ] if mark.as_char() == '!' => {
            let name = name.to_string();
            let is_claim = ["panic", "unreachable"].contains(&name.as_str())
                || name.starts_with("assert")
                || name.starts_with("debug_assert");
            is_claim.then_some(3)
        }
        _ => None,
    }
}

/// The parts of a text between its values.
fn parts(text: &str) -> Vec<String> {
    let (mut parts, mut part, mut rest) = (Vec::new(), String::new(), text);
    while let Some(c) = rest.chars().next() {
        let twice = rest.starts_with("{{") || rest.starts_with("}}");
        let value = rest
            .find('}')
            .filter(|end| c == '{' && is_value(&rest[1..*end]));
        match value {
            _ if twice => {
                part.push(c);
                rest = &rest[2..];
            }
            Some(end) => {
                parts.push(std::mem::take(&mut part));
                rest = &rest[end + 1..];
            }
            None => {
                part.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    parts.push(part);
    parts
}

/// Whether this is between the braces of a value: its name, and how it is shown.
fn is_value(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or_default();
    name.chars()
        .all(|c| c.is_alphanumeric() || "_.".contains(c))
        && !text.contains(char::is_whitespace)
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether it has words in a row, or a word beside a value.
fn is_sentence(text: &str) -> bool {
    let is_plain = |c: char| c.is_alphabetic() || ",.;:'`()".contains(c);
    let is_word = |word: &&str| {
        word.chars().filter(|c| c.is_alphabetic()).count() > 1 && word.chars().all(is_plain)
    };
    if text.contains(|c: char| c.is_control() && !c.is_whitespace()) {
        return false;
    }
    let parts = parts(text);
    let has_value = parts.len() > 1 && parts.iter().any(|part| part.contains(' '));
    let text = parts.join(" 0 ");
    let words: Vec<&str> = text.split_whitespace().filter(is_word).collect();
    let is_long = |word: &&str| word.chars().filter(|c| c.is_alphabetic()).count() > 3;
    words.len() > 1 || has_value && words.iter().any(is_long)
}

/// Whether it is a statement for a database, or a list of columns.
fn is_statement(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_sql = |word: &&str| SQL.contains(&word.trim_matches(|c: char| !c.is_alphabetic()));
    let listed = words.iter().filter(|word| word.ends_with(',')).count();
    words.iter().any(is_sql) || listed > 2 && listed + 1 == words.len()
}

/// What all pages but this one show.
struct Pages {
    lines: Vec<String>,
    /// Each page on one line, for texts of several lines.
    whole: Vec<String>,
}

impl Pages {
    fn read() -> Self {
        let entries = std::fs::read_dir(folder()).expect("there are pages");
        let files = entries.map(|entry| entry.expect("an entry").path());
        let (mut lines, mut whole) = (Vec::new(), Vec::new());
        for file in files.filter(|file| !file.ends_with(PAGE)) {
            let text = std::fs::read_to_string(file).expect("it is text");
            let is_typed = |line: &&str| {
                ["$ ", "# ", "## "]
                    .iter()
                    .any(|mark| line.starts_with(mark))
            };
            let said = text.lines().filter(|line| !is_typed(line));
            lines.extend(said.map(on_one_line));
            whole.push(on_one_line(&text.replace("\n! ", "\n")));
        }
        Self { lines, whole }
    }

    /// Whether one of them has the parts of a text, one after the other, as words of their own.
    fn show(&self, text: &str) -> bool {
        let parts: Vec<String> = parts(text).iter().map(|part| on_one_line(part)).collect();
        let parts: Vec<&str> = parts
            .iter()
            .map(String::as_str)
            .filter(|part| !part.is_empty())
            .collect();
        let shown = if text.trim().contains('\n') {
            &self.whole
        } else {
            &self.lines
        };
        shown.iter().any(|line| holds(line, &parts))
    }
}

fn holds(line: &str, parts: &[&str]) -> bool {
    let Some((first, rest)) = parts.split_first() else {
        return true;
    };
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(first).any(|(at, _)| {
        let end = at + first.len();
        let cut_before = first.starts_with(is_letter) && line[..at].ends_with(is_letter);
        let cut_after = first.ends_with(is_letter) && line[end..].starts_with(is_letter);
        !cut_before && !cut_after && holds(&line[end..], rest)
    })
}

/// What a source says.
fn texts_of(source: &str) -> Found {
    let tokens: TokenStream = source
        .parse()
        .unwrap_or_else(|why| panic!("{why}: {source}"));
    let mut found = Found::default();
    found.walk(tokens);
    found.texts.retain(|text| is_sentence(text));
    found
}

/// Where the modules of a source are.
fn below(file: &Path) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default();
    let is_root = ["mod", "lib", "main"].iter().any(|root| stem == *root);
    let own = file.with_extension("");
    if is_root {
        own.parent().expect("a folder").to_owned()
    } else {
        own
    }
}

/// The sources of all crates that speak to people, programs and models.
fn all_sources() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(crates()).expect("a folder of crates");
    let mut names: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    names.retain(|path| !FOR_DEVELOPERS.iter().any(|name| path.ends_with(name)));
    names.sort();
    let mut files = Vec::new();
    for name in names {
        sources(&name.join("src"), &mut files);
    }
    files
}

fn page() -> String {
    let pages = Pages::read();
    let files = all_sources();
    let read = files.iter().map(|file| {
        let source = std::fs::read_to_string(file).expect("it is text");
        (file, texts_of(&source))
    });
    let read: Vec<(&PathBuf, Found)> = read.collect();
    let modules = read.iter().flat_map(|(file, found)| {
        let below = below(file);
        found.for_tests.iter().map(move |name| below.join(name))
    });
    let for_tests: Vec<PathBuf> = modules.collect();
    let mut page =
        "Texts that no other page shows as a command prints them. {} stands for a value.\n"
            .to_owned();
    for (file, found) in &read {
        let own = file.with_extension("");
        if for_tests.iter().any(|module| own.starts_with(module)) {
            continue;
        }
        let name = file.strip_prefix(crates()).expect("below the crates");
        let name = name.to_string_lossy();
        let is_read = READ_NOT_SAID.contains(&&*name);
        let is_left = |text: &&String| {
            let is_sql = name.starts_with("store/") && is_statement(text);
            let is_said = !is_read || SAID_THERE.contains(&text.as_str());
            is_said && !is_sql && !pages.show(text)
        };
        let mut left: Vec<String> = Vec::new();
        for text in found.texts.iter().filter(is_left).map(|text| listed(text)) {
            if !left.contains(&text) {
                left.push(text);
            }
        }
        if !left.is_empty() {
            page += &format!("\n{name}\n{}", left.concat());
        }
    }
    page
}

/// A text as it is listed.
fn listed(text: &str) -> String {
    let text = parts(text).join("{}");
    let lines = text.trim().lines().map(|line| format!("    {line}"));
    lines
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

#[test]
fn every_text_is_on_a_page_or_listed_here() {
    let update = std::env::var("UPDATE").unwrap_or_default();
    if update == "1" {
        // The other pages are being written.
        return;
    }
    for name in READ_NOT_SAID {
        assert!(
            crates().join(name).exists(),
            "{name} is gone: take it off the list"
        );
    }
    let (page, file) = (page(), folder().join(PAGE));
    if update == "texts" {
        std::fs::write(&file, &page).expect("the sources can be written");
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    let diff = TextDiff::from_lines(kept.as_str(), page.as_str());
    let diff = diff.unified_diff().context_radius(3).to_string();
    assert!(
        kept == page,
        "show a new text on another page, or read it here and keep it with UPDATE=texts:\n{diff}"
    );
}

#[test]
fn a_text_is_found_wherever_it_is_said() {
    let source = r##"
        //! Nobody is told this.
        #![cfg_attr(test, allow(this_lint))]
        mod real;
        #[error("it broke {0} times")]
        struct Broken(u32);
        fn f() -> String {
            check().expect("a claim of the programmer");
            expect("what is asked for");
            write(b"bytes that are said");
            assert!(is_right(), "another such claim");
            format!("{} is on {host}", "a value with \
                      a break")
        }
        #[cfg(test)]
        mod tests { const T: &str = "said in a test"; }
        #[cfg(test)]
        mod samples;
    "##;
    let found = texts_of(source);
    let texts = [
        "it broke {0} times",
        "what is asked for",
        "bytes that are said",
        "{} is on {host}",
        "a value with a break",
    ];
    assert_eq!(found.texts, texts);
    assert_eq!(found.for_tests, ["tests", "samples"]);
}

#[test]
fn a_text_is_shown_where_all_its_parts_are_on_a_line() {
    let pages = Pages {
        lines: vec!["a.rs is on build-3 now".to_owned(), "in a tmux".to_owned()],
        whole: vec!["a.rs is on build-3 now in a tmux".to_owned()],
    };
    for shown in ["{} is on {host}", "{} is on {host} now", "now\nin a"] {
        assert!(pages.show(shown), "{shown}");
    }
    for other in [
        "{} was on {host}",
        "is on build-3 no",
        "now {} in",
        "is on {} is on",
    ] {
        assert!(!pages.show(other), "{other}");
    }
    let braces = parts("caps = { runs_per_hour = 6 }, {{id}} of {item:?}");
    assert_eq!(braces, ["caps = { runs_per_hour = 6 }, {id} of ", ""]);
}
