//! Path globs within a repository, and whether two of them can match the same file.
//!
//! Two `path:` keys that can match the same file conflict, so the overlap test decides who may write. It must
//! be exact: a wrong "no" lets two sessions write one file, and a wrong "yes" stops work that conflicts with
//! nothing. Comparing prefixes or trying sample names gives both errors. [`Glob::witness`] therefore searches
//! for an actual path, and finds one if it exists.
//!
//! Syntax: characters and `\x` (a colon only as `\:`, because one ends the repository's name in a key); `*` (a run within a segment, possibly empty); `?`; `[a-z]`, `[!a]`, `[^a]`
//! (never `/`); `{a,b/c,}` (alternatives, nested, possibly empty); and `**` as a whole segment for zero or more
//! segments, at the end for one or more, so that `src/**` is everything below `src` but not `src`. A brace
//! alternative that yields no path (`{a,}/b` without the `a`) matches nothing; a glob with only such
//! alternatives is refused, since holding it would hold nothing.
//!
//! A path is one or more non-empty segments, none of them `.` or `..`, joined by single `/`. A glob is compiled
//! to an automaton of exactly the paths it matches, which reads the path with a leading `/`: every segment then
//! begins with its `/`, and `**` is a loop over whole segments. While compiling, `SegmentState` tracks how much of a
//! segment has been written, which excludes `.`, `..`, empty segments and `**` next to other text. Alternatives
//! become branches, never copies, so the automaton is linear in the text, and the search for a common path
//! visits each pair of states at most once.
//!
//! Characters are compared as they are, case-sensitively: keys are in NFC, and the caller converts paths to
//! NFC. Only the text of a glob is stored, and every version compiles it again. A later syntax may give a
//! meaning to what is refused here, never another meaning to what is accepted.

mod automaton;
mod compiler;
mod set;

use std::{fmt, iter, str};

use self::automaton::*;
use self::compiler::*;

/// The longest glob, in bytes: as long as a key may be.
const MAX_BYTES: usize = 512;

/// How many pairs of its own states one text may lead to, at most. It bounds what a comparison with any other
/// glob within the limit takes: about 100,000 pairs.
const MAX_PAIRS: usize = 20_000;

/// The text of a glob that matches exactly this path.
pub fn literal(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for c in path.chars() {
        if matches!(c, '\\' | '*' | '?' | '[' | ']' | '{' | '}' | ',' | ':') {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// A pattern of relative paths that matches at least one.
#[derive(Clone)]
pub struct Glob {
    text: String,
    literal: Option<String>,
    nfa: Nfa,
}

impl Glob {
    /// Reads a glob of at most 512 bytes, or tells why it is none.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        check_text(text)?;
        let (nfa, literal) = Compiler::new(text).compile()?;
        if !nfa.reach([nfa.start], true).contains(&nfa.accept) {
            return Err("it matches no path");
        }
        let text = text.to_owned();
        Ok(Self { text, literal, nfa })
    }

    /// The path itself, when the glob has no wildcards, classes or braces.
    pub fn is_literal(&self) -> Option<String> {
        self.literal.clone()
    }

    /// Whether comparisons with it take so long that claims of others would wait.
    pub fn is_costly(&self) -> bool {
        Search::new(&self.nfa, &self.nfa).exceeds(MAX_PAIRS)
    }

    /// Whether the glob matches a plain relative path; anything else never matches.
    pub fn matches(&self, path: &str) -> bool {
        let start = self.nfa.reach([self.nfa.start], false);
        let read = iter::once('/').chain(path.chars());
        let end = read.fold(start, |now, c| self.nfa.step(&now, c));
        end.contains(&self.nfa.accept)
    }

    /// Whether there is a path that both match.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.witness(other).is_some()
    }

    /// A path that both match, if there is one.
    pub fn witness(&self, other: &Self) -> Option<String> {
        Search::new(&self.nfa, &other.nfa).run()
    }

    /// Whether this glob provably matches every path that `other` matches.
    ///
    /// Always right if `other` is literal. In general the question is exponential, so a search that exceeds its
    /// budget returns false: not proved.
    pub fn includes(&self, other: &Self) -> bool {
        self.text == other.text || Subsets::new(&self.nfa, &other.nfa).hold().unwrap_or(false)
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Glob").field(&self.text).finish()
    }
}

/// Where a text has a colon without a backslash in front.
pub fn plain_colons(text: &str) -> impl DoubleEndedIterator<Item = usize> {
    let is_escaped = |at: usize| {
        let before = text[..at].bytes().rev();
        before.take_while(|byte| *byte == b'\\').count() % 2 == 1
    };
    let all = text.match_indices(':').map(|(at, _)| at);
    all.filter(move |at| !is_escaped(*at))
}

/// The text of a glob with a backslash in front of every colon.
pub fn escape_colons(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 1);
    let mut from = 0;
    for at in plain_colons(text) {
        escaped.push_str(&text[from..at]);
        escaped.push('\\');
        from = at;
    }
    escaped.push_str(&text[from..]);
    escaped
}

