//! What each agent must find in its home to run offline and ask nobody anything.

use std::path::Path;

use serde_json::{Value, json};

use super::kind::Real;

/// The key that every agent is given; Claude Code asks before it uses one that it does not know.
const KEY: &str = "dummy-key-of-the-mock-model";

/// Variables for all agents, so that one that is nested in another finds the model too.
pub(super) fn variables(home: &Path, url: &str) -> Vec<(&'static str, String)> {
    let within = |part: &str| home.join(part).to_string_lossy().into_owned();
    vec![
        ("TENURE_HOME", within(".tenure")),
        ("XDG_CONFIG_HOME", within(".config")),
        ("XDG_DATA_HOME", within(".local/share")),
        ("XDG_STATE_HOME", within(".local/state")),
        ("XDG_CACHE_HOME", within(".cache")),
        ("ANTHROPIC_BASE_URL", url.to_owned()),
        ("ANTHROPIC_API_KEY", KEY.to_owned()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ("DISABLE_TELEMETRY", "1".to_owned()),
        ("CODEX_HOME", within(".codex")),
        ("MOCK_KEY", KEY.to_owned()),
        ("GEMINI_API_KEY", KEY.to_owned()),
        ("GOOGLE_GEMINI_BASE_URL", url.to_owned()),
        ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
        // It installs a package for plugins when there are any; here that fails at once, and it goes on.
        ("NPM_CONFIG_REGISTRY", url.to_owned()),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
    ]
}

/// What any user has at home.
///
/// Login shells find what the world's PATH has: Codex runs its commands in one, and the machine's own
/// profile may set PATH anew. Git asks nobody: Codex has it look for plugins on the network.
pub(super) fn write_user(home: &Path, bin: &Path) {
    let line = format!("export PATH='{}':\"$PATH\"\n", bin.display());
    save_text(&home.join(".profile"), &line);
    let git = "[user]\n\tname = Test\n\temail = test@example.invalid\n[protocol]\n\tallow = never\n\
               [protocol \"file\"]\n\tallow = always\n";
    save_text(&home.join(".gitconfig"), git);
}

/// Sets up the home for this agent, with these directories as projects that it trusts.
pub(super) fn write(kind: Real, home: &Path, projects: &[&Path], url: &str) {
    match kind {
        Real::Claude | Real::ClaudeOld => claude(home, projects),
        Real::Codex => codex(home, projects, url),
        Real::Gemini => save(&home.join(".gemini/settings.json"), &gemini()),
        Real::Opencode => save(&home.join(".config/opencode/opencode.json"), &opencode(url)),
    }
}

fn claude(home: &Path, projects: &[&Path]) {
    let trusted = |dir: &&Path| {
        let entry = json!({"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true});
        (dir.to_string_lossy().into_owned(), entry)
    };
    let trusted: serde_json::Map<String, Value> = projects.iter().map(trusted).collect();
    let end = &KEY[KEY.len().saturating_sub(20)..];
    let state = json!({
        "hasCompletedOnboarding": true,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [end], "rejected": []},
        "projects": trusted,
    });
    save(&home.join(".claude.json"), &state);
    let allow = ["Bash", "Read", "Write", "Edit", "Agent", "Task"];
    let settings = json!({"permissions": {"allow": allow}});
    save(&home.join(".claude/settings.json"), &settings);
}

/// Below /tmp everything would be writable in the sandbox, the state directory too; not so for a user.
fn codex(home: &Path, projects: &[&Path], url: &str) {
    let mut text = format!(
        r#"# The user's own comment.
model = "mock-model"
model_provider = "mock"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "MOCK_KEY"
request_max_retries = 1
stream_max_retries = 1

[sandbox_workspace_write]
exclude_slash_tmp = true
exclude_tmpdir_env_var = true
"#
    );
    for dir in projects {
        let entry = format!(
            "\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n",
            dir.display()
        );
        text.push_str(&entry);
    }
    save_text(&home.join(".codex/config.toml"), &text);
}

fn gemini() -> Value {
    json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
        "hooksConfig": {"enabled": true},
    })
}

fn opencode(url: &str) -> Value {
    let model = json!({
        "name": "mock", "tool_call": true, "limit": {"context": 100_000, "output": 8_000},
    });
    json!({
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": false,
        "share": "disabled",
        "model": "mock/mock-model",
        "small_model": "mock/mock-model",
        "permission": {"bash": "allow", "edit": "allow"},
        "provider": {"mock": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "mock",
            "options": {"baseURL": format!("{url}/v1"), "apiKey": KEY},
            "models": {"mock-model": model},
        }},
    })
}

/// Writes JSON as a person would have it.
pub(super) fn save(path: &Path, value: &Value) {
    let text = serde_json::to_string_pretty(value).expect("a value can be written as JSON");
    save_text(path, &format!("{text}\n"));
}

/// Writes a file and the directories above it.
pub(super) fn save_text(path: &Path, text: &str) {
    let dir = path.parent().expect("a file lies in a directory");
    std::fs::create_dir_all(dir)
        .and_then(|()| std::fs::write(path, text))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
