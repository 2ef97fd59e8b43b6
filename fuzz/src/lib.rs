//! Inputs for the parsers: a seed that somebody wrote, and changes to it.
//!
//! Random bytes alone do not pass the first brace of a JSON object. So an input is a seed from the repository with a few
//! changes, chosen by bolero, which makes a failing one smaller and prints it. The stage `fuzz` of scripts/test runs each
//! parser for a minute on a stable compiler; `cargo bolero` runs the same tests with libFuzzer or AFL.

use std::path::{Path, PathBuf};

use bolero::TypeGenerator;

/// A seed by number, and what is changed in it.
pub type Input = (u16, Vec<Change>);

/// The longest input: what is repeated grows.
const MAX_LENGTH: usize = 256 << 10;

/// One change. Places are wherever they fall in the text as it is by then.
#[derive(Debug, Clone, TypeGenerator)]
pub enum Change {
    Cut(u16),
    Remove(u16, u8),
    Flip(u16, u8),
    Insert(u16, Vec<u8>),
    Odd(u16, u8),
    Repeat(u16, u8, u16),
    /// A part of another seed.
    Splice(u16, u16, u16),
    Swap(u16, u16),
}

/// Pieces that parsers stumble over.
const ODD: &[&[u8]] = &[
    b"\0", b"\n", b"\r\n", b"\"", b"\\", b"\\u0000", b"\\ud800", b"{", b"}", b"[", b"]", b":", b",", b"null", b"-1", b"1e999",
    b"18446744073709551616", b"-9223372036854775809", b"0.1", b"true", b"\x1b[2J", "\u{202e}".as_bytes(),
    "\u{feff}".as_bytes(), "e\u{301}".as_bytes(), "\u{1f600}".as_bytes(), b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"../",
    b"//", b"/../../", b"~", b"*", b"**", b"?", b"[!a-", b"{a,b}", b"@", b"%", b"%00", b"%2", b"#", b"$(x)", b"`x`",
    b"<<EOF\n", b">", b">>", b"2>&1", b"&&", b";", b"|", b"'", b"$'\\x", b"=", b"://", b"0", b"9999-99-99T99:99:99Z",
    b"2026-02-30T00:00:00Z", b"+25:00", b" ", b"\t", b"\x7f", "\u{85}".as_bytes(), "\u{2028}".as_bytes(), b"[[", b"]]", b"\"\"\"",
];

/// What somebody wrote: files of the repository, and lines.
pub struct Seeds(Vec<Vec<u8>>);

impl Seeds {
    /// All files below these directories of the repository, and each line of those that are lists of lines; none may be
    /// missing.
    pub fn of(dirs: &[&str]) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut files = Vec::new();
        for dir in dirs {
            let before = files.len();
            below(&root.join(dir), &mut files);
            assert!(files.len() > before, "{dir} has no seeds");
        }
        let mut seeds = vec![Vec::new()];
        for file in files {
            let bytes = std::fs::read(&file).expect("seeds can be read");
            if file.extension().is_some_and(|ending| ending == "lines" || ending == "jsonl") {
                seeds.extend(bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec));
            }
            seeds.push(bytes);
        }
        seeds.sort();
        seeds.dedup();
        Self(seeds)
    }

    /// The input in full.
    pub fn made(&self, (seed, changes): &Input) -> Vec<u8> {
        let mut text = self.seed(*seed).to_vec();
        for change in changes {
            self.apply(change, &mut text);
        }
        text.truncate(MAX_LENGTH);
        text
    }

    fn seed(&self, number: u16) -> &[u8] {
        &self.0[usize::from(number) % self.0.len()]
    }

    fn apply(&self, change: &Change, text: &mut Vec<u8>) {
        let place = |at: u16, text: &[u8]| usize::from(at) % (text.len() + 1);
        match change {
            Change::Cut(at) => text.truncate(place(*at, text)),
            Change::Remove(at, length) => {
                let from = place(*at, text);
                let to = (from + usize::from(*length)).min(text.len());
                text.drain(from..to);
            }
            Change::Flip(at, byte) => {
                let at = place(*at, text);
                if let Some(one) = text.get_mut(at) {
                    *one = *byte;
                }
            }
            Change::Insert(at, bytes) => insert(text, place(*at, text), bytes),
            Change::Odd(at, which) => {
                insert(text, place(*at, text), ODD[usize::from(*which) % ODD.len()]);
            }
            Change::Repeat(at, length, times) => {
                let from = place(*at, text);
                let to = (from + usize::from(*length % 16)).min(text.len());
                let part = text[from..to].repeat(usize::from(*times % 2048));
                insert(text, from, &part);
            }
            Change::Splice(at, seed, from) => {
                let other = self.seed(*seed);
                let from = place(*from, other);
                let part = &other[from..(from + 64).min(other.len())];
                insert(text, place(*at, text), part);
            }
            Change::Swap(one, other) => {
                let (one, other) = (place(*one, text), place(*other, text));
                if one < text.len() && other < text.len() {
                    text.swap(one, other);
                }
            }
        }
    }
}

fn insert(text: &mut Vec<u8>, at: usize, part: &[u8]) {
    if text.len() + part.len() <= MAX_LENGTH {
        text.splice(at..at, part.iter().copied());
    }
}

fn below(path: &Path, files: &mut Vec<PathBuf>) {
    if path.is_file() {
        return files.push(path.to_owned());
    }
    let Ok(entries) = std::fs::read_dir(path) else {
        return;
    };
    let mut inside: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    inside.sort();
    inside.iter().for_each(|path| below(path, files));
}
