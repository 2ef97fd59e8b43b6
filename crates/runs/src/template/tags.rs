//! The tags of a template, and what is refused in them.
//!
//! Tags begin and end where the engine finds them. What is not known to be harmless is refused, and syntax that is
//! wrong is left to the engine, which says so.

use super::TemplateFault;

/// The engine parses chains of operators and of `elif` recursively, so a long chain would exhaust
/// the stack.
const MAX_TOKENS: usize = 300;
const MAX_ELIFS: usize = 60;

const STATEMENTS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];
/// Words that stand before a value.
const OPERATORS: [&str; 9] = ["and", "or", "not", "in", "is", "if", "else", "elif", "for"];
const CONSTANTS: [&str; 6] = ["true", "True", "false", "False", "none", "None"];
const SIGNS: [&str; 10] = [".", "|", "=", "==", "!=", "<", "<=", ">", ">=", ","];
const LONG_SIGNS: [&str; 6] = ["==", "!=", "<=", ">=", "//", "**"];

/// A word, text, number or sign in a tag, and its position.
#[derive(Clone, Copy)]
struct Token<'s> {
    text: &'s str,
    at: usize,
}

impl Token<'_> {
    fn is_word(&self) -> bool {
        let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
        self.text.starts_with(is_first)
    }

    fn is_number(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_digit())
    }

    fn is_literal(&self) -> bool {
        self.is_number() || self.text.starts_with(['"', '\''])
    }
}

/// Refuses what is outside the supported language.
pub(super) fn check(source: &str) -> Result<(), TemplateFault> {
    let (mut elifs, mut at) = (0, 0);
    while let Some(start) = next_tag(source, at) {
        at = start + 2;
        if source[start..].starts_with("{#") {
            at = end_of(source, at, "#}");
            continue;
        }
        at += usize::from(source[at..].starts_with(['-', '+']));
        let is_statement = source[start..].starts_with("{%");
        if let Some(length) = lone_tag(&source[at..], "raw").filter(|_| is_statement) {
            at = end_of_raw(source, at + length);
            continue;
        }
        let tokens = tokens(source, &mut at, if is_statement { "%}" } else { "}}" });
        elifs += usize::from(is_statement && tokens.first().is_some_and(|one| one.text == "elif"));
        let fault = if elifs > MAX_ELIFS {
            let what = format!("there are more than {MAX_ELIFS} elif branches");
            Some((start, what))
        } else if let Some(over) = tokens.get(MAX_TOKENS) {
            Some((over.at, format!("a tag has more than {MAX_TOKENS} parts")))
        } else {
            refused(&tokens, is_statement).map(|(token, what)| {
                let what =
                    format!("{what} is not available in skills; they have if, for and filters");
                (token.at, what)
            })
        };
        if let Some((at, what)) = fault {
            return Err(TemplateFault::at(line_of(source, at), what));
        }
    }
    Ok(())
}

fn line_of(source: &str, at: usize) -> usize {
    let before = source.as_bytes().iter().take(at);
    before.filter(|byte| **byte == b'\n').count() + 1
}

/// Where the next tag or comment begins.
fn next_tag(source: &str, from: usize) -> Option<usize> {
    let starts = source[from..].match_indices('{').map(|(at, _)| from + at);
    let mut starts = starts.filter(|at| source[at + 1..].starts_with(['{', '%', '#']));
    starts.next()
}

fn end_of(source: &str, from: usize, mark: &str) -> usize {
    let end = source[from..].find(mark);
    end.map_or(source.len(), |end| from + end + mark.len())
}

/// How long the rest of a tag is that only has this name.
fn lone_tag(text: &str, name: &str) -> Option<usize> {
    let space = |c: char| c.is_ascii_whitespace();
    let rest = text.trim_start_matches(space).strip_prefix(name)?;
    let rest = rest.trim_start_matches(space);
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    Some(text.len() - rest.strip_prefix("%}")?.len())
}

fn end_of_raw(source: &str, from: usize) -> usize {
    let mut at = from;
    while let Some(start) = source[at..].find("{%") {
        at += start + 2;
        let rest = &source[at..];
        let name = rest.strip_prefix(['-', '+']).unwrap_or(rest);
        if let Some(length) = lone_tag(name, "endraw") {
            return at + rest.len() - name.len() + length;
        }
    }
    source.len()
}

