//! Why a text is not JSON, in plain words.

use serde_json::Error;

/// What is wrong.
pub fn fault(error: &Error) -> String {
    let text = error.to_string();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    match &text[..end] {
        _ if error.is_eof() && error.column() == 0 && error.line() == 1 => "it is empty",
        _ if error.is_eof() => "it ends too early",
        "expected value" => "expected a value",
        "expected ident" => "unexpected text",
        other => other,
    }
    .to_owned()
}

/// What is wrong, and where. Most texts have one line, so the first is not named.
pub fn fault_at(error: &Error) -> String {
    let (fault, column) = (fault(error), error.column());
    match error.line() {
        _ if error.is_eof() => fault,
        1 => format!("{fault} at column {column}"),
        line => format!("{fault} at line {line}, column {column}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::fault_at;

    #[test]
    fn a_fault_is_named_with_its_place() {
        for (text, expected) in [
            ("", "it is empty"),
            ("{\"a\": [1", "it ends too early"),
            ("{\n", "it ends too early"),
            ("not JSON", "unexpected text at column 2"),
            ("{\"a\": x}", "expected a value at column 7"),
            ("{\n\"a\" 1}", "expected `:` at line 2, column 5"),
            ("{} {}", "trailing characters at column 4"),
        ] {
            let error = serde_json::from_str::<Value>(text).unwrap_err();
            assert_eq!(fault_at(&error), expected, "{text}");
        }
    }
}
