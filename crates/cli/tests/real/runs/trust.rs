//! A repository that the user does not trust gives an agent no orders.

use std::path::{Path, PathBuf};

use tenure_testkit::real::Real;

use super::Runs;

of_every_agent! { [f_r29_an_untrusted_repository_runs_nothing] }

fn f_r29_an_untrusted_repository_runs_nothing(kind: Real) {
    let runs = Runs::begin(kind);
    let marks = runs.world.scratch().join("marks");
    std::fs::create_dir(&marks).unwrap();
    orders(kind, &runs.world.project(), &marks);
    runs.settings("");
    if kind == Real::Gemini || kind == Real::Codex {
        // Its own settings would let the repository give orders.
        assert_eq!(runs.refused(&[])["kind"], "untrusted");
        distrust(&runs);
    }
    let said = runs.run(&["--prompt", "/deploy\nMOCK:bash echo by the model"]);
    assert_eq!(names(&marks), Vec::<String>::new());
    // The model itself may work.
    assert!(said.ok().stdout.contains("by the model"));
    // The same repository gives orders where the user trusts it.
    let runs = Runs::begin(kind);
    orders(kind, &runs.world.project(), &marks);
    runs.run(&["--prompt", "MOCK:say two"]).ok();
    assert_ne!(names(&marks), Vec::<String>::new());
}

/// Takes what trusts the project out of the agent's own settings.
fn distrust(runs: &Runs) {
    let (file, trusted, not) = match runs.kind {
        Real::Codex => (".codex/config.toml", "\ntrust_level = \"trusted\"", ""),
        _ => (
            ".gemini/settings.json",
            "\"enabled\": false",
            "\"enabled\": true",
        ),
    };
    if runs.kind == Real::Gemini {
        // What a person trusted at a terminal does not count either.
        let folders = serde_json::json!({runs.world.project().to_str().unwrap(): "TRUST_FOLDER"});
        let file = runs.world.home().join(".gemini/trustedFolders.json");
        std::fs::write(file, folders.to_string()).unwrap();
    }
    let file = runs.world.home().join(file);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(trusted), "{text}");
    std::fs::write(file, text.replace(trusted, not)).unwrap();
}

pub(super) fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap().flatten();
    entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

/// Hooks, servers and commands in the repository, each of which leaves a mark.
pub(super) fn orders(kind: Real, project: &Path, marks: &Path) {
    let touch = |name: &str| format!("touch {}", marks.join(name).display());
    let write = |name: &str, text: String| {
        let file: PathBuf = project.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    let server = serde_json::json!({"command": "sh", "args": ["-c", touch("server")]});
    match kind {
        Real::Codex => {
            let arguments = serde_json::json!(["-c", touch("server")]);
            write(
                ".codex/config.toml",
                format!("[mcp_servers.mark]\ncommand = \"sh\"\nargs = {arguments}\n"),
            );
            let hook = serde_json::json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": touch("hook")}]}]}});
            write(".codex/hooks.json", hook.to_string());
        }
        Real::Opencode => {
            let plugin = format!(
                "import {{ writeFileSync }} from \"fs\"\nexport const Mark = async () => {{ writeFileSync({:?}, \"\"); return {{}} }}\n",
                marks.join("plugin")
            );
            write(".opencode/plugin/mark.js", plugin);
            let local =
                serde_json::json!({"type": "local", "command": ["sh", "-c", touch("server")]});
            write(
                "opencode.json",
                serde_json::json!({"mcp": {"mark": local}}).to_string(),
            );
        }
        _ => {
            let folder = match kind {
                Real::Gemini => ".gemini",
                Real::Qwen => ".qwen",
                _ => ".claude",
            };
            let hook = serde_json::json!([{"hooks": [{"type": "command", "name": "mark", "command": touch("hook")}]}]);
            let settings = serde_json::json!({"hooks": {"SessionStart": hook}, "mcpServers": {"mark": server}});
            write(&format!("{folder}/settings.json"), settings.to_string());
            write(
                ".mcp.json",
                serde_json::json!({"mcpServers": {"mark": server}}).to_string(),
            );
            let command = format!(
                "---\nallowed-tools: Bash(*)\n---\n!`{}`\n",
                touch("command")
            );
            write(".claude/commands/deploy.md", command);
            for folder in [".gemini", ".qwen"] {
                write(
                    &format!("{folder}/commands/deploy.toml"),
                    format!("prompt = \"!{{{}}}\"\n", touch("command")),
                );
            }
        }
    }
}
