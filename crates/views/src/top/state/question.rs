//! A question of a session on the screen: nothing answers it before all of it is shown.

use tenure_elsewhere::answers::{PersonsAnswer, QuestionView};
use tenure_service::answer::Problem;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Effect, Mode, Top, edit, told};
use crate::screen::Size;
use crate::top::act::Act;
use crate::top::keys::Key;
use crate::top::source::Ask;

/// Lines of the screen that are not for the question: the first and the last.
const OTHERS: usize = 2;

impl Top {
    /// Shows what a session asks, if all of it fits on a screen of this size.
    pub fn take_question(
        &mut self,
        found: Result<Box<QuestionView>, Problem>,
        size: Size,
    ) -> Vec<Effect> {
        self.said = match found {
            Err(problem) => Some(told(&problem)),
            // The person does something else by now.
            Ok(_) if self.mode != Mode::Keys => return Vec::new(),
            Ok(question) if !fits(&question, size) => Some(format!(
                "this screen cannot show the whole question; run `tenure answer {}`",
                question.session
            )),
            Ok(question) => {
                let text = String::new();
                self.mode = Mode::Question { question, text };
                None
            }
        };
        Vec::new()
    }

    /// A question may no longer be shown whole.
    pub fn resize(&mut self) -> Vec<Effect> {
        if let Mode::Question { .. } = self.mode {
            self.mode = Mode::Keys;
        }
        Vec::new()
    }

    pub(super) fn press_at_question(
        &mut self,
        question: Box<QuestionView>,
        mut text: String,
        key: Key,
    ) -> Vec<Effect> {
        let takes_text = !question.questions.is_empty();
        let answer = match key {
            Key::Escape => return Vec::new(),
            Key::Char('y') if !takes_text => Some(PersonsAnswer::Allow),
            Key::Char('n') if !takes_text => Some(PersonsAnswer::Deny(None)),
            // What is typed is the text, even if it reads `deny`: that may be one of the options.
            Key::Enter if takes_text && !text.trim().is_empty() => {
                Some(PersonsAnswer::Texts(vec![text.clone()]))
            }
            other => {
                if takes_text {
                    edit(&mut text, other);
                }
                None
            }
        };
        match answer {
            Some(answer) => {
                let QuestionView { session, id, .. } = *question;
                self.show_doing(Act::Answer, &session);
                vec![Effect::Ask(Ask::Answer {
                    handle: session,
                    id,
                    answer,
                })]
            }
            None => {
                self.mode = Mode::Question { question, text };
                Vec::new()
            }
        }
    }
}

/// Whether a screen shows all of a question at once, and it takes at most one text.
fn fits(question: &QuestionView, size: Size) -> bool {
    let is_short = question_lines(question, size.columns).len() + OTHERS <= size.rows;
    is_short && question.questions.len() <= 1
}

/// A question as it is shown: what is wider than the screen goes on below, and nothing is cut.
pub fn question_lines(question: &QuestionView, columns: usize) -> Vec<String> {
    let said = question.lines();
    said.iter()
        .flat_map(|said| wrapped(said, columns.max(2)))
        .collect()
}

fn wrapped(said: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut last) = (String::new(), 0);
    for c in said.chars() {
        // What takes no room of its own stays with the character before it, and may make that wider.
        if c.width() != Some(0) {
            last = line.len();
        }
        line.push(c);
        if cells(&line) > columns && last > 0 {
            let rest = line.split_off(last);
            lines.push(std::mem::replace(&mut line, rest));
            last = 0;
        }
    }
    lines.push(line);
    lines
}

/// How many cells a text takes at most: not every terminal joins the same characters into one.
fn cells(text: &str) -> usize {
    let apart: usize = text.chars().map(|c| c.width().unwrap_or(1)).sum();
    apart.max(text.width())
}

#[cfg(test)]
mod tests {
    use tenure_core::time::Timestamp;
    use tenure_elsewhere::answers::reply::QuestionPart;

    use super::*;
    use crate::top::sample::{NOW, ten};

