//! What stands in the sources as a text and is said to nobody.

/// Sources whose texts are compared with what others say, or put into it, and said to nobody.
pub(super) const READ_NOT_SAID: &[&str] = &[
    "agents/src/codex.rs",
    "agents/src/gemini.rs",
    "agents/src/run/body.rs",
    "agents/src/run/claude.rs",
    "agents/src/run/codex.rs",
    "agents/src/run/gemini.rs",
    "agents/src/run/opencode.rs",
    "agents/src/run/qwen.rs",
];

/// What is said in these sources after all.
pub(super) const SAID_THERE: &[&str] = &[
    "asks again in {delay}, attempt {attempt}",
    "the turn failed",
    "the turn was aborted",
];

/// Texts that are not messages: why, and which, with the source of each.
pub(super) const NOT_MESSAGES: &[(&str, &[(&str, &str)])] = &[
    (
        "compared with what another program says",
        &[
            ("app/src/dispatch/document.rs", "missing field `"),
            ("app/src/settings/agents.rs", "missing field "),
            ("app/src/toml_words.rs", "floating point "),
            ("app/src/toml_words.rs", "invalid type: "),
            ("app/src/toml_words.rs", "invalid value: "),
            ("cli/src/usage.rs", "\n\nFor more information"),
            (
                "cli/src/usage.rs",
                "the following required arguments were not provided:",
            ),
            ("cli/src/usage.rs", "invalid digit found in string"),
            ("cli/src/usage.rs", "cannot parse integer from empty string"),
            ("cli/src/usage.rs", "number too large to fit in target type"),
            ("core/src/json_fault.rs", "expected value"),
            ("core/src/json_fault.rs", "expected ident"),
            ("forges/src/api/client.rs", "rate limit"),
            ("store/src/postgres/error.rs", "statement pooling"),
            ("store/src/postgres/error.rs", "password missing"),
            ("store/src/postgres/error.rs", "server does not support TLS"),
            (
                "store/src/postgres/error.rs",
                "database does not allow writes",
            ),
        ],
    ),
    (
        "compared with what an earlier version wrote",
        &[(
            "agents/src/install/sandbox.rs",
            "# So that tenure works from the sandbox; `tenure uninstall codex` removes it.",
        )],
    ),
    (
        "part of a protocol",
        &[
            (
                "app/src/dispatch/ping.rs",
                "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n",
            ),
            (
                "host/src/window.rs",
                "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGVudXJlLXRlbnVyZS10ZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
            ),
            ("app/src/run/worktree/recover.rs", "gitdir: {}\n"),
            ("app/src/credential.rs", "credential.{server}.helper"),
            ("store/src/postgres/event.rs", "{about} UNION {}"),
            ("store/src/sqlite/event.rs", "{about} UNION {by}"),
            ("store/src/postgres/transfer.rs", "double precision"),
        ],
    ),
    (
        "kept in the store or in memory, and shown by no command",
        &[
            (
                "app/src/dispatch/reply.rs",
                "another comment already says this",
            ),
            ("forges/src/proof.rs", "no secret is configured here"),
            (
                "store/src/postgres/migrations.rs",
                "tenure migrate {schema}",
            ),
        ],
    ),
    (
        "said only if tenure itself is wrong, as the words of a panic are",
        &[
            ("agents/src/install/hooks_file.rs", "the entry is not there"),
            (
                "agents/src/install/sandbox.rs",
                "{TABLE} is written in a form that tenure cannot edit",
            ),
            ("agents/src/payload.rs", "any JSON"),
        ],
    ),
    (
        "for systems other than Linux, where the tests do not run",
        &[("host/src/system/other.rs", "not supported on this system")],
    ),
];
