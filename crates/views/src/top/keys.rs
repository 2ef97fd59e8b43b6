//! What a terminal sends when a key is pressed.

/// A key that means something here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Char(char),
    /// A character that was pasted: never more than text.
    Pasted(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl with this letter.
    Ctrl(char),
    /// The left button of the mouse on this row, from 0.
    Click(usize),
    /// The wheel, up or down by this many steps.
    Wheel(isize),
}

/// What a terminal sends before and after what is pasted, once it was asked to.
const PASTE: &[u8] = b"\x1b[200~";
const PASTED: &[u8] = b"\x1b[201~";
const ESC: u8 = 0x1b;

/// Reads keys out of pieces of input. What is split between two pieces is put together.
#[derive(Debug, Default)]
pub struct Reader {
    rest: Vec<u8>,
    in_paste: bool,
}

impl Reader {
    pub fn read(&mut self, piece: &[u8]) -> Vec<Key> {
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.extend_from_slice(piece);
        let (mut keys, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            let left = &bytes[at..];
            let Some((key, length)) = self.first(left) else {
                self.rest = left.to_vec();
                break;
            };
            keys.extend(key);
            at += length;
        }
        keys
    }

    /// Whether a key has begun of which more may come at once, or nothing.
    pub fn is_in_key(&self) -> bool {
        self.rest.first() == Some(&ESC) && !self.in_paste
    }

    /// Nothing more came: ESC alone is a key, and any other beginning is none.
    pub fn end_key(&mut self) -> Vec<Key> {
        match std::mem::take(&mut self.rest)[..] {
            [ESC] => vec![Key::Escape],
            _ => Vec::new(),
        }
    }

    /// What these bytes begin with, if that is a key, and how many of them it takes; nothing if more must come first.
    fn first(&mut self, bytes: &[u8]) -> Option<(Option<Key>, usize)> {
        for (mark, begins) in [(PASTE, true), (PASTED, false)] {
            if bytes.starts_with(mark) {
                self.in_paste = begins;
                return Some((None, mark.len()));
            }
        }
        if self.in_paste && PASTED.starts_with(bytes) {
            return None;
        }
        if bytes[0] == ESC && !self.in_paste {
            return escaped(bytes);
        }
        let length = length_of(bytes[0]);
        let text = std::str::from_utf8(bytes.get(..length)?).ok();
        let c = text.and_then(|text| text.chars().next());
        let key = if self.in_paste { pasted } else { plain };
        Some((c.and_then(key), length))
    }
}

/// How many bytes the character has that begins with this one.
fn length_of(first: u8) -> usize {
    match first {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    }
}

fn plain(c: char) -> Option<Key> {
    Some(match c {
        '\r' | '\n' => Key::Enter,
        '\u{7f}' | '\u{8}' => Key::Backspace,
        '\u{1}'..='\u{1a}' => Key::Ctrl(char::from(b'a' + (c as u8) - 1)),
        c if c.is_control() => return None,
        c => Key::Char(c),
    })
}

/// What is pasted has one line.
fn pasted(c: char) -> Option<Key> {
    match c {
        '\r' | '\n' | '\t' => Some(Key::Pasted(' ')),
        c if c.is_control() => None,
        c => Some(Key::Pasted(c)),
    }
}

/// The key that begins with ESC, if it means something, and how many bytes it has; nothing if it is not whole.
fn escaped(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    if !matches!(bytes.get(1)?, b'[' | b'O') {
        return Some((Some(Key::Escape), 1));
    }
    let is_last = |byte: &u8| (0x40..=0x7e).contains(byte);
    let last = bytes[2..].iter().position(is_last)?;
    let key = match &bytes[2..=2 + last] {
        [b'<', mouse @ ..] => clicked(mouse),
        b"A" => Some(Key::Up),
        b"B" => Some(Key::Down),
        b"H" | b"1~" | b"7~" => Some(Key::Home),
        b"F" | b"4~" | b"8~" => Some(Key::End),
        b"5~" => Some(Key::PageUp),
        b"6~" => Some(Key::PageDown),
        _ => None,
    };
    Some((key, 3 + last))
}

/// What the mouse did: `BUTTON;COLUMN;ROW` and `M`, or `m` where a button is released.
fn clicked(said: &[u8]) -> Option<Key> {
    let said = std::str::from_utf8(said).ok()?.strip_suffix('M')?;
    let mut parts = said.split(';');
    let (button, row) = (parts.next()?, parts.nth(1)?);
    let row: usize = row.parse().ok()?;
    match button {
        "0" => Some(Key::Click(row.checked_sub(1)?)),
        "64" => Some(Key::Wheel(-1)),
        "65" => Some(Key::Wheel(1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Vec<Key> {
        let mut reader = Reader::default();
        let mut keys = reader.read(text);
        keys.extend(reader.end_key());
        keys
    }

    #[test]
    fn keys_clicks_and_the_wheel_are_told_apart() {
        assert_eq!(
            read(b"q\x1b[A\x1bOB\x1b[5~\r\x7f\x1b"),
            [
                Key::Char('q'),
                Key::Up,
                Key::Down,
                Key::PageUp,
                Key::Enter,
                Key::Backspace,
                Key::Escape
            ]
        );
        assert_eq!(read(b"\x1a\x15"), [Key::Ctrl('z'), Key::Ctrl('u')]);
        assert_eq!(
            read(b"\x1b[<0;12;3M\x1b[<0;12;3m\x1b[<64;1;1M\x1b[<65;1;1M"),
            [Key::Click(2), Key::Wheel(-1), Key::Wheel(1)]
        );
        for bad in ["0;1;0M", "2;1;1M", "0;1M", "0;1;M", "M"] {
            let bytes = format!("\u{1b}[<{bad}q");
            assert_eq!(read(bytes.as_bytes()), [Key::Char('q')], "{bad}");
        }
        assert_eq!(read(b"\xffq"), [Key::Char('q')], "no text at all");
    }

    #[test]
    fn a_key_in_pieces_is_one() {
        let whole = "日\u{1b}[A\u{1b}[200~a\r\u{1b}[201~q".as_bytes();
        let keys = [
            Key::Char('日'),
            Key::Up,
            Key::Pasted('a'),
            Key::Pasted(' '),
            Key::Char('q'),
        ];
        for at in 0..=whole.len() {
            let mut reader = Reader::default();
            let mut found = reader.read(&whole[..at]);
            found.extend(reader.read(&whole[at..]));
            assert_eq!(found, keys, "split at {at}");
            assert!(!reader.is_in_key());
        }
    }

    #[test]
    fn a_paste_is_one_line_of_text_whatever_is_in_it() {
        assert_eq!(
            read(b"\x1b[200~e\ny\r\x1b[A\x03\x1b[201~\r"),
            [
                Key::Pasted('e'),
                Key::Pasted(' '),
                Key::Pasted('y'),
                Key::Pasted(' '),
                Key::Pasted('['),
                Key::Pasted('A'),
                Key::Enter
            ]
        );
    }

    #[test]
    fn escape_alone_is_a_key_once_nothing_more_comes() {
        let mut reader = Reader::default();
        assert_eq!(reader.read(b"\x1b"), []);
        assert!(reader.is_in_key());
        assert_eq!(reader.end_key(), [Key::Escape]);
        assert_eq!(reader.read(b"[A"), [Key::Char('['), Key::Char('A')]);
    }
}
