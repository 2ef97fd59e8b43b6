//! Lists in a text that people wrote: an element is added and removed without changing another byte.
//!
//! Both JSON and TOML have bracketed lists with commas and comments. An element is always added as the last
//! one, after the comments that follow the list's last element, so that no comment changes its subject.
//! Removing it undoes exactly that: `remove` after `insert` gives the same text, whatever the blanks, line ends
//! and trailing commas were.
//!
//! Who added a list that contains only our element? The text shows it: in an empty list of the user's, the
//! element comes directly after the bracket; a list that we add has a blank there. So [`List::is_made_for`]
//! needs no record of its own.
//!
//! The editable tree of jsonc-parser was tried for JSON and does not undo itself: it breaks a one-line file
//! into lines, drops blank lines at brackets, and does not show who added an empty list. Of two properties with
//! the same name it takes the first, but agents take the last.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comments {
    Slashes,
    Hash,
}

/// A bracketed list and the positions of its elements.
#[derive(Debug)]
pub(super) struct List {
    /// Directly after the opening bracket.
    pub open: usize,
    /// The closing bracket.
    pub close: usize,
    /// The elements, without commas and blanks.
    pub items: Vec<Range<usize>>,
}

/// How an element is formatted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Layout {
    /// On lines of its own, indented this far.
    Lines {
        /// The blanks before its first line.
        indent: String,
    },
    /// On the line of its neighbours.
    OneLine,
}

/// What is between two elements.
#[derive(Debug, Default)]
struct Gap {
    comma: Option<usize>,
    /// Where its last comment ends, and whether that comment takes the rest of its line.
    comment: Option<(usize, bool)>,
    /// Where its trailing blanks begin.
    blanks: usize,
}

impl Gap {
    fn scan(text: &str, range: Range<usize>, comments: Comments) -> Self {
        let mut gap = Gap {
            blanks: range.start,
            ..Gap::default()
        };
        let mut at = range.start;
        while at < range.end {
            let rest = &text[at..range.end];
            let Some(first) = rest.chars().next() else {
                break;
            };
            if let Some((length, is_line)) = comment_at(rest, comments) {
                at += length;
                gap.comment = Some((at, is_line));
                gap.blanks = at;
                continue;
            }
            if first == ',' {
                gap.comma = gap.comma.or(Some(at));
            }
            at += first.len_utf8();
            if !first.is_whitespace() {
                gap.blanks = at;
            }
        }
        gap
    }
}

/// The length of the comment that begins here, and whether it takes the rest of its line.
fn comment_at(rest: &str, comments: Comments) -> Option<(usize, bool)> {
    let line = |rest: &str| rest.find(['\n', '\r']).unwrap_or(rest.len());
    match comments {
        Comments::Hash if rest.starts_with('#') => Some((line(rest), true)),
        Comments::Slashes if rest.starts_with("//") => Some((line(rest), true)),
        Comments::Slashes if rest.starts_with("/*") => {
            let end = rest[2..].find("*/").map_or(rest.len(), |end| end + 4);
            Some((end, false))
        }
        _ => None,
    }
}

impl List {
    /// How an added element will be formatted.
    pub fn layout(&self, text: &str) -> Layout {
        let (Some(last), before) = (self.items.last(), self.end_before_last()) else {
            return Layout::Lines {
                indent: indent_of_line(text, self.open).to_owned(),
            };
        };
        if text[before..last.start].contains('\n') {
            Layout::Lines {
                indent: indent_of_line(text, last.start).to_owned(),
            }
        } else {
            Layout::OneLine
        }
    }

    fn end_before_last(&self) -> usize {
        match self.items.len() {
            0 | 1 => self.open,
            count => self.items[count - 2].end,
        }
    }

    /// Adds an element at the end.
    pub fn insert(&self, text: &str, item: &str, comments: Comments) -> String {
        let end = self.items.last().map_or(self.open, |last| last.end);
        let gap = Gap::scan(text, end..self.close, comments);
        let comment = gap.comment.map(|(at, _)| at);
        let below = |indent: &str| format!("{}{indent}", line_end(text));
        let Some(last) = self.items.last() else {
            let blanks = comment.map(|_| below(indent_of_line(text, self.open)));
            let at = comment.unwrap_or(self.open);
            return spliced(text, &[(at..at, blanks.unwrap_or_default() + item)]);
        };
        let blanks = match self.layout(text) {
            Layout::Lines { indent } => below(&indent),
            Layout::OneLine if comment.is_some() => below(indent_of_line(text, last.start)),
            Layout::OneLine => " ".to_owned(),
        };
        match gap.comma {
            Some(comma) => {
                let at = comment.unwrap_or(0).max(comma + 1);
                spliced(text, &[(at..at, format!("{blanks}{item},"))])
            }
            None => {
                let at = comment.unwrap_or(end);
                let parts = [
                    (end..end, ",".to_owned()),
                    (at..at, format!("{blanks}{item}")),
                ];
                spliced(text, &parts)
            }
        }
    }

