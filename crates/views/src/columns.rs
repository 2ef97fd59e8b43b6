//! Tables for people. On a terminal a table fits: columns drop out by rank, cells are cut with `…`, no line wraps.
//!
//! A text is as wide as a terminal draws it: ideographs and most emoji take two columns, combining
//! marks none.

use tenure_core::text;
use unicode_width::UnicodeWidthStr;

use crate::colour::{Painted, paint};
use crate::lines::Lines;

/// What stands between two columns.
const GAP: usize = 2;

/// A column of a table that fits.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub head: &'static str,
    /// The narrowest that it is shown, if its cells are not narrower still.
    pub least: usize,
    /// The highest drops out first; 0 stays.
    pub rank: u8,
}

pub const fn column(head: &'static str, least: usize, rank: u8) -> Column {
    Column { head, least, rank }
}

/// A cell of a table, perhaps coloured.
#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    /// What stands for a text that does not fit; of this the end is kept.
    short: Option<String>,
    state: Option<&'static str>,
}

impl Cell {
    pub fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text::line(&text.into()).into_owned(),
            short: None,
            state: None,
        }
    }

    /// A cell in the colour of a state.
    pub fn state(text: impl Into<String>, state: &'static str) -> Self {
        Self {
            text: text::line(&text.into()).into_owned(),
            short: None,
            state: Some(state),
        }
    }

    /// A cell of which the end says most, with a shorter form for a narrow column.
    pub fn ending(text: impl Into<String>, short: impl Into<String>) -> Self {
        Self {
            short: Some(text::line(&short.into()).into_owned()),
            ..Self::plain(text)
        }
    }

    fn width(&self) -> usize {
        self.text.width()
    }

    /// As much as fits, and how wide that is.
    fn painted(&self, most: usize) -> (Painted, usize) {
        let text = match &self.short {
            Some(short) if self.width() > most => cut_start(short, most),
            _ => cut(&self.text, most),
        };
        let width = text.width();
        match self.state {
            Some(state) => (paint(&text, state), width),
            None => (text.into(), width),
        }
    }
}

/// Lines up columns; the last one is not padded.
pub fn table(head: &[&str], rows: &[Vec<Cell>]) -> Lines {
    let heads: Vec<Cell> = head.iter().map(|head| Cell::plain(*head)).collect();
    let widths: Vec<Option<usize>> = natural(&heads, rows).into_iter().map(Some).collect();
    drawn(&heads, rows, &widths)
}

/// The same within this many columns of a terminal; at full width if there is none.
pub fn fitted(columns: &[Column], rows: &[Vec<Cell>], room: Option<usize>) -> Lines {
    let heads: Vec<Cell> = columns.iter().map(|one| Cell::plain(one.head)).collect();
    let natural = natural(&heads, rows);
    let widths = match room {
        None => natural.into_iter().map(Some).collect(),
        Some(room) => widths(columns, &natural, room),
    };
    drawn(&heads, rows, &widths)
}

fn natural(heads: &[Cell], rows: &[Vec<Cell>]) -> Vec<usize> {
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(Cell::width).max().unwrap_or(0)
    };
    let all = heads.iter().enumerate();
    all.map(|(column, head)| widest(column).max(head.width()))
        .collect()
}

/// How wide each column is drawn; nothing for one that drops out.
fn widths(columns: &[Column], natural: &[usize], room: usize) -> Vec<Option<usize>> {
    let least = |at: usize| natural[at].min(columns[at].least);
    let total = |widths: &[Option<usize>]| {
        let drawn = widths.iter().flatten();
        drawn
            .map(|width| width + GAP)
            .sum::<usize>()
            .saturating_sub(GAP)
    };
    let mut drawn: Vec<Option<usize>> = (0..columns.len()).map(|at| Some(least(at))).collect();
    while total(&drawn) > room {
        let droppable =
            (0..columns.len()).filter(|at| drawn[*at].is_some() && columns[*at].rank > 0);
        let Some(last) = droppable.max_by_key(|at| columns[*at].rank) else {
            break;
        };
        drawn[last] = None;
    }
    let mut left = room.saturating_sub(total(&drawn));
    // Those that never drop out get all that they need first.
    for at in 0..columns.len() {
        if let Some(width) = drawn[at].as_mut().filter(|_| columns[at].rank == 0) {
            let more = (natural[at] - *width).min(left);
            *width += more;
            left -= more;
        }
    }
    // What is left goes to the columns that are cut, one by one, so that all get about the same.
    loop {
        let before = left;
        for (width, natural) in drawn.iter_mut().zip(natural) {
            if let Some(width) = width
                .as_mut()
                .filter(|width| **width < *natural && left > 0)
            {
                *width += 1;
                left -= 1;
            }
        }
        if left == before {
            break;
        }
    }
    // A terminal that is narrower than the narrowest table.
    while total(&drawn) > room {
        let widest = drawn.iter_mut().flatten().max_by_key(|width| **width);
        match widest {
            Some(width) if *width > 1 => *width -= 1,
            _ => break,
        }
    }
    drawn
}

