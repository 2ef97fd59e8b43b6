use serde_json::json;
use tenure_cli::verbs::dispatch::CheckArgs;
use tenure_dispatch::{Config, check_tokens, check_wraps};

use super::settings_file::load;
use tenure_cli::app::App;
use tenure_cli::lines::Lines;
use tenure_cli::output::{Outcome, Output, count};

pub fn run(args: &CheckArgs, _: &App) -> Outcome {
    let mut checked = load(&args.file)?;
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
