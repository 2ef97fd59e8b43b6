use std::path::PathBuf;

use tenure_app::dispatch::init::{Known, Written, init};

use crate::app::App;
use crate::lines::Lines;
use crate::output::{Outcome, Output};

/// Write a first dispatch.toml with a secret, and print what to enter in the forge
///
/// Run it in a clone of the repository to have that filled in. If the file exists, the repository is added to it.
/// Nothing else that exists is changed. It also writes the skills implement, review, address-review and merge.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure dispatch init
  tenure dispatch init /srv/tenure
  tenure dispatch init --author alice --url https://git.example.org --token-file home.token")]
pub struct Args {
    /// Directory to write to [default: that of config.toml]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Who may start a run: a login on the forge; with --token-file its id is written
    #[arg(long = "author", value_name = "LOGIN")]
    authors: Vec<String>,

    /// Kind of the forge: forgejo, gitea, github or gitlab
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,

    /// The forge's URL, where it is asked
    #[arg(long, value_name = "URL", requires = "token_file")]
    url: Option<String>,

    /// File with a token of the account that tenure writes as
    #[arg(long, value_name = "FILE", requires = "url")]
    token_file: Option<PathBuf>,
}

pub fn run(args: &Args, _: &App) -> Outcome {
    let known = Known {
        kind: args.kind.clone(),
        authors: args.authors.clone(),
        api: args.url.clone().zip(args.token_file.clone()),
    };
    let written = init(args.dir.as_deref(), &known)?;
    Ok(Output::new("dispatch_init", &written, text(&written)))
}

fn text(written: &Written) -> Lines {
    let mut text = Lines::default();
    if let Some(added) = &written.added {
        text.line(format!("added {added} to {}", written.file.display()));
        text.line(
            "Its rules are those without repo. Create a webhook in the forge, as for the others.",
        );
        let file = tenure_core::text::shell(&written.file.display().to_string());
        text.line(format!("Then run `tenure dispatch check --config {file}`."));
        return text;
    }
    text.line(format!("wrote {}", written.file.display()));
    text.line(format!(
        "wrote {} (mode 0600)",
        written.secret_file.display()
    ));
    for skill in &written.skills {
        text.line(format!("wrote {}", skill.display()));
    }
    text.line("");
    text.line("Fill in what is empty there. Then create a webhook in the forge:");
    text.line(format!("  URL: http(s)://YOUR-HOST{}", written.endpoint));
    text.line(format!(
        "  Secret: the content of {}",
        written.secret_file.display()
    ));
    for forge in written.forges {
        text.line(format!("  {}:", forge.kind));
        for step in forge.setup {
            text.line(format!("    {step}"));
        }
    }
    text.line("");
    let file = tenure_core::text::shell(&written.file.display().to_string());
    text.line(format!("Then run `tenure dispatch check --config {file}`."));
    text.line("Start `tenure dispatch`, and send it a test delivery with `tenure dispatch ping`.");
    text
}
