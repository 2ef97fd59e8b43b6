//! The body of a provider's refusal, in the shapes of OpenAI, Anthropic and Google.

use serde_json::Value;
use tenure_core::run::failure::ErrorClass;

use super::field::{number, text};

/// Codes of OpenAI that refuse what is in a request's history, where no parameter is named.
const HISTORY_CODES: &[&str] = &[
    "invalid_value",
    "image_too_large",
    "invalid_image",
    "invalid_image_format",
    "invalid_base64_image",
    "string_above_max_length",
];

/// The class of a refusal, from its body.
pub(crate) fn class(body: &str) -> Option<ErrorClass> {
    let body: Value = serde_json::from_str(body).ok()?;
    let error = body.get("error")?;
    if text(error, "/code") == Some("context_length_exceeded") {
        return Some(ErrorClass::Overflow);
    }
    match text(error, "/type").or(text(error, "/status"))? {
        "invalid_request_error" => Some(invalid_request(error)),
        "insufficient_quota" | "rate_limit_error" | "usage_limit_reached" => {
            Some(ErrorClass::Limit)
        }
        "authentication_error" | "permission_error" => Some(ErrorClass::Authentication),
        "overloaded_error" | "server_error" | "api_error" => Some(ErrorClass::Server),
        "INVALID_ARGUMENT" => Some(invalid_argument(error)),
        _ => number(error, "/code").map(ErrorClass::of_status),
    }
}

/// OpenAI names a parameter or a code, Anthropic begins the message with the parameter.
fn invalid_request(error: &Value) -> ErrorClass {
    let message = text(error, "/message").unwrap_or_default();
    if message.starts_with("prompt is too long") {
        return ErrorClass::Overflow;
    }
    let is_history = match text(error, "/param") {
        Some(parameter) => ["input", "messages"]
            .iter()
            .any(|name| parameter.starts_with(name)),
        None => text(error, "/code").map_or(message.starts_with("messages"), |code| {
            HISTORY_CODES.contains(&code)
        }),
    };
    if is_history {
        ErrorClass::History
    } else {
        ErrorClass::Other
    }
}

fn invalid_argument(error: &Value) -> ErrorClass {
    let details = error.get("details").and_then(Value::as_array);
    let has = |reason: &str| {
        let is_it = |detail: &Value| text(detail, "/reason") == Some(reason);
        details.is_some_and(|details| details.iter().any(is_it))
    };
    let message = text(error, "/message").unwrap_or_default();
    if has("API_KEY_INVALID") {
        ErrorClass::Authentication
    } else if message.contains("input token count") && message.contains("exceeds") {
        ErrorClass::Overflow
    } else {
        ErrorClass::History
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_history_is_told_from_a_refusal_of_the_request() {
        let of = |error: &str| class(&format!("{{\"error\":{error}}}"));
        let history = Some(ErrorClass::History);
        let invalid = |rest: &str| of(&format!("{{\"type\":\"invalid_request_error\",{rest}}}"));
        assert_eq!(invalid(r#""code":"invalid_value","param":null"#), history);
        assert_eq!(
            invalid(r#""code":"invalid_value","param":"input[3].content""#),
            history
        );
        assert_eq!(
            invalid(r#""message":"messages.3: blocks must be non-empty""#),
            history
        );
        assert_eq!(
            invalid(r#""message":"max_tokens: too high""#),
            Some(ErrorClass::Other)
        );
        assert_eq!(
            invalid(r#""code":"model_not_found""#),
            Some(ErrorClass::Other)
        );
        assert_eq!(
            invalid(r#""code":"invalid_value","param":"temperature""#),
            Some(ErrorClass::Other)
        );
        assert_eq!(
            invalid(r#""message":"prompt is too long: 210000""#),
            Some(ErrorClass::Overflow)
        );
        assert_eq!(
            of(r#"{"code":503,"status":"UNAVAILABLE"}"#),
            Some(ErrorClass::Server)
        );
        assert_eq!(class("no JSON"), None);
    }
}
