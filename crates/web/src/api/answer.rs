//! An answer over HTTP: the JSON body of every surface, and a status.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use serde_json::{Map, Value};
use tenure_core::id::Malformed;
use tenure_core::notice::Pending;
use tenure_core::store::StoreError;
use tenure_core::text;
use tenure_core::token::Scope;
use tenure_service::answer::{Class, Hint, Problem, body};
use tenure_service::{Answer, Failure};

/// What a route answers.
#[derive(Debug, Default)]
pub struct RouteAnswer {
    parts: Map<String, Value>,
    damaged: Option<StoreError>,
}

pub type RouteResult = Result<RouteAnswer, Fault>;

impl RouteAnswer {
    pub fn new(name: &str, part: &impl Serialize) -> Self {
        Self::default().with(name, part)
    }

    #[must_use]
    pub fn with(mut self, name: &str, part: &impl Serialize) -> Self {
        let value = serde_json::to_value(part).unwrap_or(Value::Null);
        self.parts.insert(name.to_owned(), value);
        self
    }

    /// Adds what of a use case's answer is missing because it could not be read.
    #[must_use]
    pub fn told<T>(mut self, answer: &Answer<T>) -> Self {
        self.damaged.clone_from(&answer.damaged);
        self
    }

    pub fn into_body(self) -> Value {
        let mut parts = self.parts;
        if let Some(damaged) = self.damaged {
            let problem = Problem::from(damaged);
            parts.insert("error".into(), Value::Object(problem.error()));
        }
        body(parts, &Pending::default())
    }
}

/// Why a request was not carried out.
#[derive(Debug)]
pub enum Fault {
    /// By us.
    Refusal(Refusal),
    /// By a use case.
    Problem(Box<Problem>),
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Refusal(refusal)
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Problem::from(failure).into()
    }
}

impl From<Malformed> for Fault {
    fn from(error: Malformed) -> Self {
        Problem::from(error).into()
    }
}

impl Fault {
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Refusal(refusal) => refusal.status(),
            Self::Problem(problem) => status_of(problem.class),
        }
    }

    pub fn body(&self) -> Value {
        match self {
            Self::Refusal(refusal) => refusal.problem().body(),
            Self::Problem(problem) => problem.body(),
        }
    }

    pub fn response(&self) -> Response<Body> {
        let mut response = json(self.status(), &self.body());
        // HTTP wants these beside such a status.
        let (name, value) = match self {
            Self::Refusal(Refusal::NoMethod { takes }) => (header::ALLOW, *takes),
            Self::Refusal(Refusal::NoToken | Refusal::BadToken) => {
                (header::WWW_AUTHENTICATE, "Bearer")
            }
            Self::Refusal(_) | Self::Problem(_) => return response,
        };
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
        response
    }
}

/// Every status that a use case's failure can have.
pub const STATUSES: &[(Class, StatusCode)] = &[
    (Class::Refused, StatusCode::CONFLICT),
    (Class::Usage, StatusCode::BAD_REQUEST),
    (Class::Held, StatusCode::CONFLICT),
    (Class::NotFound, StatusCode::NOT_FOUND),
    (Class::Lost, StatusCode::CONFLICT),
    (Class::Invalid, StatusCode::UNPROCESSABLE_ENTITY),
    (Class::TimedOut, StatusCode::GATEWAY_TIMEOUT),
    (Class::Store, StatusCode::SERVICE_UNAVAILABLE),
    (Class::CannotTell, StatusCode::CONFLICT),
    (Class::Internal, StatusCode::INTERNAL_SERVER_ERROR),
];

fn status_of(class: Class) -> StatusCode {
    let found = STATUSES.iter().find(|(one, _)| *one == class);
    found.map_or(StatusCode::INTERNAL_SERVER_ERROR, |(_, status)| *status)
}

