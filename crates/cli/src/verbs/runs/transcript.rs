//! An agent's stream as people read it: its text, its tools and its errors, one after the other.

use tenure_core::run::line::{Final, RunLine};
use tenure_core::text;

use crate::lines::Lines;

/// Turns the stream of one run into lines. Text that comes in parts is shown line by line.
#[derive(Debug, Default)]
pub struct Transcript {
    /// The beginning of a line whose rest has not arrived.
    open: String,
    /// The text since the last tool: some agents repeat it in their final event.
    said: String,
}

impl Transcript {
    /// The lines for one line of the stream, which says this.
    pub fn lines(&mut self, raw: &[u8], read: &[RunLine]) -> Lines {
        let mut shown = Lines::default();
        for line in read {
            self.add(&mut shown, raw, line);
        }
        shown
    }

    /// What is left when the stream has ended.
    pub fn end(&mut self) -> Lines {
        let mut shown = Lines::default();
        self.close(&mut shown);
        shown
    }

    fn add(&mut self, shown: &mut Lines, raw: &[u8], line: &RunLine) {
        match line {
            RunLine::Text { text, part } => self.text(shown, text, *part),
            RunLine::Tool { what } => {
                self.said.clear();
                self.line(shown, format!("tool: {what}"));
            }
            RunLine::Denied { what } => self.line(shown, format!("not permitted: {what}")),
            RunLine::WaitsForProvider { why } => {
                self.line(shown, format!("waiting for its provider: {why}"));
            }
            RunLine::Limit { resets_at } => {
                let until = resets_at.map_or_else(String::new, |at| format!(" until {at}"));
                self.line(shown, format!("usage limit reached{until}"));
            }
            RunLine::Problem(failure) | RunLine::Failure(failure) => {
                self.line(shown, format!("error: {}", failure.text));
            }
            RunLine::Final(last) => self.last(shown, last),
            RunLine::Unreadable => self.line(shown, String::from_utf8_lossy(raw)),
            RunLine::Named(_)
            | RunLine::TurnBegan
            | RunLine::Thought
            | RunLine::StepEnded { .. }
            | RunLine::Spent(_) => {}
        }
    }

    fn text(&mut self, shown: &mut Lines, text: &str, part: bool) {
        if !part {
            self.close(shown);
            self.said.clear();
        }
        self.said.push_str(text);
        self.open.push_str(text);
        if !part {
            return self.close(shown);
        }
        if let Some(end) = self.open.rfind('\n') {
            let rest = self.open.split_off(end + 1);
            shown.extend(&Lines::of_file(&self.open));
            self.open = rest;
        }
    }

    fn last(&mut self, shown: &mut Lines, last: &Final) {
        self.close(shown);
        if let Some(text) = &last.text
            && text.trim() != self.said.trim()
        {
            shown.extend(&Lines::of_file(text));
        }
        if let Some(error) = &last.error {
            self.line(shown, format!("error: {}", error.text));
        }
    }

    fn line(&mut self, shown: &mut Lines, line: impl AsRef<str>) {
        self.close(shown);
        shown.line(text::line(line.as_ref()));
    }

    fn close(&mut self, shown: &mut Lines) {
        shown.extend(&Lines::of_file(&std::mem::take(&mut self.open)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::run::failure::{AgentFailure, ErrorClass};

    fn text(text: &str, part: bool) -> RunLine {
        let text = text.to_owned();
        RunLine::Text { text, part }
    }

    fn shown(stream: &[&[RunLine]]) -> Vec<String> {
        let mut transcript = Transcript::default();
        let mut all = Lines::default();
        for read in stream {
            all.extend(&transcript.lines(b"raw", read));
        }
        all.extend(&transcript.end());
        all.as_str().lines().map(str::to_owned).collect()
    }

    #[test]
    fn text_tools_and_errors_are_shown_and_the_rest_is_not() {
        let tool = RunLine::Tool {
            what: "Bash: make test".to_owned(),
        };
        let last = RunLine::Final(Final::success(Some("Done.\n".to_owned())));
        let stream: [&[RunLine]; 5] = [
            &[RunLine::TurnBegan],
            &[text("I look.\nThen I act.", false), tool],
            &[RunLine::Unreadable],
            &[text("Done.", false)],
            &[last],
        ];
        let lines = [
            "I look.",
            "Then I act.",
            "tool: Bash: make test",
            "raw",
            "Done.",
        ];
        assert_eq!(shown(&stream), lines);
        let failed = AgentFailure::new(ErrorClass::Server, "overloaded");
        let stream: [&[RunLine]; 1] = [&[RunLine::Final(Final::failed(failed))]];
        assert_eq!(shown(&stream), ["error: overloaded"]);
    }

    #[test]
    fn parts_are_put_together() {
        let tool = RunLine::Tool {
            what: "ls".to_owned(),
        };
        let stream: [&[RunLine]; 4] = [
            &[text("one ", true)],
            &[text("line\nan", true)],
            &[text("other", true)],
            &[tool],
        ];
        assert_eq!(shown(&stream), ["one line", "another", "tool: ls"]);
        assert_eq!(shown(&[&[text("the end", true)]]), ["the end"]);
    }
}
