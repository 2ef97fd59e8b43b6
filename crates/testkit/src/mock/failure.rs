//! How a provider fails, in each dialect: the failures that the agents were seen to distinguish.
//!
//! Headers ask clients not to try again, or at once, where the real provider would let them try for minutes. Only
//! an overload lets them try for as long as they do.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::state::ModelApi;

/// How long a limit with a stated end lasts, in seconds.
const LIMIT_LASTS: u64 = 7200;

/// A failure that a prompt requests with `MOCK:fail NAME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failing {
    /// Status 500.
    Server,
    /// Too many requests for the provider, which asks for patience.
    Overloaded,
    /// A usage limit without a time.
    Limit,
    /// A usage limit with its end.
    LimitUntil,
    /// The history is refused.
    History,
    /// The stream ends before any text.
    Cut,
    /// The stream ends after some text.
    CutText,
}

impl Failing {
    pub(super) fn named(name: &str) -> Option<Failing> {
        Some(match name {
            "server" => Failing::Server,
            "overloaded" => Failing::Overloaded,
            "limit" => Failing::Limit,
            "limit-until" => Failing::LimitUntil,
            "history" => Failing::History,
            "cut" => Failing::Cut,
            "cut-text" => Failing::CutText,
            _ => return None,
        })
    }

    /// The response, if the failure is not a cut stream.
    pub(super) fn refusal(self, api: ModelApi) -> Option<ErrorResponse> {
        let until = now() + LIMIT_LASTS;
        match (self, api) {
            (Failing::Cut | Failing::CutText, _) => None,
            (_, ModelApi::Anthropic) => Some(self.anthropic(until)),
            (_, ModelApi::Gemini) => Some(self.gemini()),
            (_, ModelApi::Responses) => Some(self.responses(until)),
            (_, ModelApi::Chat | ModelApi::Other) => Some(self.chat()),
        }
    }

