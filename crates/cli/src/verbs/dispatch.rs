//! The dispatcher: `tenure dispatch [init|check|ping|explain|replay|status|stop]`. Here is only its grammar, for help,
//! completion and manual pages; the program beside this one runs it.

use std::net::SocketAddr;
use std::path::PathBuf;

use tenure_core::reason::Reason;
use tenure_core::time::Span;

use crate::app::{App, Changes};
use crate::beside;
use crate::output::Outcome;

/// Run the jobs of the queue, and receive webhooks that queue them, until stopped
///
/// dispatch.toml names forges (Forgejo, Gitea, GitHub, GitLab), repositories and rules. A rule says which events,
/// by whom, start which agent with which skill. The first rule that matches an event wins. The file is beside
/// your config.toml unless --config names another; without a file, only the queue is worked.
///
/// A job's run does not depend on the dispatcher: if that is stopped or killed, its runs continue, and the next
/// dispatcher finds them.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  tenure dispatch init
  tenure dispatch check
  tenure dispatch
  tenure dispatch ping
  tenure dispatch explain delivery.json --event issues
  tenure dispatch replay 12
  tenure dispatch status
  tenure dispatch stop
  tenure dispatch --listen 127.0.0.1:7421 --json | jq -r .event

SIGTERM, Ctrl-C and `tenure dispatch stop` stop the dispatcher and leave its runs alone. SIGHUP makes it read
dispatch.toml again, unless it was started in a terminal; a file with a fault is refused, and the old rules stay."
)]
pub struct Args {
    #[command(flatten)]
    pub work: WorkArgs,

    #[command(subcommand)]
    pub act: Option<Act>,
}

#[derive(Debug, clap::Subcommand)]
pub enum Act {
    #[command(display_order = 1)]
    Init(InitArgs),
    #[command(display_order = 2)]
    Check(CheckArgs),
    #[command(display_order = 3)]
    Ping(PingArgs),
    #[command(display_order = 4)]
    Explain(ExplainArgs),
    #[command(display_order = 5)]
    Replay(ReplayArgs),
    #[command(display_order = 6)]
    Status(StatusArgs),
    #[command(display_order = 7)]
    Stop(StopArgs),
}

impl Args {
    pub fn changes(&self) -> Changes {
        match &self.act {
            None | Some(Act::Replay(_)) => Changes::Anything,
            Some(Act::Stop(_)) => Changes::Known,
            Some(_) => Changes::Nothing,
        }
    }
}

/// How the program that has the dispatcher runs its verbs.
pub type RunDispatch = fn(&Args, &App) -> Outcome;

/// In the program that has none of it.
pub fn run(_: &Args, _: &App) -> Outcome {
    beside::execute()
}

/// What a dispatcher is started with.
#[derive(Debug, clap::Args)]
pub struct WorkArgs {
    #[command(flatten)]
    pub file: SettingsFile,

    /// Listen at this address [default: the one in dispatch.toml, else 127.0.0.1:7421]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,

    /// Run at most N jobs at once [default: the number in dispatch.toml, else 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub concurrency: Option<u32>,
}

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
pub struct InitArgs {
    /// Directory to write to [default: that of config.toml]
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// Who may start a run: a login on the forge; with --token-file its id is written
    #[arg(long = "author", value_name = "LOGIN")]
    pub authors: Vec<String>,

    /// Kind of the forge: forgejo, gitea, github or gitlab
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,

    /// The forge's URL, where it is asked
    #[arg(long, value_name = "URL", requires = "token_file")]
    pub url: Option<String>,

    /// File with a token of the account that tenure writes as
    #[arg(long, value_name = "FILE", requires = "url")]
    pub token_file: Option<PathBuf>,
}

/// Check dispatch.toml: reports every fault with its line and key, exit 6
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure dispatch check
  tenure dispatch check --config /srv/dispatch.toml
  tenure dispatch check --json | jq -r '.error.dispatch_faults[] | \"\\(.line): \\(.why)\"'")]
pub struct CheckArgs {
    #[command(flatten)]
    pub file: SettingsFile,

    /// Do not ask the forges which accounts the tokens belong to
    #[arg(long)]
    pub offline: bool,
}

/// Send a signed test delivery to the dispatcher of this machine; it starts nothing
///
/// Shows whether the dispatcher listens and knows the secret that you enter in the forge. Exits with 0 if the
/// delivery was accepted, 1 if the dispatcher refused it, 4 if nothing listens, 6 if another program does, 7 if
/// nothing answered in time. The address is that of the dispatcher that runs with this dispatch.toml, else the one in
/// the file. It does not show whether the forge can reach this machine: for that, use the forge's own test button.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure dispatch ping
  tenure dispatch ping home --wait 10s
  tenure dispatch ping --listen 127.0.0.1:7421 --json | jq -r .pinged.verdict")]