    const ID: &str = "q-k7qd2m4zw9";
    const WIDE: Size = Size {
        columns: 80,
        rows: 24,
    };

    fn question(shown: &str, questions: &[&str]) -> Box<QuestionView> {
        let part = |question: &&str| QuestionPart {
            question: (*question).to_owned(),
            options: Vec::new(),
        };
        Box::new(QuestionView {
            id: ID.into(),
            session: "claude-k7qd".into(),
            kind: if questions.is_empty() {
                "permission"
            } else {
                "question"
            },
            tool: "Bash".into(),
            shown: vec![shown.to_owned()],
            questions: questions.iter().map(part).collect(),
            dir: "/w".into(),
            opened_at: Timestamp(0),
            until: Timestamp(1),
        })
    }

    fn top() -> Top {
        let mut top = Top::default();
        top.take(ten(), NOW);
        top
    }

    fn sent(effects: &[Effect]) -> Option<(&str, &PersonsAnswer)> {
        match effects {
            [Effect::Ask(Ask::Answer { id, answer, .. })] => Some((id.as_str(), answer)),
            _ => None,
        }
    }

    #[test]
    fn only_what_is_shown_whole_is_answered_and_with_its_own_id() {
        let mut top = top();
        let asked = top.press(Key::Char('a'));
        assert!(matches!(&asked[..], [Effect::Ask(Ask::Question(one))] if one == "claude-k7qd"));
        assert!(top.press(Key::Char('y')).is_empty(), "nothing is shown yet");
        top.take_question(Ok(question("touch a", &[])), WIDE);
        let done = top.press(Key::Char('y'));
        assert_eq!(sent(&done), Some((ID, &PersonsAnswer::Allow)));
        let denied = PersonsAnswer::Deny(None);
        for (key, expected) in [('n', Some((ID, &denied))), ('x', None)] {
            top.take_question(Ok(question("touch a", &[])), WIDE);
            assert_eq!(sent(&top.press(Key::Char(key))), expected);
            top.press(Key::Escape);
        }
        let long = "x".repeat(80 * 22);
        top.take_question(Ok(question(&long, &[])), WIDE);
        assert_eq!(top.mode, Mode::Keys);
        assert!(sent(&top.press(Key::Char('y'))).is_none());
        top.take_question(Ok(question("touch a", &[])), WIDE);
        top.resize();
        assert!(
            sent(&top.press(Key::Char('y'))).is_none(),
            "it may not be whole any more"
        );
        top.take_question(Ok(question("touch a", &[])), WIDE);
        top.press(Key::Pasted('y'));
        assert!(
            matches!(top.mode, Mode::Question { .. }),
            "a paste answers nothing"
        );
    }

    #[test]
    fn a_question_takes_what_is_typed_as_a_text() {
        for typed in ["yes", "deny", "allow"] {
            let mut top = top();
            top.take_question(Ok(question("Which one?", &["Which one?"])), WIDE);
            for key in typed.chars() {
                assert!(top.press(Key::Char(key)).is_empty());
            }
            let done = top.press(Key::Enter);
            let text = PersonsAnswer::Texts(vec![typed.to_owned()]);
            assert_eq!(sent(&done), Some((ID, &text)));
        }
    }

    #[test]
    fn nothing_of_a_question_is_cut() {
        let long = "echo 日本 ".repeat(40);
        let whole: String = question_lines(&question(&long, &[]), 31).concat();
        assert!(whole.contains(&long));
    }

    #[test]
    fn a_character_that_the_next_one_makes_wider_is_measured_with_it() {
        let hearts = "\u{2764}\u{fe0f}".repeat(80 * 12);
        let lines = question_lines(&question(&hearts, &[]), 31);
        assert!(lines.concat().contains(&hearts));
        for line in lines {
            assert!(line.width() <= 31, "{line:?}");
            assert!(!line.starts_with('\u{fe0f}'), "{line:?}");
        }
        let mut top = top();
        top.take_question(Ok(question(&hearts, &[])), WIDE);
        assert_eq!(top.mode, Mode::Keys, "it needs more rows than there are");
    }
}