    fn anthropic(self, until: u64) -> ErrorResponse {
        let of = |code: u16, kind: &str, message: &str, headers: &[(&'static str, String)]| {
            ErrorResponse {
                code,
                headers: headers.to_vec(),
                body: json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_mock"}),
            }
        };
        let limited =
            "This request would exceed your account's rate limit. Please try again later.";
        let once = ("x-should-retry", "false".to_owned());
        match self {
            Failing::Limit => of(
                429,
                "rate_limit_error",
                limited,
                &[("retry-after", "3600".to_owned())],
            ),
            Failing::LimitUntil => of(
                429,
                "rate_limit_error",
                limited,
                &[
                    once,
                    ("retry-after", LIMIT_LASTS.to_string()),
                    ("anthropic-ratelimit-unified-status", "rejected".to_owned()),
                    ("anthropic-ratelimit-unified-reset", until.to_string()),
                    (
                        "anthropic-ratelimit-unified-representative-claim",
                        "five_hour".to_owned(),
                    ),
                    (
                        "anthropic-ratelimit-unified-5h-status",
                        "rejected".to_owned(),
                    ),
                    ("anthropic-ratelimit-unified-5h-reset", until.to_string()),
                    (
                        "anthropic-ratelimit-unified-5h-utilization",
                        "1.0".to_owned(),
                    ),
                    (
                        "anthropic-ratelimit-unified-overage-status",
                        "rejected".to_owned(),
                    ),
                    (
                        "anthropic-ratelimit-unified-overage-disabled-reason",
                        "org_level_disabled".to_owned(),
                    ),
                ],
            ),
            Failing::History => of(
                400,
                "invalid_request_error",
                "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_x. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
                &[],
            ),
            Failing::Overloaded => of(529, "overloaded_error", "Overloaded", &[]),
            _ => of(500, "api_error", "Internal server error", &[once]),
        }
    }

    fn responses(self, until: u64) -> ErrorResponse {
        let of = |code: u16, error: Value| ErrorResponse {
            code,
            headers: Vec::new(),
            body: json!({"error": error}),
        };
        match self {
            Failing::Limit => of(
                429,
                json!({
                    "type": "insufficient_quota", "code": "insufficient_quota", "param": null,
                    "message": "You exceeded your current quota, please check your plan and billing details.",
                }),
            ),
            Failing::LimitUntil => ErrorResponse {
                headers: vec![
                    ("x-codex-primary-used-percent", "100".to_owned()),
                    ("x-codex-primary-window-minutes", "300".to_owned()),
                    ("x-codex-primary-reset-at", until.to_string()),
                ],
                ..of(
                    429,
                    json!({
                        "type": "usage_limit_reached", "message": "The usage limit has been reached",
                        "plan_type": "pro", "resets_at": until, "resets_in_seconds": LIMIT_LASTS,
                    }),
                )
            },
            Failing::History => of(
                400,
                json!({
                    "type": "invalid_request_error", "code": "invalid_value", "param": "input[3].content",
                    "message": "Invalid value: text content must be non-empty",
                }),
            ),
            Failing::Overloaded => of(
                503,
                json!({"type": "server_error", "code": "slow_down", "message": "Overloaded"}),
            ),
            _ => of(
                500,
                json!({"type": "server_error", "code": "server_error", "message": "The server had an error"}),
            ),
        }
    }

    fn chat(self) -> ErrorResponse {
        let of = |code: u16, error: Value| ErrorResponse {
            code,
            headers: vec![
                ("retry-after-ms", "20".to_owned()),
                ("x-should-retry", "false".to_owned()),
            ],
            body: json!({"error": error}),
        };
        match self {
            Failing::Limit => of(
                429,
                json!({
                    "type": "requests", "code": "rate_limit_exceeded", "message": "Rate limit reached for mock-model.",
                }),
            ),
            // A second request before that time is refused again.
            Failing::LimitUntil => ErrorResponse {
                headers: vec![("retry-after", LIMIT_LASTS.to_string())],
                ..of(
                    429,
                    json!({
                        "type": "requests", "code": "rate_limit_exceeded",
                        "message": "Rate limit reached for mock-model. Please try again in 7200s.",
                    }),
                )
            },
            Failing::History => of(
                400,
                json!({
                    "type": "invalid_request_error", "code": "invalid_value", "param": "messages[3].content",
                    "message": "Invalid value: text content must be non-empty",
                }),
            ),
            Failing::Overloaded => ErrorResponse {
                headers: Vec::new(),
                ..of(
                    503,
                    json!({"type": "server_error", "code": "slow_down", "message": "Overloaded"}),
                )
            },
            _ => of(
                500,
                json!({"type": "server_error", "code": "server_error", "message": "The server had an error"}),
            ),
        }
    }

    fn gemini(self) -> ErrorResponse {
        let of = |code: u16, status: &str, message: &str, details: Value| ErrorResponse {
            code,
            headers: Vec::new(),
            body: json!({"error": {"code": code, "message": message, "status": status, "details": details}}),
        };
        let quota = |per: &str, delay: &str| {
            json!([
                {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{
                    "quotaMetric": "generativelanguage.googleapis.com/generate_requests",
                    "quotaId": format!("GenerateRequestsPer{per}PerProjectPerModel"), "quotaValue": "10",
                }]},
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
            ])
        };
        match self {
            Failing::Limit => of(
                429,
                "RESOURCE_EXHAUSTED",
                "You exceeded your current quota, please check your plan and billing details.",
                quota("Day", "7200s"),
            ),
            Failing::LimitUntil => of(
                429,
                "RESOURCE_EXHAUSTED",
                "You exceeded your current quota. Please retry in 3600s.",
                quota("Minute", "3600s"),
            ),
            Failing::History => of(
                400,
                "INVALID_ARGUMENT",
                "Unable to submit request because it must have a text parameter.",
                json!([]),
            ),
            Failing::Overloaded => of(
                503,
                "UNAVAILABLE",
                "The model is overloaded. Please try again later.",
                json!([]),
            ),
            _ => of(
                500,
                "INTERNAL",
                "An internal error has occurred.",
                json!([]),
            ),
        }
    }
}

/// A response that is not a model's answer.
pub(super) struct ErrorResponse {
    pub(super) code: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Value,
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