/// The tokens up to the end of a tag, which is not inside brackets.
fn tokens<'s>(source: &'s str, at: &mut usize, end: &str) -> Vec<Token<'s>> {
    let (mut found, mut depth) = (Vec::new(), 0);
    loop {
        let rest = source[*at..].trim_start_matches(|c: char| c.is_ascii_whitespace());
        *at = source.len() - rest.len();
        let closing = rest.strip_prefix(['-', '+']).unwrap_or(rest);
        if depth == 0
            && let Some(after) = [rest, closing].iter().find_map(|one| one.strip_prefix(end))
        {
            *at = source.len() - after.len();
            return found;
        }
        let Some(length) = token_length(rest) else {
            *at = source.len();
            return found;
        };
        let text = &rest[..length];
        depth += i32::from(["(", "[", "{"].contains(&text));
        depth -= i32::from([")", "]", "}"].contains(&text));
        found.push(Token { text, at: *at });
        *at += length;
    }
}

/// How long the first token is; none if there is none, or if a text does not end.
fn token_length(rest: &str) -> Option<usize> {
    let first = rest.chars().next()?;
    if first == '"' || first == '\'' {
        let mut is_escaped = false;
        let end = rest.char_indices().skip(1).find(|(_, letter)| {
            let is_end = *letter == first && !is_escaped;
            is_escaped = *letter == '\\' && !is_escaped;
            is_end
        });
        return end.map(|(at, quote)| at + quote.len_utf8());
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if is_word(first) {
        return Some(rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
    }
    let long = LONG_SIGNS.iter().find(|sign| rest.starts_with(**sign));
    Some(long.map_or(first.len_utf8(), |sign| sign.len()))
}

/// The first part of a tag that is outside the supported language, and its name.
fn refused<'s>(tokens: &[Token<'s>], is_statement: bool) -> Option<(Token<'s>, &'s str)> {
    let first = *tokens.first()?;
    if is_statement && !STATEMENTS.contains(&first.text) {
        return Some((first, first.text));
    }
    let last = tokens.len() - 1;
    if first.text == "for" && tokens[last].text == "recursive" && ends_value(tokens, last - 1) {
        return Some((tokens[last], "for … recursive"));
    }
    // For each open bracket, whether values in it are part of a list.
    let mut lists: Vec<bool> = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let follows_value = index > 0 && ends_value(tokens, index - 1);
        let is_filters = index > 1 && tokens[index - 2].text == "|";
        let what = match token.text {
            "(" if follows_value && !is_filters => "a call",
            "(" => {
                lists.push(!follows_value && is_tuple(&tokens[index..]));
                continue;
            }
            "[" => {
                lists.push(!follows_value);
                continue;
            }
            ")" | "]" => {
                lists.pop();
                continue;
            }
            "-" if !follows_value => continue,
            "{" | "}" => "{…}",
            ":" => "[…:…]",
            // Lists of lists grow with each level of a loop; a list of constants has a fixed length.
            word if token.is_word() => {
                if CONSTANTS.contains(&word) || !lists.contains(&true) {
                    continue;
                }
                "a list with variables in it"
            }
            // The engine would find a word behind the digits.
            number if token.is_number() && !number.bytes().all(|b| b.is_ascii_digit()) => number,
            sign if token.is_literal() || SIGNS.contains(&sign) => continue,
            other => other,
        };
        return Some((*token, what));
    }
    None
}

/// Whether a value can end with this token.
fn ends_value(tokens: &[Token<'_>], index: usize) -> bool {
    let token = tokens[index];
    let is_part = index > 0 && tokens[index - 1].text == ".";
    let is_name = token.is_word() && (is_part || !OPERATORS.contains(&token.text));
    is_name || token.is_literal() || [")", "]"].contains(&token.text)
}

/// Whether there is a comma in the bracket that begins here, outside others.
fn is_tuple(tokens: &[Token<'_>]) -> bool {
    let mut depth = 0;
    for token in tokens {
        match token.text {
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return false;
        }
        if depth == 1 && token.text == "," {
            return true;
        }
    }
    false
}
