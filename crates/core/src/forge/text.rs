//! What people mean in an issue or a comment: mentions, commands to tenure, references to issues.
//!
//! Quotes, code and HTML comments are not addressed to anyone: a template's hidden hint, or a quoted reply,
//! starts nothing. All functions are total; text comes from anyone.

use crate::spelling;

/// The line that marks a text as written by tenure.
pub const MARKER: &str = "<!-- tenure -->";

/// Whether tenure wrote this text. Only a line of its own counts, so that a quote does not.
pub fn is_ours(text: &str) -> bool {
    text.lines().any(|line| line.trim_end() == MARKER)
}

/// Whether someone is addressed: the mention as a whole word, in any case.
pub fn mentions(text: &str, mention: &str) -> bool {
    let (text, mention) = (addressed(text), mention.to_ascii_lowercase());
    let text = text.to_ascii_lowercase();
    if mention.is_empty() {
        return false;
    }
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '@');
    let belongs = |c: char| goes_on(c) || c == '.';
    text.match_indices(&mention).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        !before.is_some_and(belongs) && !after.is_some_and(goes_on)
    })
}

/// Whether a comment asks for a new conversation: `/tenure reset` or `/reset` on a line of its own.
pub fn asks_for_reset(text: &str) -> bool {
    has_line(text, |words| {
        matches!(words, ["/tenure", "reset"] | ["/reset"])
    })
}

/// Whether a text has `/tenure stop` on a line of its own.
pub fn asks_to_stop(text: &str) -> bool {
    has_line(text, |words| matches!(words, ["/tenure", "stop"]))
}

fn has_line(text: &str, is_command: fn(&[&str]) -> bool) -> bool {
    addressed(text).lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        is_command(&words)
    })
}

/// The issues of a repository that a text says it closes, by number, in their order.
///
/// The verbs are those that GitHub, Forgejo, Gitea and GitLab share.
pub fn closed_issues(text: &str, repo: &str) -> Vec<u64> {
    const VERBS: [&str; 9] = [
        "close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved",
    ];
    let text = addressed(text);
    let mut found = Vec::new();
    let mut listing = false;
    for word in text.split_whitespace() {
        let bare = word.trim_matches(['.', ',', ';', ':', '(', ')', '*']);
        let lower = bare.to_ascii_lowercase();
        if listing && lower == "and" {
            continue;
        }
        if VERBS.contains(&lower.as_str()) {
            listing = true;
        } else if listing && let Some(number) = own_issue(bare, repo) {
            found.push(number);
            listing = word.ends_with(',') || !word.ends_with(['.', ';', ')']);
        } else {
            listing = false;
        }
    }
    found
}

/// The number of an issue of this repository: `#6`, `acme/web#6` or its page.
fn own_issue(word: &str, repo: &str) -> Option<u64> {
    if let Some(number) = word.strip_prefix('#') {
        return spelling::number(number)?.parse().ok();
    }
    let rest = match spelling::page(word) {
        Some(("issue", rest)) => rest,
        Some(_) => return None,
        None => spelling::item(word)?,
    };
    let (name, number) = rest.rsplit_once('#')?;
    if name == repo {
        number.parse().ok()
    } else {
        None
    }
}

/// The text without quotes, code and HTML comments.
fn addressed(text: &str) -> String {
    let mut fence: Option<(char, usize)> = None;
    let mut out = String::new();
    for line in without_comments(text).lines() {
        let start = line.trim_start();
        let mark = start.chars().next().filter(|c| matches!(c, '`' | '~'));
        let run = mark.map_or(0, |mark| start.chars().take_while(|c| *c == mark).count());
        match (fence, mark) {
            (None, Some(mark)) if run >= 3 => fence = Some((mark, run)),
            (Some((open, least)), Some(mark)) if mark == open && run >= least => fence = None,
            (None, _) if !start.starts_with('>') => {
                out.push_str(&without_spans(line));
                out.push('\n');
            }
            _ => {}
        }
    }
    out
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!--") {
        out.push_str(before);
        rest = after.split_once("-->").map_or("", |(_, rest)| rest);
    }
    out.push_str(rest);
    out
}

