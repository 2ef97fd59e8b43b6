//! Every route that the OpenAPI document names, with whatever nobody should send.

use serde_json::Value;
use tenure_testkit::Env;

use crate::client::{Answer, Ask};
use crate::{ALL, Server, env, session, token};

/// A route of the document, with names of things that are there.
struct Route {
    method: String,
    path: String,
    /// The scope that it needs; none if it needs no token.
    scope: Option<String>,
    takes_body: bool,
    parameters: Vec<String>,
}

fn routes(server: &Server, handle: &str) -> Vec<Route> {
    let document = Ask::get("/api/v1/openapi.json")
        .send(&server.address)
        .json();
    assert_eq!(document["openapi"], "3.1.0");
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, about) in methods.as_object().unwrap() {
            let security = &about["security"][0]["token"];
            let named = about["parameters"].as_array().into_iter().flatten();
            let in_query = named.filter(|one| one["in"] == "query");
            routes.push(Route {
                method: method.to_ascii_uppercase(),
                path: path
                    .replace("{session}", handle)
                    .replace("{key}", "wp%3A1")
                    .replace("{run}", "r-7777777777")
                    .replace("{mission}", "m"),
                scope: security.as_array().map(|scopes| {
                    let first = scopes.first().and_then(Value::as_str);
                    first.unwrap_or("read").to_owned()
                }),
                takes_body: about.get("requestBody").is_some(),
                parameters: in_query.map(|one| crate::text(&one["name"])).collect(),
            });
        }
    }
    assert!(routes.len() > 25, "{}", routes.len());
    routes
}

/// A server with a session, and tokens.
struct Scene {
    env: Env,
    server: Server,
    routes: Vec<Route>,
    all: String,
    _ann: tenure_testkit::Agent,
}

fn scene() -> Scene {
    let env = env();
    let (ann, handle) = session(&env, "ann");
    ann.tenure(&["claim", "wp:1"]).ok();
    let server = Server::start(&env);
    let all = token(&env, "all", ALL);
    Scene {
        routes: routes(&server, &handle),
        env,
        server,
        all,
        _ann: ann,
    }
}

impl Scene {
    fn ask(&self, route: &Route) -> Ask {
        let ask = Ask::new(&route.method, &route.path).token(&self.all);
        if route.takes_body {
            ask.json("{}")
        } else {
            ask
        }
    }

    #[track_caller]
    fn refused(&self, route: &Route, ask: Ask, expected: (u16, &str)) {
        let answer = ask.send(&self.server.address);
        let said = (answer.status, answer.kind());
        assert_eq!(
            (said.0, said.1.as_str()),
            expected,
            "{} {}",
            route.method,
            route.path
        );
        self.is_safe(&answer);
    }

