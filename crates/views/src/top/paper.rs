//! What the terminal shows, so that only lines that changed are written.

use crate::colour::{cut_painted, to_line};
use crate::screen::{Screen, Size};

/// The lines that are on the screen.
#[derive(Debug, Default)]
pub struct Paper {
    shown: Vec<String>,
    size: Option<Size>,
}

impl Paper {
    /// From now on nothing is known about the screen.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// Shows these lines and nothing else; false if the terminal is gone.
    pub fn show(&mut self, screen: &Screen, lines: &[String], size: Size) -> bool {
        let text = self.changes(lines, size);
        text.is_empty() || screen.write(&text)
    }

    /// What to write so that the screen shows these lines.
    fn changes(&mut self, lines: &[String], size: Size) -> String {
        if self.size != Some(size) {
            // Whatever a resized terminal shows is cleared line by line.
            self.shown = vec!["\u{0}".to_owned(); size.rows];
            self.size = Some(size);
        }
        let mut text = String::new();
        for row in 0..size.rows {
            let line = lines.get(row).map_or("", String::as_str);
            let line = cut_painted(line, size.columns);
            if self.shown[row] != line {
                text.push_str(&to_line(row + 1, &line));
                self.shown[row] = line;
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_written() {
        let size = |columns, rows| Size { columns, rows };
        let lines = |text: &str| text.split('|').map(str::to_owned).collect::<Vec<_>>();
        let mut paper = Paper::default();
        let first = paper.changes(&lines("one|two"), size(10, 3));
        assert_eq!(first.matches("\u{1b}[K").count(), 3, "{first:?}");
        assert!(paper.changes(&lines("one|two"), size(10, 3)).is_empty());
        let second = paper.changes(&lines("one|three"), size(10, 3));
        assert_eq!(second, to_line(2, "three"));
        let smaller = paper.changes(&lines("one|three"), size(2, 1));
        assert_eq!(smaller, to_line(1, "on"));
        paper.forget();
        assert_eq!(paper.changes(&lines("one"), size(1, 1)), to_line(1, "o"));
    }
}
