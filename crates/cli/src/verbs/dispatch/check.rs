use serde_json::json;
use tenure_app::dispatch::{Config, check_tokens, check_wraps};

use super::settings_file::SettingsFile;
use crate::app::App;
use crate::lines::Lines;
use crate::output::{Outcome, Output, count};

/// Check dispatch.toml: reports every fault with its line and key, exit 6
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure dispatch check
  tenure dispatch check --config /srv/dispatch.toml
  tenure dispatch check --json | jq -r '.error.dispatch_faults[] | \"\\(.line): \\(.why)\"'")]
pub struct Args {
    #[command(flatten)]
    file: SettingsFile,

    /// Do not ask the forges which accounts the tokens belong to
    #[arg(long)]
    offline: bool,
}

pub fn run(args: &Args, _: &App) -> Outcome {
    let mut checked = args.file.load()?;
    if !args.offline {
        check_tokens(&mut checked)?;
    }
    check_wraps(&mut checked)?;
    let config = &checked.config;
    let mut text = Lines::default();
    for note in &checked.notes {
        text.line(format!("note: {note}"));
    }
    let counted = [
        count(config.forges.len() as u64, "forge"),
        count(config.rules.rules.len() as u64, "rule"),
    ];
    let repos = match config.repos.len() {
        1 => "1 repository".to_owned(),
        more => format!("{more} repositories"),
    };
    text.line(format!(
        "{} has no faults ({}, {repos}, {})",
        config.file.display(),
        counted[0],
        counted[1]
    ));
    for forge in &config.forges {
        text.line(format!(
            "forge {} ({}): webhooks at /hooks/{}",
            forge.name, forge.row.kind, forge.name
        ));
    }
    Ok(Output::new(
        "dispatch_config",
        &view(config, &checked.notes),
        text,
    ))
}

fn view(config: &Config, notes: &[String]) -> serde_json::Value {
    let forges: Vec<_> = config
        .forges
        .iter()
        .map(|forge| {
            json!({
                "name": forge.name,
                "kind": forge.row.kind,
                "endpoint": format!("/hooks/{}", forge.name),
                "url": forge.url,
                "own_account": forge.own_account,
            })
        })
        .collect();
    let repos: Vec<&str> = config.repos.iter().map(|repo| repo.name.as_str()).collect();
    let rules: Vec<&str> = config
        .rules
        .rules
        .iter()
        .map(|rule| rule.name.as_str())
        .collect();
    json!({
        "file": config.file,
        "listen": config.listen.to_string(),
        "forges": forges,
        "repos": repos,
        "rules": rules,
        "notes": notes,
    })
}
