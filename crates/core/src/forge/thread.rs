//! A whole issue or pull request with its comments, as an agent that has not seen it reads it.

use super::event::Person;
use super::text::is_ours;

/// An issue or a pull request, and what people wrote there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thread {
    pub title: String,
    pub body: String,
    pub author: Person,
    /// Oldest first.
    pub comments: Vec<ThreadComment>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadComment {
    pub author: Person,
    /// As the forge writes it.
    pub at: String,
    pub text: String,
}

impl Thread {
    /// The thread as text of at most about this many bytes. The description stays, then the newest comments. What
    /// tenure wrote is left out.
    pub fn told(&self, most: usize) -> String {
        let mut head = format!("{} (by {})\n", self.title, self.author.name());
        head.push_str(clipped(&self.body, most / 2));
        let mut left = most.saturating_sub(head.len());
        let mut shown = Vec::new();
        let mut left_out = 0;
        let comments = self.comments.iter().filter(|one| !is_ours(&one.text));
        for comment in comments.rev() {
            let whole = format!("{}, {}:\n", comment.author.name(), comment.at);
            let is_room = left > whole.len() && left_out == 0;
            let text = if is_room && (comment.text.len() <= left || shown.is_empty()) {
                clipped(&comment.text, left - whole.len())
            } else {
                left_out += 1;
                continue;
            };
            left = left.saturating_sub(whole.len() + text.len());
            shown.push(format!("{whole}{text}"));
        }
        let mut parts = vec![head];
        if left_out > 0 {
            parts.push(format!("({left_out} earlier comments are left out.)"));
        }
        parts.extend(shown.into_iter().rev());
        parts.join("\n\n")
    }
}

/// The beginning of a text.
fn clipped(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(count: usize, length: usize) -> Thread {
        let comment = |number: usize| ThreadComment {
            author: Person::named("bob"),
            at: format!("2026-11-16T06:{number:02}:00Z"),
            text: format!("c{number} {}", "ö".repeat(length)),
        };
        Thread {
            title: "Login fails".to_owned(),
            body: "It answers 500.".to_owned(),
            author: Person::named("alice"),
            comments: (0..count).map(comment).collect(),
        }
    }

    #[test]
    fn a_thread_is_told_whole_without_what_tenure_wrote() {
        let mut all = thread(2, 0);
        let own = format!("{}\n**claude** is done", super::super::text::MARKER);
        all.comments.push(ThreadComment {
            text: own,
            ..ThreadComment::default()
        });
        assert_eq!(
            all.told(10_000),
            "Login fails (by alice)\nIt answers 500.\n\nbob, 2026-11-16T06:00:00Z:\nc0 \n\nbob, 2026-11-16T06:01:00Z:\nc1 "
        );
    }

    #[test]
    fn a_long_thread_keeps_the_description_and_the_newest_comments() {
        let told = thread(50, 100).told(1_000);
        assert!(told.len() < 1_100, "{}", told.len());
        assert!(told.starts_with("Login fails (by alice)\nIt answers 500.\n\n("));
        assert!(told.contains("earlier comments are left out"), "{told}");
        assert!(
            told.contains("\nc49 ö") && !told.contains("\nc2 ö"),
            "{told}"
        );
        let one = thread(1, 5_000).told(1_000);
        assert!(one.contains("c0 ö") && one.len() <= 1_010, "{}", one.len());
    }
}