fn drawn(heads: &[Cell], rows: &[Vec<Cell>], widths: &[Option<usize>]) -> Lines {
    let mut out = Lines::default();
    let heads = heads.to_vec();
    for row in std::iter::once(&heads).chain(rows) {
        let cells = row.iter().zip(widths);
        let mut cells = cells
            .filter_map(|(cell, width)| Some((cell, (*width)?)))
            .peekable();
        let mut line = Painted::default();
        while let Some((cell, width)) = cells.next() {
            let (text, shown) = cell.painted(width);
            line.push(text);
            if cells.peek().is_some() {
                line.push(" ".repeat(width.saturating_sub(shown) + GAP));
            }
        }
        out.line(line.trim_end());
    }
    out
}

/// A text on as many lines as it takes, broken between words; a word that is wider than the terminal is cut.
pub fn wrapped(text: &str, room: Option<usize>) -> Vec<String> {
    let Some(room) = room.filter(|room| text.width() > *room) else {
        return vec![text.to_owned()];
    };
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let is_begun = !line.trim_start().is_empty();
        if is_begun && line.width() + 1 + word.width() > room {
            lines.push(cut(&line, room));
            line = "  ".to_owned();
        } else if is_begun {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(cut(&line, room));
    lines
}

/// As much of a text as fits, with `…` where something was cut off.
pub fn cut(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        // Measured as a whole: what follows an emoji may make it wider.
        if kept.width() + 1 > most {
            kept.pop();
            break;
        }
    }
    kept.truncate(kept.trim_end().len());
    kept.push('…');
    kept
}

/// As much of the end of a text as fits, with `…` where something was cut off.
pub fn cut_start(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let mut starts = text.char_indices().map(|(at, _)| at).skip(1);
    let kept = starts.find(|at| text[*at..].width() < most);
    format!("…{}", kept.map_or("", |at| &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_by_what_a_terminal_shows_of_it() {
        assert_eq!(cut("plain", 5), "plain");
        assert_eq!(cut("plainer", 5), "plai…");
        assert_eq!(cut("two words", 5), "two…");
        assert_eq!(cut("日本語の題", 10), "日本語の題");
        assert_eq!(cut("日本語の題", 9), "日本語の…");
        assert_eq!(cut("日本語の題", 8), "日本語…");
        assert_eq!(
            cut("e\u{301}e\u{301}e\u{301}", 3),
            "e\u{301}e\u{301}e\u{301}"
        );
        assert_eq!(cut("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
        assert_eq!(cut("x", 0), "…");
    }

    #[test]
    fn the_end_of_a_key_is_kept() {
        let key = "issue:acme/web#42";
        assert_eq!(cut_start(key, 17), key);
        assert_eq!(cut_start(key, 7), "…web#42");
        assert_eq!(cut_start("日本語の題", 6), "…の題");
        assert_eq!(cut_start(key, 1), "…");
        let cell = Cell::ending("wp:1, wp:2 and 3 more", "wp:1 +4");
        assert_eq!(cell.painted(21).0.as_str(), "wp:1, wp:2 and 3 more");
        assert_eq!(cell.painted(8).0.as_str(), "wp:1 +4");
        assert_eq!(cell.painted(5).0.as_str(), "…1 +4");
    }

    #[test]
    fn a_text_is_broken_between_words() {
        let text = "cut off: run tenure resume claude-kd7h";
        assert_eq!(wrapped(text, None), [text]);
        assert_eq!(wrapped(text, Some(38)), [text]);
        assert_eq!(
            wrapped(text, Some(20)),
            ["cut off: run tenure", "  resume claude-kd7h"]
        );
        assert_eq!(
            wrapped("a very-long-word b", Some(8)),
            ["a", "  very-…", "  b"]
        );
    }

    const COLUMNS: &[Column] = &[
        Column {
            head: "A",
            least: 4,
            rank: 0,
        },
        Column {
            head: "B",
            least: 6,
            rank: 1,
        },
        Column {
            head: "C",
            least: 3,
            rank: 2,
        },
    ];

    #[test]
    fn the_highest_rank_drops_out_first_and_the_rest_shares_what_is_left() {
        let natural = [8, 20, 5];
        let found = |room| widths(COLUMNS, &natural, room);
        assert_eq!(found(37), [Some(8), Some(20), Some(5)]);
        assert_eq!(found(36), [Some(8), Some(19), Some(5)]);
        assert_eq!(found(17), [Some(4), Some(6), Some(3)]);
        assert_eq!(found(16), [Some(8), Some(6), None]);
        assert_eq!(found(11), [Some(8), None, None]);
        assert_eq!(found(3), [Some(3), None, None]);
    }

    #[test]
    fn no_line_is_longer_than_the_terminal() {
        let row = |words: [&str; 3]| words.map(Cell::plain).to_vec();
        let rows = [
            row(["日本語の題は長い", "x", "y"]),
            row(["claude-k7qd", &"long ".repeat(40), "e\u{301}🦀🦀"]),
        ];
        for room in 1..120 {
            let text = fitted(COLUMNS, &rows, Some(room));
            for line in text.as_str().lines() {
                assert!(line.width() <= room, "{room}: {line:?}");
            }
        }
        let whole = fitted(COLUMNS, &rows, None);
        assert!(whole.as_str().contains("long long long long"));
        assert!(!whole.as_str().contains('…'));
    }
}
