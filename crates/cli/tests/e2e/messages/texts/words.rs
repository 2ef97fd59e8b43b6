//! What is a sentence, and what of it is constant.

/// Words by which a statement for a database is known.
const SQL: &[&str] = &[
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "WHERE",
    "FROM",
    "VALUES",
    "CREATE",
    "ALTER",
    "DROP",
    "SET",
    "ORDER",
    "LIMIT",
    "JOIN",
    "AND",
    "PRAGMA",
    "BEGIN",
    "LOCK",
    "ISOLATION",
    "INDEXED",
    "CONFLICT",
    "SHOW",
    "CLOSE",
    "GRANT",
    "REVOKE",
    "EXISTS",
    "NULL",
    "EXPLAIN",
    "COPY",
    "FETCH",
    "RETURNING",
    "CASE",
    "DECLARE",
    "ROLLBACK",
    "CHECK",
    "INTO",
    "DESC",
    "SAVEPOINT",
    "KEY",
];

/// The parts of a text between its values.
pub(super) fn parts(text: &str) -> Vec<String> {
    let (mut parts, mut part, mut rest) = (Vec::new(), String::new(), text);
    while let Some(c) = rest.chars().next() {
        let twice = rest.starts_with("{{") || rest.starts_with("}}");
        let value = rest
            .find('}')
            .filter(|end| c == '{' && is_value(&rest[1..*end]));
        match value {
            _ if twice => {
                part.push(c);
                rest = &rest[2..];
            }
            Some(end) => {
                parts.push(std::mem::take(&mut part));
                rest = &rest[end + 1..];
            }
            None => {
                part.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    parts.push(part);
    parts
}

/// Whether this is between the braces of a value: its name, and how it is shown.
fn is_value(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or_default();
    name.chars()
        .all(|c| c.is_alphanumeric() || "_.".contains(c))
        && !text.contains(char::is_whitespace)
}

pub(super) fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether it has words in a row, or a word beside a value.
pub(super) fn is_sentence(text: &str) -> bool {
    let is_plain = |c: char| c.is_alphabetic() || ",.;:'`()".contains(c);
    let is_word = |word: &&str| {
        word.chars().filter(|c| c.is_alphabetic()).count() > 1 && word.chars().all(is_plain)
    };
    if text.contains(|c: char| c.is_control() && !c.is_whitespace()) {
        return false;
    }
    let parts = parts(text);
    let has_value = parts.len() > 1 && parts.iter().any(|part| part.contains(' '));
    let text = parts.join(" 0 ");
    let words: Vec<&str> = text.split_whitespace().filter(is_word).collect();
    let is_long = |word: &&str| word.chars().filter(|c| c.is_alphabetic()).count() > 3;
    words.len() > 1 || has_value && words.iter().any(is_long)
}

/// Whether it is a statement for a database, or a list of columns.
pub(super) fn is_statement(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_sql = |word: &&str| SQL.contains(&word.trim_matches(|c: char| !c.is_alphabetic()));
    let listed = words.iter().filter(|word| word.ends_with(',')).count();
    words.iter().any(is_sql) || listed > 2 && listed + 1 == words.len()
}