/// The rules that can be checked without parsing.
fn check_text(text: &str) -> Result<(), &'static str> {
    let mut segments = text.split('/');
    if text.is_empty() {
        Err("it is empty")
    } else if text.len() > MAX_BYTES {
        Err("it is longer than 512 bytes")
    } else if text.starts_with('/') {
        Err("it begins with /; paths are relative to the repository")
    } else if text.ends_with('/') {
        Err("it ends with /; write DIR/** for what is below DIR")
    } else if text.contains("//") {
        Err("it has an empty segment")
    } else if segments.any(|s| s == "." || s == "..") {
        Err("it has a segment . or ..")
    } else if plain_colons(text).next().is_some() {
        Err("it contains a colon; write \\: for the character")
    } else if text.contains(char::is_control) {
        Err("it contains a control character")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(text: &str) -> Glob {
        Glob::parse(text).unwrap()
    }

    #[test]
    fn each_construct_matches_what_it_says() {
        let nested = "{a,{b,c{,/d}}}";
        let cases: [(&str, &[&str], &[&str]); 18] = [
            (
                "a/b.rs",
                &["a/b.rs"],
                &["a", "a/b", "a/b.rs/c", "A/b.rs", "a/bxrs"],
            ),
            (r"\*\[\{\,é", &["*[{,é"], &["x[{,é", r"\*\[\{\,é"]),
            (r"a\:b", &["a:b"], &["ab", "axb", r"a\:b"]),
            ("a,b", &["a,b"], &["a", "b"]),
            ("a*c", &["ac", "abc", "a*c", "a.c"], &["a/c", "ab", "xac"]),
            (
                "*",
                &["a", ".a", "...", "a:b"],
                &["", ".", "..", "a/b", "/a", "a/"],
            ),
            ("a/*", &["a/b"], &["a", "a/", "a/b/c", "a/..", "a//b"]),
            ("a?c", &["abc", "aéc", "a.c"], &["ac", "a/c", "abbc"]),
            ("[abx-z]", &["a", "b", "y"], &["c", "w", "ab", "-"]),
            ("[!a]x", &["bx", ".x"], &["ax", "x", "/x"]),
            ("[^a-]x", &["bx"], &["ax", "-x"]),
            ("a[+-9]b", &["a+b", "a.b", "a5b"], &["a/b", "a:b"]),
            (r"[\]\-\\]", &["]", "-", r"\"], &["a"]),
            (
                "src/**",
                &["src/a", "src/a/b"],
                &["src", "src/", "srcs/a", "src/../a"],
            ),
            (
                "**/x",
                &["x", "a/x", "a/b/x"],
                &["ax", "x/a", "./x", "a//x", "/x"],
            ),
            (
                "a/**/b",
                &["a/b", "a/x/b", "a/x/y/b"],
                &["ab", "a", "b", "a/b/c"],
            ),
            ("**", &["a", "a/b/c"], &["", ".", "a/..", "a/", "/"]),
            (nested, &["a", "b", "c", "c/d"], &["", "d", "ab", "c/"]),
        ];
        for (text, yes, no) in cases {
            let it = glob(text);
            yes.iter()
                .for_each(|p| assert!(it.matches(p), "{text} {p}"));
            no.iter()
                .for_each(|p| assert!(!it.matches(p), "{text} {p}"));
        }
    }

    #[test]
    fn alternatives_may_hold_slashes_nothing_and_whole_segments() {
        let it = glob("a{/**,.rs,}");
        assert!(["a", "a.rs", "a/b", "a/b/c"].iter().all(|p| it.matches(p)));
        assert!(!it.matches("a/") && !it.matches("ab"));
        let it = glob("{a,}/{**,b}/{c/,}**");
        assert!(it.matches("a/b") && it.matches("a/x/y") && !it.matches("b/c"));
        let it = glob("x{*a,/**,b}");
        assert!(it.matches("xca") && it.matches("xb") && !it.matches("xcb") && !it.matches("x/"));
        let it = glob("{**,a}/{a,b}");
        assert!(it.matches("a") && it.matches("c/d/b"));
        assert!(glob("{,a/}**").matches("b"));
        assert!(glob("foo{.,_}rs").matches("foo.rs"));
        assert!(glob("{*,a}*").matches("ab") && !glob("{*,a}*").matches("a/b"));
    }

    #[test]
    fn what_is_not_a_glob_is_refused_with_its_reason() {
        let nested = |n| format!("{}a{}", "{".repeat(n), "}".repeat(n));
        assert!(Glob::parse(&nested(8)).is_ok());
        let (deep, long) = (nested(9), "x".repeat(513));
        assert!(Glob::parse(&long[1..]).is_ok());
        let cases: [(&str, &[&str]); 17] = [
            ("empty", &[""]),
            ("longer than 512", &[&long]),
            ("begins with /", &["/a", "/"]),
            ("ends with /", &["a/", "**/"]),
            ("empty segment", &["a//b", "{a//b,c}"]),
            (
                "segment . or ..",
                &[".", "..", "./a", "a/../b", "a/.", "{a/./b,c}"],
            ),
            ("colon", &["a:b", "[:]", r"\\:"]),
            ("control character", &["a\0b", "a\nb", "a\u{7f}", "a\u{85}"]),
            ("] without a [", &["a]", "]"]),
            ("[ without a ]", &["[", "[a", "[!", "[a-", r"[\]"]),
            ("[ within a class", &["[[a]", "[a-[]"]),
            ("/ within a class", &["[a/b]", "[+-/]"]),
            ("empty class", &["[]", "[]a]", "[!]", "[^]"]),
            ("end comes before", &["[z-a]", "[!b-a]"]),
            ("backslash", &["a\\", "[\\", r"a\/b"]),
            (
                "matches no path",
                &["{}", "{,}", "a/{}", "{/a}", r"\.", "[.]/a", ".{,.}"],
            ),
            (
                "whole segment",
                &[
                    "a**", "**a", "a/***/b", "{,a}**", "**{,a}", "*{,/}**", "{**}?",
                ],
            ),
        ];
        let braces: [(&str, &[&str]); 3] = [
            ("} without a {", &["}", "a}b", "{a}}"]),
            ("{ without a }", &["{", "{a,b", "{a,{b}", "a{/b"]),
            ("nested deeper", &[&deep]),
        ];
        for (why, texts) in cases.into_iter().chain(braces) {
            for text in texts {
                let error = Glob::parse(text).expect_err(text);
                assert!(error.contains(why), "{text:?}: {error}");
            }
        }
    }

    #[test]
    fn two_globs_overlap_only_if_one_path_matches_both() {
        let yes = [
            ("src/**", "**/*.rs"),
            ("a*", "*b"),
            ("a/**/c", "a/b/*"),
            ("{a,b}/x", "{b,c}/*"),
            ("[a-m]", "[m-z]"),
            ("[!a]", "?"),
            (".?", "*[.]*"),
        ];
        let no = [
            ("src/**", "src"),
            ("src/db/**", "src/web/**"),
            ("*.rs", "**/*.toml"),
            ("*", "*/*"),
            ("[a-m]", "[n-z]"),
            ("a?", "?"),
            (".*", "?"),
            (".[.]*", "??"),
            ("{a,b}{,/c}", "c/**"),
        ];
        for (a, b) in yes {
            let (a, b) = (glob(a), glob(b));
            let path = a.witness(&b).unwrap();
            assert!(a.matches(&path) && b.matches(&path), "{a:?} {b:?} {path}");
            assert!(b.overlaps(&a));
        }
        for (a, b) in no {
            assert_eq!(glob(a).witness(&glob(b)), None, "{a} {b}");
            assert!(!glob(b).overlaps(&glob(a)), "{b} {a}");
        }
    }

    #[test]
    fn inclusion_is_shown_or_denied() {
        let yes = [
            ("**", "a/{b,c}/*"),
            ("src/**", "src/**/*.rs"),
            ("src/**", "src/**/x"),
            ("**/*", "**"),
            ("{a,b}", "[ab]"),
            ("?*", "*"),
            ("[!x]", "[a-c]"),
            ("a/b", "a/b"),
            ("{.?*,[!.]*}", "*"),
        ];
        let no = [
            ("src/**", "src"),
            ("src/*", "src/**"),
            ("[a-c]", "[a-d]"),
            ("a/**/b", "a/**"),
            ("*a", "*"),
        ];
        yes.iter()
            .for_each(|(a, b)| assert!(glob(a).includes(&glob(b)), "{a} {b}"));
        no.iter()
            .for_each(|(a, b)| assert!(!glob(a).includes(&glob(b)), "{a} {b}"));
    }

    #[test]
    fn comparisons_of_globs_that_are_not_costly_are_bounded() {
        let filled = |part: &str, count: usize, fill: &str, length: usize| {
            let body = part.repeat(count);
            let rest = length.saturating_sub(body.len()) / fill.len();
            let text = format!("{body}{}", fill.repeat(rest));
            text.trim_end_matches('/').to_owned()
        };
        let mut globs = Vec::new();
        for length in [40, 80, 120, 200, 300, 512] {
            globs.extend([
                filled("*a", 30, "a", length),
                filled("*", 1, "a", length),
                filled("*", 1, "?", length),
                filled("*", 1, "ab?", length),
                filled("{,?}", 40, "?", length),
                filled("{,a,aa,aaa}", 20, "a", length),
                filled("**/", 30, "a", length),
                filled("**/*/", 20, "a/", length),
                filled("", 0, "?", length),
                filled("", 0, "a*/", length),
            ]);
        }
        globs.retain(|text| text.len() <= MAX_BYTES);
        let globs: Vec<Glob> = globs.iter().map(|text| glob(text)).collect();
        let (costly, cheap): (Vec<Glob>, Vec<Glob>) = globs.into_iter().partition(Glob::is_costly);
        assert!(!costly.is_empty() && cheap.len() > 20);
        for one in &cheap {
            for other in &cheap {
                let exceeds = Search::new(&one.nfa, &other.nfa).exceeds(6 * MAX_PAIRS);
                assert!(!exceeds, "{one:?} and {other:?}");
            }
        }
    }

    #[test]
    fn what_people_write_is_not_costly() {
        let list: Vec<String> = (10..60).map(|at| format!("src/{at}.rs")).collect();
        for text in [
            "src/**/*.{ts,tsx,js,jsx,mjs,cjs}",
            "{src,lib,test*}/**/{*_test,*_spec,test_*}.*",
            "**/node_modules/**/*.map",
            "????????-????-????-????-????????????.json",
            &format!("{{{}}}", list.join(",")),
            "directory/".repeat(50).trim_end_matches('/'),
        ] {
            assert!(!glob(text).is_costly(), "{text}");
        }
    }

    #[test]
    fn only_a_plain_path_is_literal() {
        assert_eq!(glob(r"a/\*b").is_literal().as_deref(), Some("a/*b"));
        for text in ["a/*", "a?", "[a]", "{a}", "**"] {
            assert_eq!(glob(text).is_literal(), None, "{text}");
        }
    }
}
