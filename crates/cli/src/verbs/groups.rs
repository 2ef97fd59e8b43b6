//! What people come for.

/// Verbs by the job that people come for; `help --all` and the docs show them so.
pub const GROUPS: &[(&str, &[&str])] = &[
    (
        "See",
        &[
            "ps", "status", "who", "whoami", "show", "alive", "wait", "log",
        ],
    ),
    (
        "Work on an item",
        &[
            "claim", "release", "renew", "guard", "handoff", "takeover", "claims", "why",
        ],
    ),
    ("Lock and write", &["lock", "locks", "transcript"]),
    (
        "Be a session",
        &[
            "register",
            "adopt",
            "resume",
            "end",
            "tell",
            "meta",
            "verify",
            "hook",
            "statusline",
        ],
    ),
    ("Work together", &["mission"]),
    (
        "Set up",
        &[
            "install",
            "uninstall",
            "config",
            "schema",
            "completions",
            "man",
            "demo",
            "help",
        ],
    ),
];