/// A line without its code spans; a backtick without a partner is text.
fn without_spans(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('`') {
        let Some((_, behind)) = after.split_once('`') else {
            break;
        };
        out.push_str(before);
        out.push(' ');
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_mention_is_a_whole_word_that_is_addressed_to_somebody() {
        for yes in [
            "@bot",
            "please, @Bot: look",
            "(@bot)",
            "hi @bot.",
            "a\n\n@bot do it",
            "`code` @bot",
            "> quoted\n@bot yes",
        ] {
            assert!(mentions(yes, "@bot"), "{yes}");
        }
        for no in [
            "",
            "bot",
            "@bots",
            "@bot-2",
            "@bot/team",
            "x@bot",
            "me.@bot",
            "> @bot do it",
            "`@bot`",
            "```\n@bot\n```",
            "~~~~\n```\n@bot\n~~~\n~~~~",
            "<!-- write @bot to start -->",
            "<!-- open\n@bot",
        ] {
            assert!(!mentions(no, "@bot"), "{no}");
        }
        assert!(!mentions("anything", ""));
        assert!(mentions("/fix this", "/fix"));
    }

    #[test]
    fn only_a_line_of_its_own_marks_a_text_as_ours() {
        assert!(is_ours("done\n<!-- tenure -->"));
        assert!(is_ours("<!-- tenure -->\r\ndone"));
        assert!(!is_ours("> <!-- tenure -->\nno"));
        assert!(!is_ours("what is `<!-- tenure -->`?"));
    }

    #[test]
    fn a_reset_is_asked_for_on_a_line_of_its_own() {
        for yes in [
            "/tenure reset",
            "\n  /tenure  reset \nbecause it is stuck",
            "it is stuck\n/tenure reset",
            "/reset",
            "it is stuck:\n\n  /reset  \n",
        ] {
            assert!(asks_for_reset(yes), "{yes}");
        }
        for no in [
            "",
            "/tenure",
            "/tenure reset all",
            "please /tenure reset",
            "please /reset",
            "/reset it",
            "/tenure /reset",
            "> /tenure reset",
            "> /reset",
            "```\n/reset\n```",
            "`/tenure reset`",
        ] {
            assert!(!asks_for_reset(no), "{no}");
        }
    }

    #[test]
    fn a_stop_is_a_line_of_its_own() {
        for yes in ["/tenure stop", "Wrong branch.\n  /tenure  stop\r\n"] {
            assert!(asks_to_stop(yes), "{yes}");
        }
        for no in [
            "/stop",
            "/tenure stop it",
            "> /tenure stop",
            "`/tenure stop`",
        ] {
            assert!(!asks_to_stop(no), "{no}");
        }
    }

    #[test]
    fn a_pull_request_closes_what_it_says_of_its_own_repository() {
        let numbers = |text: &str| closed_issues(text, "acme/web");
        assert_eq!(numbers("Closes #6"), [6]);
        assert_eq!(numbers("fixes: #006."), [6]);
        assert_eq!(numbers("Resolved Acme/Web#7"), [7]);
        assert_eq!(
            numbers("fix https://git.example.org/acme/web/issues/8"),
            [8]
        );
        assert_eq!(numbers("Closes #4, #6 and #9"), [4, 6, 9]);
        assert_eq!(numbers("closes #4. See #5"), [4]);
        for no in [
            "#6",
            "see #6",
            "closes the door #6",
            "closes other/web#6",
            "closes https://git.example.org/acme/web/pulls/8",
            "> closes #6",
            "`closes #6`",
            "<!-- closes #6 -->",
            "closes #99999999999999999999999",
            "encloses #6",
        ] {
            assert_eq!(numbers(no), [0_u64; 0], "{no}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "[`~<!> @a#\n\\-6\u{202e}é/]{0,60}") {
            let _ = (mentions(&text, "@a"), asks_for_reset(&text), is_ours(&text));
            let _ = closed_issues(&text, "a/a");
        }
    }
}
