//! What was typed up to the cursor, and how a word is put back into a bash line.

/// The words after the program's name; the last is the one that is being typed.
#[derive(Debug, PartialEq, Eq)]
pub struct TypedLine {
    pub words: Vec<String>,
    /// Whether the last one begins with a quote that is still open.
    quoted: bool,
}

impl TypedLine {
    /// Words as a shell split them.
    pub fn of_words(mut words: Vec<String>) -> Self {
        if words.is_empty() {
            words.push(String::new());
        }
        Self {
            words,
            quoted: false,
        }
    }

    /// A line up to the cursor, with the program's name.
    ///
    /// Bash splits words at `:` and `=` for completion, where a key must stay whole; so the line is split here.
    pub fn of_line(line: &str) -> Self {
        let (mut words, mut word) = (Vec::new(), String::new());
        let (mut open, mut begun, mut opened_first) = (None, false, false);
        let mut letters = line.chars();
        while let Some(letter) = letters.next() {
            match (open, letter) {
                (Some(quote), letter) if letter == quote => open = None,
                (Some('\''), letter) => word.push(letter),
                (_, '\\') => {
                    word.extend(letters.next());
                    begun = true;
                }
                (Some(_), letter) => word.push(letter),
                (None, '\'' | '"') => {
                    opened_first = !begun;
                    open = Some(letter);
                    begun = true;
                }
                (None, ' ' | '\t' | '\n') => {
                    if begun {
                        words.push(std::mem::take(&mut word));
                    }
                    (begun, opened_first) = (false, false);
                }
                (None, letter) => {
                    word.push(letter);
                    begun = true;
                }
            }
        }
        words.push(word);
        words.remove(0);
        let mut typed = Self::of_words(words);
        typed.quoted = open.is_some() && opened_first;
        typed
    }

    /// The part of a word that bash puts where the cursor is: it replaces only what follows the last
    /// character that ends a word for it, and what needs quotes gets them.
    pub fn as_bash_inserts(&self, word: &str, breaks: &str) -> String {
        if self.quoted {
            return word.to_owned();
        }
        let typed = self.words.last().map_or("", String::as_str);
        let ends = |letter: char| !letter.is_whitespace() && breaks.contains(letter);
        let kept = typed.rfind(ends).map_or(0, |at| {
            at + typed[at..].chars().next().map_or(0, char::len_utf8)
        });
        escaped(word.get(kept..).unwrap_or(word))
    }
}

/// With a backslash before whatever a shell would read otherwise.
fn escaped(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:@%+=,#".contains(letter);
    let mut text = String::new();
    for (at, letter) in word.chars().enumerate() {
        if !is_plain(letter) || (at == 0 && letter == '#') {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        TypedLine::of_line(line).words
    }

    #[test]
    fn a_line_is_split_as_a_shell_splits_it() {
        assert_eq!(words("tenure "), [""]);
        assert_eq!(words("tenure cla"), ["cla"]);
        assert_eq!(
            words("tenure claim 'two words' x"),
            ["claim", "two words", "x"]
        );
        assert_eq!(
            words("tenure claim issue:acme/web#4"),
            ["claim", "issue:acme/web#4"]
        );
        assert_eq!(words("tenure claim a\\ b \"c d"), ["claim", "a b", "c d"]);
        assert_eq!(words("tenure"), [""]);
    }

    #[test]
    fn bash_gets_what_follows_the_last_break() {
        let breaks = " \t\n\"'><=;|&(:";
        let typed = TypedLine::of_line("tenure why issue:ac");
        assert_eq!(
            typed.as_bash_inserts("issue:acme/web#42", breaks),
            "acme/web#42"
        );
        assert_eq!(
            typed.as_bash_inserts("issue:acme/web#42", ""),
            "issue:acme/web#42"
        );
        let quoted = TypedLine::of_line("tenure why 'issue:ac");
        assert_eq!(
            quoted.as_bash_inserts("issue:acme/web#42", breaks),
            "issue:acme/web#42"
        );
        let typed = TypedLine::of_line("tenure why path:");
        assert_eq!(
            typed.as_bash_inserts("path:acme/web:src/**", breaks),
            "acme/web:src/\\*\\*"
        );
        let typed = TypedLine::of_line("tenure why ");
        assert_eq!(typed.as_bash_inserts("doc:it's", breaks), "doc:it\\'s");
    }
}