/// Why a request was refused before any use case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("this server does not answer for that host")]
    ForeignHost,
    #[error("a page of another site sent this")]
    ForeignOrigin,
    #[error("there is no such path")]
    NoRoute,
    #[error("this path does not take that method")]
    NoMethod {
        /// The one that it takes.
        takes: &'static str,
    },
    #[error("the body must be application/json")]
    NotJson,
    #[error("the body is too large")]
    TooLarge,
    #[error("the body did not arrive in time")]
    TooSlow,
    #[error("the body cannot be read: {0}")]
    BadJson(String),
    #[error("{0}")]
    UnknownField(String),
    #[error("{0}")]
    BadValue(String),
    #[error("the cursor names nothing in this store")]
    BadCursor,
    #[error("a token is needed")]
    NoToken,
    #[error("this token is not valid, or not any more")]
    BadToken,
    #[error("this code is not valid, or not any more")]
    BadCode,
    #[error("this is a stored token, not the login of a browser")]
    NotALogin,
    #[error("this token lacks the scope {}", .0.as_str())]
    ScopeNeeded(Scope),
}

impl Refusal {
    pub fn status(&self) -> StatusCode {
        match self {
            Self::ForeignHost => StatusCode::MISDIRECTED_REQUEST,
            Self::ForeignOrigin | Self::ScopeNeeded(_) => StatusCode::FORBIDDEN,
            Self::NoRoute => StatusCode::NOT_FOUND,
            Self::NoMethod { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::BadJson(_) | Self::UnknownField(_) | Self::BadValue(_) | Self::BadCursor => {
                StatusCode::BAD_REQUEST
            }
            Self::NoToken | Self::BadToken | Self::BadCode => StatusCode::UNAUTHORIZED,
            Self::NotALogin => StatusCode::CONFLICT,
        }
    }

    tenure_service::kinds! {
        Self::ForeignHost => "foreign_host",
        Self::ForeignOrigin => "foreign_origin",
        Self::NoRoute => "no_such_route",
        Self::NoMethod { .. } => "no_such_method",
        Self::NotJson => "not_json",
        Self::TooLarge => "too_large",
        Self::TooSlow => "too_slow",
        Self::BadJson(_) => "bad_json",
        Self::UnknownField(_) => "unknown_field",
        Self::BadValue(_) => "bad_value",
        Self::BadCursor => "bad_cursor",
        Self::NoToken => "no_token",
        Self::BadToken => "bad_token",
        Self::BadCode => "bad_code",
        Self::NotALogin => "not_a_login",
        Self::ScopeNeeded(_) => "scope_needed",
    }

    fn step(&self) -> &'static str {
        match self {
            Self::ForeignHost => "use the address that `tenure serve` printed",
            Self::ForeignOrigin => "send it from the dashboard, or from no browser",
            Self::NoRoute | Self::NoMethod { .. } => "see /api/v1/openapi.json",
            Self::NotJson => "send Content-Type: application/json",
            Self::TooLarge | Self::TooSlow => "send less",
            Self::BadJson(_) | Self::UnknownField(_) | Self::BadValue(_) => {
                "see /api/v1/openapi.json for what it takes"
            }
            Self::BadCursor => "read the list from its beginning",
            Self::NoToken => "send Authorization: Bearer TOKEN",
            Self::BadToken | Self::BadCode => "log in again",
            Self::NotALogin => "revoke it with `tenure token revoke`",
            Self::ScopeNeeded(_) => "use a token that has this scope",
        }
    }

    pub fn problem(&self) -> Problem {
        let hint = Hint::step(self.step());
        let mut problem = Problem::new(Class::Usage, self.kind(), self.to_string(), hint);
        if let Self::ScopeNeeded(scope) = self {
            problem.data.insert("scope".into(), scope.as_str().into());
        }
        problem
    }
}

/// A JSON body. Characters that a terminal or a reader could mistake are escaped.
pub fn json(status: StatusCode, body: &Value) -> Response<Body> {
    let text = text::json(&body.to_string()).into_owned();
    let mut response = Response::new(Body::from(text + "\n"));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