pub struct PingArgs {
    /// Forge to send it as [default: the only one]
    #[arg(value_name = "FORGE")]
    pub forge: Option<String>,

    /// Send it to this address
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,

    /// Wait this long for a dispatcher that is about to listen, such as 10s
    #[arg(long, value_name = "TIME")]
    pub wait: Option<Span>,

    #[command(flatten)]
    pub settings: SettingsFile,
}

/// Explain what a delivery would do: which rule matches, or why each does not
///
/// FILE holds the JSON body of a delivery, as the forge shows it among its recent deliveries; or its headers, an
/// empty line and the body. DELIVERY is the number of one that arrived here (`tenure queue deliveries`). Nothing is
/// started, the signature is not checked, and the forge is not asked. Exits with 0 if something would be done, 1 if
/// nothing would, 6 if the delivery or dispatch.toml cannot be read.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure dispatch explain 12
  tenure dispatch explain delivery.json --event issues
  tenure dispatch explain delivery.txt --forge home
  tenure dispatch explain delivery.json --event issue_comment --json | jq '.explained.rules'")]
pub struct ExplainArgs {
    #[command(flatten)]
    pub source: DeliveryArgs,
}

/// Do again what a delivery asks for, as if the forge had just sent it
///
/// FILE holds the JSON body of a delivery, or its headers, an empty line and the body. DELIVERY is the number of one
/// that arrived here (`tenure queue deliveries`). The signature is not checked, and no listener is needed. Everything
/// else is as for a delivery that arrives now: the forge is asked for permissions if it has a token, the rules as they
/// are now decide, and the delivery is stored under a new number. A dispatcher runs the job.
///
/// A delivery that was done already is done again: you are told what came of it the first time. A closed issue is
/// closed again, a reset resets again. Exits with 0 if something was done, 1 if nothing was.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure dispatch replay 12
  tenure dispatch replay delivery.json --event issues
  tenure dispatch replay delivery.txt --forge home --json | jq -r '.replayed.jobs[].id'

See first what it would do: tenure dispatch explain 12")]
pub struct ReplayArgs {
    #[command(flatten)]
    pub source: DeliveryArgs,
}

/// Show which dispatchers run, what arrives at them, and what waits
///
/// For each dispatcher of this state directory: where it listens, the last delivery of each forge, how many were
/// refused and why, and forges that do not answer. For the queue: how many jobs wait and run, which are parked and why,
/// and when the next one is tried again. The counts begin anew when a dispatcher starts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure dispatch status
  tenure dispatch status --json | jq .dispatch_status.queue")]
pub struct StatusArgs {}

/// Stop the dispatcher; its runs continue unless --runs is given
///
/// The dispatcher of this state directory gets SIGTERM: it takes no further jobs and no further webhooks, and ends.
/// Runs go on, and the next dispatcher finds them. With --runs, the runs that the queue started are stopped as with
/// `tenure runs stop`, after the time that --drain gives them to finish. Each ends as `stopped`; `tenure runs resume`
/// continues it in its conversation. Jobs that wait stay in the queue. Runs that people started are left alone.
/// Exits with 4 if no dispatcher is running, unless --runs is given.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure dispatch stop
  tenure dispatch stop --runs
  tenure dispatch stop --runs --drain 10m --reason 'the machine reboots'")]
pub struct StopArgs {
    /// Also stop the runs that the queue started
    #[arg(long)]
    pub runs: bool,

    /// Let runs finish for this long first, such as 10m
    #[arg(long, value_name = "TIME", requires = "runs")]
    pub drain: Option<Span>,

    /// Reason, logged with the runs
    #[arg(long, value_name = "TEXT", requires = "runs")]
    pub reason: Option<Reason>,
}

/// The delivery that is meant.
#[derive(Debug, clap::Args)]
pub struct DeliveryArgs {
    /// File with the delivery, or its number (`tenure queue deliveries`)
    #[arg(value_name = "FILE|DELIVERY")]
    pub what: String,

    /// Forge that sent the file [default: the only one]
    #[arg(long, value_name = "NAME")]
    pub forge: Option<String>,

    /// Event that the file's header names, such as issues or 'X-GitHub-Event: issues'
    #[arg(long, value_name = "HEADER")]
    pub event: Option<String>,

    #[command(flatten)]
    pub settings: SettingsFile,
}

/// The file of settings.
#[derive(Debug, clap::Args)]
pub struct SettingsFile {
    /// File of settings [default: dispatch.toml beside config.toml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}
