//! The texts in the sources, read as the compiler does: tokens, not lines.

use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::words::is_sentence;

/// The crates that are in no program that people install.
const FOR_DEVELOPERS: &[&str] = &["bench", "chaos", "testkit"];

pub(super) fn crates() -> PathBuf {
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
pub(super) struct Found {
    pub(super) texts: Vec<String>,
    pub(super) for_tests: Vec<String>,
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

/// Where the modules of a source are.
pub(super) fn below(file: &Path) -> PathBuf {
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
pub(super) fn all_sources() -> Vec<PathBuf> {
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

/// What a source says.
pub(super) fn texts_of(source: &str) -> Found {
    let tokens: TokenStream = source
        .parse()
        .unwrap_or_else(|why| panic!("{why}: {source}"));
    let mut found = Found::default();
    found.walk(tokens);
    found.texts.retain(|text| is_sentence(text));
    found
}
