//! Where a connection of the PostgreSQL protocol stands, from the bytes that pass by.
//!
//! A message is one byte for its kind, four for its length (which count themselves), and its content. Only three things
//! matter here: how many answers the server still owes, whether it is in a transaction, and whether a message was passed
//! on in part.

/// Reads the boundaries of messages in one direction.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The beginning of a message whose length is not known yet.
    head: Vec<u8>,
    /// How much of the content of the current message has not passed yet.
    left: usize,
    /// The kind of the current message.
    kind: u8,
    /// The first byte of the current message's content.
    first: Option<u8>,
}

const HEAD: usize = 5;

impl Frames {
    /// Reads bytes; calls `each` with the kind and the first byte of the content of every message that ends in them.
    pub(super) fn pass(&mut self, bytes: &[u8], mut each: impl FnMut(u8, Option<u8>)) {
        let mut bytes = bytes;
        while !bytes.is_empty() {
            if self.left > 0 {
                let taken = self.left.min(bytes.len());
                self.first.get_or_insert(bytes[0]);
                self.left -= taken;
                bytes = &bytes[taken..];
            } else {
                let taken = (HEAD - self.head.len()).min(bytes.len());
                self.head.extend_from_slice(&bytes[..taken]);
                bytes = &bytes[taken..];
                let [kind, a, b, c, d] = self.head[..] else {
                    continue;
                };
                let length = u32::from_be_bytes([a, b, c, d]) as usize;
                self.kind = kind;
                self.first = None;
                self.left = length.saturating_sub(HEAD - 1);
                self.head.clear();
            }
            if self.left == 0 && self.head.is_empty() {
                each(self.kind, self.first);
            }
        }
    }

    /// Whether a message has passed in part.
    pub(super) fn is_within(&self) -> bool {
        self.left > 0 || !self.head.is_empty()
    }
}

/// What a client and the server have said to each other.
#[derive(Debug)]
pub(super) struct Dialogue {
    client: Frames,
    server: Frames,
    /// How many answers the server still owes.
    owed: usize,
    /// Whether the server is outside a transaction.
    is_outside: bool,
    /// Whether the client said that it leaves.
    leaves: bool,
}

impl Dialogue {
    pub(super) fn new() -> Self {
        Self {
            client: Frames::default(),
            server: Frames::default(),
            owed: 0,
            is_outside: true,
            leaves: false,
        }
    }

    pub(super) fn client_says(&mut self, bytes: &[u8]) {
        let (owed, leaves) = (&mut self.owed, &mut self.leaves);
        self.client.pass(bytes, |kind, _| match kind {
            // A query, the end of a group of messages, a function call: each is answered by "ready".
            b'Q' | b'S' | b'F' => *owed += 1,
            b'X' => *leaves = true,
            _ => {}
        });
    }

    pub(super) fn server_says(&mut self, bytes: &[u8]) {
        let (owed, is_outside) = (&mut self.owed, &mut self.is_outside);
        self.server.pass(bytes, |kind, first| {
            if kind == b'Z' {
                *owed = owed.saturating_sub(1);
                *is_outside = first == Some(b'I');
            }
        });
    }

    /// Whether the server owes an answer.
    pub(super) fn is_owed(&self) -> bool {
        self.owed > 0
    }

    pub(super) fn leaves(&self) -> bool {
        self.leaves
    }

    /// Whether the connection can serve another client.
    pub(super) fn is_over(&self) -> bool {
        let is_whole = !self.client.is_within() && !self.server.is_within();
        is_whole && self.owed == 0 && self.is_outside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len() + 4).unwrap();
        let mut message = vec![kind];
        message.extend(length.to_be_bytes());
        message.extend(content);
        message
    }

    #[test]
    fn it_is_over_when_every_question_is_answered_outside_a_transaction() {
        let mut dialogue = Dialogue::new();
        assert!(dialogue.is_over());
        // Two questions in one write: the first answer ends nothing.
        let asked = [message(b'Q', b"ROLLBACK\0"), message(b'Q', b"BEGIN\0")].concat();
        dialogue.client_says(&asked);
        dialogue.server_says(&message(b'Z', b"I"));
        assert!(!dialogue.is_over() && dialogue.is_owed());
        dialogue.server_says(&message(b'Z', b"T"));
        assert!(!dialogue.is_over() && !dialogue.is_owed());
        dialogue.client_says(&message(b'Q', b"COMMIT\0"));
        dialogue.server_says(&message(b'Z', b"I"));
        assert!(dialogue.is_over());
    }

    #[test]
    fn messages_may_arrive_byte_by_byte() {
        let mut dialogue = Dialogue::new();
        let asked = [message(b'P', b"\0SELECT\0\0\0"), message(b'S', b"")].concat();
        for byte in asked {
            dialogue.client_says(&[byte]);
        }
        assert!(dialogue.is_owed());
        let answered = [message(b'D', &[b'Z'; 300]), message(b'Z', b"I")].concat();
        for byte in &answered[..answered.len() - 1] {
            dialogue.server_says(&[*byte]);
            assert!(!dialogue.is_over());
        }
        dialogue.server_says(b"I");
        assert!(dialogue.is_over());
    }

    #[test]
    fn half_a_message_is_not_over() {
        let mut dialogue = Dialogue::new();
        dialogue.client_says(&message(b'Q', b"SELECT 1\0")[..7]);
        assert!(!dialogue.is_over());
        let mut leaving = Dialogue::new();
        leaving.client_says(&message(b'X', b""));
        assert!(leaving.leaves() && leaving.is_over());
    }
}
