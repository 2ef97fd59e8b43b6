//! A stream of bytes, cut into lines of bounded length.
//!
//! What is kept is never longer than the longest line, however much comes without a line break.

/// A line that is longer is given up. Agents write a tool's whole output into one line.
pub const MAX_LINE: usize = 16 << 20;

/// A piece of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A line without its line break.
    Line(&'a [u8]),
    /// A line of this many bytes was too long and is lost.
    TooLong(u64),
}

/// Cuts a stream into lines.
#[derive(Debug, Default)]
pub struct Splitter {
    open: Vec<u8>,
    /// How much of a line was lost already.
    lost: u64,
}

impl Splitter {
    /// Takes the next bytes and hands on each line that they complete.
    pub fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Piece<'_>)) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.keep(&rest[..end]);
            self.hand_on(&mut take);
            rest = &rest[end + 1..];
        }
        self.keep(rest);
    }

    /// The end of the stream: hands on what has no line break.
    pub fn finish(&mut self, mut take: impl FnMut(Piece<'_>)) {
        if self.lost > 0 || !self.open.is_empty() {
            self.hand_on(&mut take);
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.lost > 0 || self.open.len() + bytes.len() > MAX_LINE {
            let more = self.open.len() + bytes.len();
            self.lost += u64::try_from(more).unwrap_or(u64::MAX);
            self.open = Vec::new();
        } else {
            self.open.extend_from_slice(bytes);
        }
    }

    fn hand_on(&mut self, take: &mut impl FnMut(Piece<'_>)) {
        if self.lost > 0 {
            take(Piece::TooLong(self.lost));
            self.lost = 0;
        } else {
            let line = self.open.strip_suffix(b"\r").unwrap_or(&self.open);
            take(Piece::Line(line));
            self.open.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: &[&[u8]]) -> Vec<String> {
        let mut splitter = Splitter::default();
        let mut lines = Vec::new();
        let mut take = |piece: Piece<'_>| {
            lines.push(match piece {
                Piece::Line(line) => String::from_utf8_lossy(line).into_owned(),
                Piece::TooLong(length) => format!("too long: {length}"),
            });
        };
        for piece in pieces {
            splitter.push(piece, &mut take);
        }
        splitter.finish(&mut take);
        lines
    }

    #[test]
    fn lines_are_the_same_however_the_bytes_arrive() {
        let stream = b"one\r\n\ntwo\nhalf";
        let whole = cut(&[stream]);
        assert_eq!(whole, ["one", "", "two", "half"]);
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(cut(&bytes), whole);
        assert_eq!(cut(&[]), Vec::<String>::new());
        assert_eq!(cut(&[b"a\n"]), ["a"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_lost_alone() {
        let chunk = vec![b'x'; MAX_LINE / 2 + 1];
        let lines = cut(&[b"a\n", &chunk, &chunk, &chunk, b"\nb\n"]);
        let length = 3 * (MAX_LINE / 2 + 1);
        assert_eq!(
            lines,
            [
                "a".to_owned(),
                format!("too long: {length}"),
                "b".to_owned()
            ]
        );
    }
}
