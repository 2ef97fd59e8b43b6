//! What the TOML reader reports, in the words that people use.
//!
//! Its errors have no kinds, and serde's type names mean nothing to the person who wrote the file, so the message is read.

/// Its message about a key, without the key's name.
pub fn plain(message: &str) -> String {
    let message = message.lines().collect::<Vec<_>>().join(" ");
    let Some((found, expected)) = message.split_once(", expected ") else {
        return message;
    };
    if found.starts_with("unknown field") {
        let names = expected.trim_start_matches("one of ").replace('`', "");
        return format!("there is no such key; expected one of {names}");
    }
    let found = found
        .strip_prefix("invalid type: ")
        .or_else(|| found.strip_prefix("invalid value: "));
    match found {
        Some(found) => format!("expected {}, not {}", kind(expected), value(found)),
        None => message,
    }
}

/// A type, as its name in Rust or serde.
fn kind(name: &str) -> &str {
    match name {
        "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        "a string" | "string" => "a string in quotes",
        "a sequence" => "a list in brackets",
        "a boolean" => "true or false",
        "a map" => "a table",
        other if other.starts_with("struct ") => "a table",
        other => other,
    }
}

/// What was found, as it stands in the file.
fn value(found: &str) -> &str {
    let kinds = ["string ", "integer ", "floating point ", "boolean "];
    match found {
        "sequence" => "a list",
        "map" => "a table",
        _ => kinds
            .iter()
            .find_map(|kind| found.strip_prefix(kind))
            .map_or(found, |value| value.trim_matches('`')),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::plain;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Sample {
        number: Option<u32>,
        share: Option<f64>,
        words: Option<Vec<String>>,
        flag: Option<bool>,
        table: Option<Part>,
    }

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Part {
        text: String,
    }

    #[test]
    fn types_and_values_have_their_usual_names() {
        for (text, expected) in [
            ("number = \"2\"", "expected a whole number, not \"2\""),
            ("number = -1", "expected a whole number, not -1"),
            ("number = 1.5", "expected a whole number, not 1.5"),
            ("share = true", "expected a number, not true"),
            ("words = \"a\"", "expected a list in brackets, not \"a\""),
            ("words = [1]", "expected a string in quotes, not 1"),
            ("flag = 1", "expected true or false, not 1"),
            ("flag = [true]", "expected true or false, not a list"),
            ("table = 1", "expected a table, not 1"),
            (
                "table.text = {}",
                "expected a string in quotes, not a table",
            ),
            (
                "nubmer = 1",
                "there is no such key; expected one of number, share, words, flag, table",
            ),
        ] {
            let error = toml::from_str::<Sample>(text).err().expect("it is wrong");
            assert_eq!(plain(error.message()), expected, "{text}");
        }
    }
}
