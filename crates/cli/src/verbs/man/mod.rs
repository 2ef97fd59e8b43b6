//! `man`: a manual page for every verb and for the verbs of a verb, from the same grammar as `--help`.

mod exits;

use std::io;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;
use tenure_service::answer::{Class, Hint};

use crate::app::App;
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output};
use crate::usage::every_verb;

/// Print a manual page, or write all of them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure man claim | man -l -
  tenure man mission join | man -l -
  tenure man --dir ~/.local/share/man/man1")]
pub struct Args {
    /// Command, such as claim or mission join [default: tenure itself]
    #[arg(value_name = "COMMAND")]
    verb: Vec<String>,

    /// Write every page to this directory
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    dir: Option<PathBuf>,
}

/// The day of this version, as in CHANGELOG.md: pages of one version are the same wherever they are made.
const DATE: &str = "2026-11-15";

/// One page: its words after `tenure`, and its command.
struct ManPage {
    words: Vec<String>,
    command: Command,
    /// The other pages to read.
    see_also: Vec<String>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let pages = pages(app.command());
    if let Some(dir) = &args.dir {
        return write_all(dir, &pages);
    }
    let Some(page) = pages.iter().find(|page| page.words == args.verb) else {
        let message = format!("unknown command {:?}", args.verb.join(" "));
        return Err(CliError::new(
            Class::NotFound,
            "not_found",
            message,
            every_verb(),
        ));
    };
    let text = page.roff().map_err(|error| unmade(&error))?;
    Ok(Output::new("man", &text, Lines::own(&text)))
}

/// Every page, tenure's own first.
fn pages(mut root: Command) -> Vec<ManPage> {
    root.build();
    let mut pages = Vec::new();
    collect(&root, &[], &[], &mut pages);
    pages
}

fn collect(command: &Command, words: &[String], beside: &[String], pages: &mut Vec<ManPage>) {
    let below: Vec<String> = command
        .get_subcommands()
        .map(|verb| name_of(&extended(words, verb)))
        .collect();
    let parents = (0..words.len()).map(|count| name_of(&words[..count]));
    // Verbs of a verb go together; tenure's own are listed on its page.
    let siblings = beside.iter().filter(|_| words.len() > 1);
    let see_also = parents.chain(below.iter().cloned());
    let own = name_of(words);
    let see_also = see_also
        .chain(siblings.filter(|name| **name != own).cloned())
        .collect();
    pages.push(ManPage {
        words: words.to_vec(),
        command: command.clone(),
        see_also,
    });
    for verb in command.get_subcommands() {
        collect(verb, &extended(words, verb), &below, pages);
    }
}

fn extended(words: &[String], verb: &Command) -> Vec<String> {
    let mut longer = words.to_vec();
    longer.push(verb.get_name().to_owned());
    longer
}

/// `tenure-mission-join`.
fn name_of(words: &[String]) -> String {
    let mut name = String::from("tenure");
    for word in words {
        name.push('-');
        name.push_str(word);
    }
    name
}

impl ManPage {
    fn name(&self) -> String {
        name_of(&self.words)
    }

    fn roff(&self) -> io::Result<String> {
        let name = self.name();
        let command = self
            .command
            .clone()
            .name(name.clone())
            .display_name(name.clone())
            .subcommand_help_heading("COMMANDS")
            .mut_subcommands(|verb| verb.hide(false));
        let examples = command.get_after_help().map(ToString::to_string);
        let has_verbs = command.has_subcommands();
        let has_arguments = command.get_arguments().any(|arg| !arg.is_hide_set());
        let man = Man::new(command)
            .title(name.to_uppercase())
            .date(DATE)
            .source(concat!("tenure ", env!("CARGO_PKG_VERSION")))
            .manual("Tenure Manual");
        let mut roff = Vec::new();
        man.render_title(&mut roff)?;
        man.render_name_section(&mut roff)?;
        man.render_synopsis_section(&mut roff)?;
        man.render_description_section(&mut roff)?;
        if has_arguments {
            man.render_options_section(&mut roff)?;
        }
        if has_verbs {
            man.render_subcommands_section(&mut roff)?;
        }
        let mut text = String::from_utf8_lossy(&roff).into_owned();
        if let Some(examples) = examples {
            let shown = examples.strip_prefix("Examples:\n").unwrap_or(&examples);
            text.push_str(".SH EXAMPLES\n.nf\n");
            text.push_str(&escaped(shown.trim_end()));
            text.push_str("\n.fi\n");
        }
        text.push_str(".SH \"EXIT STATUS\"\n");
        for (Exit(code), meaning) in exits::of(&self.words) {
            text.push_str(&format!(".TP\n\\fB{code}\\fR\n{}\n", escaped(meaning)));
        }
        text.push_str(".SH \"SEE ALSO\"\n");
        let see: Vec<String> = self.see_also.iter().map(|name| reference(name)).collect();
        text.push_str(&see.join(",\n"));
        text.push('\n');
        Ok(text)
    }
}

/// `tenure-ps(1)`, in bold as manuals have it.
fn reference(name: &str) -> String {
    format!("\\fB{}\\fR(1)", escaped(name))
}

/// Text that roff shows as it is.
fn escaped(text: &str) -> String {
    let line = |line: &str| {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        if line.starts_with(['.', '\'']) {
            format!("\\&{line}")
        } else {
            line
        }
    };
    let lines: Vec<String> = text.lines().map(line).collect();
    lines.join("\n")
}

fn unmade(error: &io::Error) -> CliError {
    let message = format!("cannot make the page: {error}");
    let hint = Hint::step("please report this message");
    CliError::new(Class::Internal, "internal", message, hint)
}

fn write_all(dir: &Path, pages: &[ManPage]) -> Outcome {
    let failed = |error: io::Error| {
        let message = format!("cannot write the pages: {error}");
        let hint = Hint::step("pass a directory to --dir that you can write to");
        CliError::new(Class::Invalid, "invalid", message, hint)
    };
    fs_err::create_dir_all(dir).map_err(failed)?;
    let mut written = Vec::new();
    for page in pages {
        let path = dir.join(format!("{}.1", page.name()));
        let text = page.roff().map_err(|error| unmade(&error))?;
        fs_err::write(&path, text).map_err(failed)?;
        written.push(path.display().to_string());
    }
    let mut text = Lines::default();
    written.iter().for_each(|path| text.line(path));
    Ok(Output::new("man", &written, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The date of the newest version in the list of changes, if it has one yet.
    #[test]
    fn pages_have_the_date_of_the_newest_version() {
        let log = include_str!("../../../../../CHANGELOG.md");
        let heading = log.lines().find(|line| line.starts_with("## "));
        let heading = heading.expect("a version");
        let is_date = |word: &&str| word.len() == 10 && word.starts_with("20");
        let mut words = heading.split([' ', '(', ')', ',']);
        if let Some(date) = words.find(is_date) {
            assert_eq!(date, DATE, "{heading}");
        } else {
            assert!(heading.contains("Unreleased"), "{heading}");
        }
    }

    #[test]
    fn what_roff_would_read_is_escaped() {
        assert_eq!(escaped(".x\n'y\na-b \\n"), "\\&.x\n\\&'y\na\\-b \\en");
    }
}
