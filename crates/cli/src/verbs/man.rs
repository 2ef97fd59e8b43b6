use std::path::PathBuf;

use clap::Command;
use clap_mangen::Man;
use tenure_service::answer::{Class, Hint};

use crate::app::App;
use crate::lines::Lines;
use crate::output::{Outcome, Shown, Trouble};

/// Print a manual page, or write all of them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure man claim | man -l -
  tenure man --dir ~/.local/share/man/man1")]
pub struct Args {
    /// The verb; none is tenure itself
    #[arg(value_name = "VERB")]
    verb: Option<String>,

    /// Write every page into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    dir: Option<PathBuf>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let root = app.command();
    if let Some(dir) = &args.dir {
        return write_all(dir, &root);
    }
    let command = match &args.verb {
        None => root,
        Some(verb) => named(&root, verb)?,
    };
    let page = page(command)?;
    Ok(Shown::new("man", &page, Lines::own(&page)))
}

fn named(root: &Command, verb: &str) -> Result<Command, Trouble> {
    let found = root
        .get_subcommands()
        .find(|command| command.get_name() == verb);
    match found {
        Some(command) => Ok(command.clone().name(format!("tenure-{verb}"))),
        None => Err(Trouble::new(
            Class::NotFound,
            "not_found",
            format!("there is no verb {verb:?}"),
            Hint::run("help", ["--all"], "to see every verb"),
        )),
    }
}

fn page(command: Command) -> Result<String, Trouble> {
    let mut roff = Vec::new();
    Man::new(command).render(&mut roff).map_err(|error| {
        Trouble::new(
            Class::Internal,
            "internal",
            format!("cannot make the page: {error}"),
            Hint::step("please report it"),
        )
    })?;
    Ok(String::from_utf8_lossy(&roff).into_owned())
}

fn write_all(dir: &std::path::Path, root: &Command) -> Outcome {
    let failed = |error: std::io::Error| {
        Trouble::new(
            Class::Invalid,
            "invalid",
            error.to_string(),
            Hint::step("give --dir a directory that you can write to"),
        )
    };
    fs_err::create_dir_all(dir).map_err(failed)?;
    let mut written = Vec::new();
    let pages = root.get_subcommands().map(|command| {
        command
            .clone()
            .name(format!("tenure-{}", command.get_name()))
    });
    for command in std::iter::once(root.clone()).chain(pages) {
        let path = dir.join(format!("{}.1", command.get_name()));
        fs_err::write(&path, page(command)?).map_err(failed)?;
        written.push(path.display().to_string());
    }
    let mut text = Lines::default();
    written.iter().for_each(|path| text.line(path));
    Ok(Shown::new("man", &written, text))
}
