//! What each agent needs in its home to run offline without asking questions.

use std::path::Path;

use serde_json::Value;

use super::rows::KEY;

/// Variables for all agents, so that an agent nested in another finds the model too.
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
        // It installs a package for plugins if there are any; here that fails at once, and it
        // continues.
        ("NPM_CONFIG_REGISTRY", url.to_owned()),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
    ]
}

/// The files of an ordinary user's home.
///
/// Login shells find the programs on the world's PATH, because Codex runs its commands in one and
/// the machine's own profile may set PATH again. Git never prompts, because Codex makes it look for
/// plugins on the network.
pub(super) fn write_user(home: &Path, bin: &Path) {
    let line = format!("export PATH='{}':\"$PATH\"\n", bin.display());
    save_text(&home.join(".profile"), &line);
    let git = "[user]\n\tname = Test\n\temail = test@example.invalid\n[protocol]\n\tallow = never\n\
               [protocol \"file\"]\n\tallow = always\n";
    save_text(&home.join(".gitconfig"), git);
}

/// Writes JSON with indentation.
pub(super) fn save(path: &Path, value: &Value) {
    let text = serde_json::to_string_pretty(value).expect("a value can be written as JSON");
    save_text(path, &format!("{text}\n"));
}

/// Writes a file and creates its directories.
pub(super) fn save_text(path: &Path, text: &str) {
    let dir = path.parent().expect("a file lies in a directory");
    std::fs::create_dir_all(dir)
        .and_then(|()| std::fs::write(path, text))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
