use tenure_app::location::settings_and_store;

use crate::app::App;
use crate::output::{Cell, Outcome, Output, table};

/// Show every setting, its value and where it was set
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure config
  tenure config --json | jq -r '.config[] | \"\\(.key)=\\(.value) (\\(.origin))\"'")]
pub struct Args {}

pub fn run(_: &Args, _: &App) -> Outcome {
    let (config, _) = settings_and_store()?;
    let rows: Vec<Vec<Cell>> = config
        .listed
        .iter()
        .map(|setting| {
            [setting.key, &setting.value, &setting.origin, setting.about]
                .map(Cell::plain)
                .to_vec()
        })
        .collect();
    let mut text = table(&["SETTING", "VALUE", "FROM", "MEANING"], &rows);
    for ignored in &config.ignored {
        text.line(format!(
            "ignored {} in {}: {}",
            ignored.key, ignored.file, ignored.why
        ));
    }
    for mirror in &config.mirrors {
        let path = mirror.path.as_deref().unwrap_or("the state directory");
        text.line(format!("mirror: {path}, from {}", mirror.origin));
    }
    for repo in &config.repos {
        let trusted = if repo.trusted {
            "trusted"
        } else {
            "not trusted"
        };
        text.line(format!(
            "repository: {} is {trusted}, from {}",
            repo.name, repo.origin
        ));
    }
    for channel in &config.notify {
        let (name, kind) = (&channel.name, channel.kind.as_str());
        text.line(format!("notify: {name} ({kind}), from {}", channel.origin));
    }
    Ok(Output::new("config", &config.listed, text)
        .with("mirrors", &config.mirrors)
        .with("repos", &config.repos)
        .with("channels", &config.notify)
        .with("ignored", &config.ignored))
}
