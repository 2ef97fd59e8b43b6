//! The texts in the sources that no page shows, on a page of their own: 99-texts.txt.
//!
//! The other pages show messages as commands print them, and some states are too rare to be made there: a disk that
//! fails in the wrong moment, a row of another version, a server that speaks nonsense. Their words are read here, as
//! they stand in the sources, with {} for a value. So every message is in this folder, in one way or the other, and
//! a new one that no test prints changes this page. After such a change, and after that of any other page:
//! `UPDATE=texts cargo nextest run -p tenure --test e2e messages::texts` writes it.

use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use similar::TextDiff;

use super::page::folder;

const PAGE: &str = "99-texts.txt";

/// The crates that speak to people, programs and models.
const CRATES: &[&str] = &[
    "agents", "app", "cli", "core", "forges", "host", "server", "service", "store",
];

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

/// How far apart the parts of one text may be on a page.
const WITHIN: usize = 400;

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
            let words = attribute.to_string();
            if words.starts_with("cfg") && words.contains("test") && !words.contains("not") {
                return length + self.test_item(&tokens[length..]);
            }
            if ["error", "command", "arg"]
                .iter()
                .any(|name| words.starts_with(name))
            {
                self.walk(attribute);
            }
            return length;
        }
        if let Some(length) = unspoken(tokens) {
            return length;
        }
        match &tokens[0] {
            TokenTree::Group(group) => self.walk(group.stream()),
            TokenTree::Literal(literal) => {
                let text = syn::parse_str::<syn::LitStr>(&literal.to_string());
                let text = text.map(|text| text.value());
                self.texts
                    .extend(text.ok().filter(|text| !self.texts.contains(text)));
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
        1
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
        [TokenTree::Ident(name), TokenTree::Group(_), ..] if name == "expect" => Some(2),
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
    let (mut parts, mut part, mut depth) = (Vec::new(), String::new(), 0);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '{' | '}' if depth == 0 && chars.peek() == Some(&c) => {
                chars.next();
                part.push(c);
            }
            '{' => {
                depth += 1;
                parts.push(std::mem::take(&mut part));
            }
            '}' if depth > 0 => depth -= 1,
            _ if depth == 0 => part.push(c),
            _ => {}
        }
    }
    parts.push(part);
    parts
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether it has words in a row.
fn is_sentence(text: &str) -> bool {
    let is_plain = |c: char| c.is_alphabetic() || ",.;:'`()".contains(c);
    let is_word = |word: &&str| {
        word.chars().filter(|c| c.is_alphabetic()).count() > 1 && word.chars().all(is_plain)
    };
    let text = parts(text).join(" 0 ");
    text.split_whitespace().filter(is_word).count() > 1
}

/// Whether it is a statement for a database, or a list of columns.
fn is_statement(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_sql = |word: &&str| SQL.contains(&word.trim_matches(|c: char| !c.is_alphabetic()));
    let listed = words.iter().filter(|word| word.ends_with(',')).count();
    words.iter().any(is_sql) || listed > 2 && listed + 1 == words.len()
}

/// Whether a page has the parts of a text, one after the other.
fn is_shown(text: &str, pages: &str) -> bool {
    let parts: Vec<String> = parts(text).iter().map(|part| on_one_line(part)).collect();
    let parts: Vec<&str> = parts
        .iter()
        .map(String::as_str)
        .filter(|part| part.len() > 2)
        .collect();
    let Some((first, rest)) = parts.split_first() else {
        return true;
    };
    pages.match_indices(first).any(|(at, _)| {
        let mut from = at + first.len();
        rest.iter().all(|part| {
            let mut end = (from + WITHIN).min(pages.len());
            while !pages.is_char_boundary(end) {
                end += 1;
            }
            let next = pages[from..end].find(part);
            next.inspect(|next| from += next + part.len()).is_some()
        })
    })
}

/// All pages but this one.
fn pages() -> String {
    let entries = std::fs::read_dir(folder()).expect("there are pages");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let others = files.iter().filter(|file| !file.ends_with(PAGE));
    let texts = others.map(|file| std::fs::read_to_string(file).expect("it is text"));
    texts.map(|text| on_one_line(&text) + "\n").collect()
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

fn page() -> String {
    let shown = pages();
    let mut files = Vec::new();
    for name in CRATES {
        sources(&crates().join(name).join("src"), &mut files);
    }
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
        let name = file.strip_prefix(crates()).expect("below the crates");
        let name = name.to_string_lossy();
        if for_tests.iter().any(|module| own.starts_with(module)) || READ_NOT_SAID.contains(&&*name)
        {
            continue;
        }
        let is_left = |text: &&String| {
            let is_sql = name.starts_with("store/") && is_statement(text);
            !is_sql && !is_shown(text, &shown)
        };
        let left: Vec<String> = found
            .texts
            .iter()
            .filter(is_left)
            .map(|text| listed(text))
            .collect();
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
        #[error("it broke {0} times")]
        struct Broken(u32);
        fn f() -> String {
            check().expect("a claim of the programmer");
            assert!(is_right(), "another such claim");
            format!("{} is on {host}", "a value with\
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
        "{} is on {host}",
        "a value witha break",
    ];
    assert_eq!(found.texts, texts);
    assert_eq!(found.for_tests, ["tests", "samples"]);
    let page = "the file a.rs is on build-3 now";
    assert!(is_shown("{} is on {host}", page) && !is_shown("{} was on {host}", page));
}