    /// What every answer has.
    #[track_caller]
    fn is_safe(&self, answer: &Answer) {
        let policy = answer.header("content-security-policy").unwrap_or_default();
        assert!(
            policy.contains("default-src 'self'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("set-cookie"), None);
        assert_eq!(answer.header("access-control-allow-origin"), None);
        assert!(!answer.text.contains(&self.all), "no answer has a token");
    }
}

#[test]
fn another_host_or_none_is_refused_on_every_route() {
    let scene = scene();
    for route in &scene.routes {
        let expected = (421, "foreign_host");
        for host in ["evil.example", "127.0.0.1", "[::1]:7420", "127.0.0.1:1"] {
            let ask = scene.ask(route).header("Host", host);
            scene.refused(route, ask, expected);
        }
        let absolute = Route {
            path: format!("http://evil.example{}", route.path),
            method: route.method.clone(),
            scope: None,
            takes_body: route.takes_body,
            parameters: Vec::new(),
        };
        scene.refused(route, scene.ask(&absolute), expected);
        scene.refused(route, scene.ask(route).hostless(), expected);
    }
    let page = Ask::get("/")
        .header("Host", "evil.example")
        .send(&scene.server.address);
    assert_eq!(page.status, 421);
}

#[test]
fn a_page_of_another_site_posts_and_follows_nothing() {
    let scene = scene();
    let foreign = [
        ("Origin", "null"),
        ("Origin", "http://evil.example"),
        ("Origin", "http://127.0.0.1:1"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ];
    for (name, value) in foreign {
        for route in scene.routes.iter().filter(|route| route.method == "POST") {
            let ask = scene.ask(route).header(name, value);
            scene.refused(route, ask, (403, "foreign_origin"));
        }
        let ask = Ask::get("/api/v1/events")
            .token(&scene.all)
            .header(name, value);
        let answer = ask
            .header("Accept", "text/event-stream")
            .send(&scene.server.address);
        assert_eq!(answer.status, 403, "{name}: {value}");
    }
}

#[test]
fn only_json_is_read_as_a_body_and_nothing_in_it_is_unknown() {
    let scene = scene();
    let deep = "[".repeat(10_000);
    let huge = format!("{{\"reason\": \"{}\"}}", "x".repeat(100_000));
    for route in scene.routes.iter().filter(|route| route.takes_body) {
        let plain = || Ask::new("POST", &route.path).token(&scene.all);
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
        ] {
            let ask = plain().header("Content-Type", kind).body(b"{}");
            scene.refused(route, ask, (415, "not_json"));
        }
        scene.refused(route, plain().body(b"{}"), (415, "not_json"));
        for text in ["", "{", "\u{1b}[2J", &deep] {
            let answer = plain().json(text).send(&scene.server.address);
            assert_eq!(
                answer.status, 400,
                "{} {text:.9}: {}",
                route.path, answer.text
            );
        }
        scene.refused(route, plain().json(&huge), (413, "too_large"));
        scene.refused(
            route,
            plain().json(r#"{"evil": 1}"#),
            (400, "unknown_field"),
        );
        for text in ["[]", "null", "7", r#"{"reason": 7}"#] {
            let answer = plain().json(text).send(&scene.server.address);
            assert_eq!(answer.status, 400, "{} {text}: {}", route.path, answer.text);
        }
    }
    for route in scene
        .routes
        .iter()
        .filter(|route| route.scope.is_some() && !route.takes_body)
    {
        if route.path == "/metrics" || route.path == "/api/v1/me" {
            continue;
        }
        let ask = Ask::get(&format!("{}?evil=1", route.path)).token(&scene.all);
        scene.refused(route, ask, (400, "unknown_field"));
        for name in &route.parameters {
            // Each is read, and no value of it breaks anything.
            for value in [
                "%00",
                "%1B%5D",
                "%E2%80%AE",
                "-1",
                "99999999999999999999999",
                "%3Cb%3E",
                "%FF",
            ] {
                let ask = Ask::get(&format!("{}?{name}={value}", route.path)).token(&scene.all);
                let answer = ask.send(&scene.server.address);
                assert!(
                    answer.status < 500,
                    "{}?{name}={value}: {}",
                    route.path,
                    answer.text
                );
            }
        }
    }
}

#[test]
fn every_route_asks_for_its_token_and_scope() {
    let scene = scene();
    let revoked = token(&scene.env, "gone", ALL);
    scene.env.tenure(&["token", "revoke", "gone"]).ok();
    let none = |route: &Route| {
        let ask = Ask::new(&route.method, &route.path);
        if route.takes_body {
            ask.json("{}")
        } else {
            ask
        }
    };
    for (number, route) in scene.routes.iter().enumerate() {
        let Some(scope) = &route.scope else {
            continue;
        };
        scene.refused(route, none(route), (401, "no_token"));
        let basic = none(route).header("Authorization", "Basic YTpi");
        let twice = none(route).token(&scene.all).token(&scene.all);
        scene.refused(route, twice, (401, "no_token"));
        if number < 3 {
            // Each takes half a second.
            scene.refused(route, basic, (401, "bad_token"));
            scene.refused(
                route,
                none(route).token("tenure.all.0000"),
                (401, "bad_token"),
            );
        }
        scene.refused(route, none(route).token(&revoked), (401, "bad_token"));
        if route.path == "/api/v1/me" || route.path == "/api/v1/logout" {
            continue;
        }
        let others: Vec<&str> = ALL.split(',').filter(|one| one != scope).collect();
        let name = format!("lacks-{number}");
        let lacking = token(&scene.env, &name, &others.join(","));
        scene.refused(route, none(route).token(&lacking), (403, "scope_needed"));
    }
}

#[test]
fn other_methods_and_paths_are_refused() {
    let scene = scene();
    for route in &scene.routes {
        for method in ["PUT", "DELETE", "PATCH", "OPTIONS"] {
            let ask = Ask::new(method, &route.path).token(&scene.all);
            scene.refused(route, ask, (405, "no_such_method"));
        }
    }
    for path in [
        "/api/v1",
        "/api/v2/sessions",
        "/..%2f..%2fetc/passwd",
        "/%00",
        "/index.php",
    ] {
        let answer = Ask::get(path).token(&scene.all).send(&scene.server.address);
        assert_eq!(
            (answer.status, answer.kind().as_str()),
            (404, "no_such_route"),
            "{path}"
        );
    }
}

#[test]
fn names_of_things_that_are_not_there_are_not_found() {
    let scene = scene();
    let odd = [
        "none",
        "%1B%5B2J",
        "%E2%80%AE",
        "%3Cscript%3E",
        "%00",
        "..%2F..",
        "a%20b",
    ];
    for route in &scene.routes {
        for (part, path) in [
            ("sessions", "/api/v1/sessions/"),
            ("runs", "/api/v1/runs/"),
            ("missions", "/api/v1/missions/"),
        ] {
            let Some(rest) = route.path.strip_prefix(path) else {
                continue;
            };
            let act = rest
                .split_once('/')
                .map_or(String::new(), |(_, act)| format!("/{act}"));
            for name in odd {
                let body = if act == "/tell" {
                    r#"{"message": "x"}"#
                } else {
                    r#"{"reason": "x"}"#
                };
                let ask = Ask::new(&route.method, &format!("{path}{name}{act}")).token(&scene.all);
                let ask = if route.takes_body {
                    ask.json(body)
                } else {
                    ask
                };
                let answer = ask.send(&scene.server.address);
                assert!(
                    matches!(answer.status, 400 | 404 | 422),
                    "{part} {name}{act}: {}",
                    answer.text
                );
            }
        }
    }
}

#[test]
fn the_document_describes_what_is_answered() {
    let scene = scene();
    let document = Ask::get("/api/v1/openapi.json")
        .send(&scene.server.address)
        .json();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let about = &methods["get"];
        if !path.starts_with("/api/v1/") || path.contains('{') || about.is_null() {
            continue;
        }
        let shape = &about["responses"]["200"]["content"]["application/json"]["schema"];
        let Some(required) = shape["required"].as_array() else {
            continue;
        };
        let answer = scene.server.list(path, &scene.all);
        for part in required {
            assert!(
                answer.get(crate::text(part)).is_some(),
                "{path} has no {part}"
            );
        }
        for part in answer.as_object().unwrap().keys() {
            assert!(
                shape["properties"].get(part).is_some(),
                "{path} has {part} too"
            );
        }
    }
}

#[test]
fn the_document_lists_the_kinds_of_errors() {
    let Scene {
        server, all, _ann, ..
    } = scene();
    let document = Ask::get("/api/v1/openapi.json")
        .send(&server.address)
        .json();
    let error = &document["components"]["schemas"]["Failure"]["properties"]["error"];
    let listed = &error["properties"]["kind"]["anyOf"][0]["enum"];
    let listed = listed.as_array().unwrap();
    let listed: Vec<&str> = listed.iter().map(|kind| kind.as_str().unwrap()).collect();
    for kind in [
        "over_budget",
        "late",
        "held",
        "store_busy",
        "store_log_lost",
    ] {
        assert!(listed.contains(&kind), "{kind}: {listed:?}");
    }
    for (answer, kind) in [
        (server.get("/api/v1/none", &all), "no_such_route"),
        (server.get("/api/v1/sessions", ""), "bad_token"),
        (
            server.get("/api/v1/sessions/nobody", &all),
            "no_such_session",
        ),
        (server.get("/api/v1/runs/r-7777777777", &all), "no_such_run"),
        (server.get("/api/v1/claims?x=1", &all), "unknown_field"),
    ] {
        assert_eq!(answer.kind(), kind, "{}", answer.text);
        assert!(listed.contains(&kind), "{kind}: {listed:?}");
    }
}

/// What HTTP wants beside these statuses, so that clients that nobody wrote for us understand them.
#[test]
fn a_wrong_method_and_a_missing_token_say_what_is_wanted() {
    let env = env();
    let server = Server::start(&env);
    let address = &server.address;
    let posted = Ask::post("/api/v1/sessions", "{}").send(address);
    assert_eq!((posted.status, posted.header("Allow")), (405, Some("GET")));
    let asked = Ask::get("/api/v1/sessions/ann/tell").send(address);
    assert_eq!((asked.status, asked.header("Allow")), (405, Some("POST")));
    let nobody = Ask::get("/api/v1/sessions").send(address);
    assert_eq!(
        (nobody.status, nobody.header("WWW-Authenticate")),
        (401, Some("Bearer"))
    );
}