    /// Removes an element, with its comma.
    pub fn remove(&self, text: &str, index: usize, comments: Comments) -> String {
        let item = &self.items[index];
        let start = match index {
            0 => self.open,
            _ => self.items[index - 1].end,
        };
        let end = self
            .items
            .get(index + 1)
            .map_or(self.close, |next| next.start);
        let before = Gap::scan(text, start..item.start, comments);
        let after = Gap::scan(text, item.end..end, comments);
        let mut cuts = Vec::new();
        match (after.comma, before.comma) {
            (Some(comma), _) => cuts.push((comma..comma + 1, String::new())),
            (None, Some(comma)) => cuts.push((comma..comma + 1, String::new())),
            (None, None) => {}
        }
        let goes_on = text[after.comma.map_or(item.end, |comma| comma + 1)..]
            .trim_start_matches([' ', '\t', ','])
            .starts_with(['\n', '\r']);
        let is_open_comment = matches!(before.comment, Some((at, true)) if at == before.blanks);
        // What follows must not become part of a comment.
        let kept = if is_open_comment && !goes_on {
            line_end(text).to_owned()
        } else {
            String::new()
        };
        cuts.push((before.blanks..item.end, kept));
        cuts.sort_by_key(|(range, _)| range.start);
        spliced(text, &cuts)
    }

    /// Whether this list was added for the one element in it.
    pub fn is_made_for(&self, text: &str, index: usize, comments: Comments) -> bool {
        let item = &self.items[index];
        let before = Gap::scan(text, self.open..item.start, comments);
        let after = Gap::scan(text, item.end..self.close, comments);
        self.items.len() == 1
            && item.start > self.open
            && before.comment.is_none()
            && after.comment.is_none()
    }
}

/// The text with these parts replaced; they are in order and do not overlap.
pub(super) fn spliced(text: &str, parts: &[(Range<usize>, String)]) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let mut at = 0;
    for (range, new) in parts {
        out.push_str(&text[at..range.start]);
        out.push_str(new);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// The line end that the text uses.
pub(super) fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// The blanks at the start of the line.
pub(super) fn indent_of_line(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = &text[start..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Line and column of a position, from one.
pub(super) fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at.min(text.len())];
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    (
        before.matches('\n').count() + 1,
        before[start..].chars().count() + 1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of digits; everything else between the brackets is blanks, commas and comments.
    fn list(text: &str) -> List {
        let open = text.find('[').unwrap() + 1;
        let close = text.rfind(']').unwrap();
        let mut items = Vec::new();
        let mut at = open;
        while at < close {
            match comment_at(&text[at..close], Comments::Slashes) {
                Some((length, _)) => at += length,
                None => {
                    if text.as_bytes()[at].is_ascii_digit() {
                        items.push(at..at + 1);
                    }
                    at += 1;
                }
            }
        }
        List { open, close, items }
    }

    #[test]
    fn what_is_inserted_comes_out_without_a_trace() {
        for (before, with) in [
            ("[]", "[9]"),
            ("[ ]", "[9 ]"),
            ("[\n]", "[9\n]"),
            ("[1]", "[1, 9]"),
            ("[1,]", "[1, 9,]"),
            ("[1 , ]", "[1 , 9, ]"),
            ("[\n  1\n]", "[\n  1,\n  9\n]"),
            ("[\r\n\t1\r\n]", "[\r\n\t1,\r\n\t9\r\n]"),
            ("[\n  1 // one\n]", "[\n  1, // one\n  9\n]"),
            ("[\n  1, // one\n]", "[\n  1, // one\n  9,\n]"),
            ("[1 // one\n]", "[1, // one\n9\n]"),
            ("[ /* c */ ]", "[ /* c */\n9 ]"),
            ("[ // c\n]", "[ // c\n9\n]"),
            (
                "[\n  1,\n  2\n  // end\n]",
                "[\n  1,\n  2,\n  // end\n  9\n]",
            ),
        ] {
            let inserted = list(before).insert(before, "9", Comments::Slashes);
            assert_eq!(inserted, with);
            let found = list(&inserted);
            let last = found.items.len() - 1;
            assert_eq!(
                found.remove(&inserted, last, Comments::Slashes),
                before,
                "{with}"
            );
        }
    }

    #[test]
    fn an_element_among_others_leaves_them_whole() {
        for (with, without) in [
            ("[9, 1]", "[ 1]"),
            ("[\n  9,\n  1\n]", "[\n  1\n]"),
            ("[\n  1,\n  9,\n  2\n]", "[\n  1,\n  2\n]"),
            ("[\n  1, // one\n  9, 2\n]", "[\n  1, // one\n 2\n]"),
            ("[\n  1, // one\n  9,\n 2\n]", "[\n  1, // one\n 2\n]"),
        ] {
            let found = list(with);
            let ours = found.items.iter().position(|at| &with[at.clone()] == "9");
            assert_eq!(
                found.remove(with, ours.unwrap(), Comments::Slashes),
                without
            );
        }
    }

    #[test]
    fn a_list_that_we_made_is_told_from_an_empty_one_of_the_users() {
        let is_ours = |text: &str| list(text).is_made_for(text, 0, Comments::Slashes);
        assert!(is_ours("[ 9 ]") && is_ours("[\n  9\n]"));
        assert!(!is_ours("[9]") && !is_ours("[ // c\n9\n]") && !is_ours("[ 9, 1 ]"));
    }
}
