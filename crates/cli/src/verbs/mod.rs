//! The verbs, one file each.

mod adopt;
mod alive;
mod claim;
mod claims;
mod command;
mod completions;
mod config;
mod demo;
mod end;
mod groups;
mod guard;
mod handoff;
mod help;
pub mod hook;
mod install;
mod lock;
mod locks;
mod log;
mod man;
mod meta;
mod mission;
mod ps;
mod register;
mod release;
mod renew;
mod resume;
mod schema;
mod show;
mod status;
mod statusline;
mod takeover;
mod tell;
mod transcript;
mod uninstall;
mod verify;
mod wait;
mod who;
mod whoami;
mod why;

use clap::Subcommand;

use crate::app::App;
use crate::output::{Outcome, Shown};

/// Everything that tenure does.
#[derive(Debug, Subcommand)]
pub enum Verb {
    #[command(visible_alias = "sessions")]
    Ps(ps::Args),
    Status(status::Args),
    Claim(claim::Args),
    Release(release::Args),
    Why(why::Args),
    Takeover(takeover::Args),
    Log(log::Args),
    Resume(resume::Args),
    Lock(lock::Args),
    Install(install::Args),
    #[command(hide = true)]
    Uninstall(uninstall::Args),
    #[command(hide = true)]
    Locks(locks::Args),
    #[command(hide = true)]
    Transcript(transcript::Args),
    #[command(hide = true)]
    Register(register::Args),
    #[command(hide = true)]
    End(end::Args),
    #[command(hide = true)]
    Whoami(whoami::Args),
    #[command(hide = true)]
    Who(who::Args),
    #[command(hide = true)]
    Show(show::Args),
    #[command(hide = true)]
    Alive(alive::Args),
    #[command(hide = true)]
    Wait(wait::Args),
    #[command(hide = true)]
    Adopt(adopt::Args),
    #[command(hide = true)]
    Tell(tell::Args),
    #[command(hide = true)]
    Meta(meta::Args),
    #[command(hide = true)]
    Verify(verify::Args),
    #[command(hide = true)]
    Mission(mission::Args),
    #[command(hide = true)]
    Renew(renew::Args),
    #[command(hide = true)]
    Handoff(handoff::Args),
    #[command(hide = true)]
    Guard(guard::Args),
    #[command(hide = true)]
    Claims(claims::Args),
    #[command(hide = true)]
    Hook(hook::Args),
    #[command(hide = true)]
    Statusline(statusline::Args),
    #[command(hide = true)]
    Config(config::Args),
    #[command(hide = true)]
    Schema(schema::Args),
    #[command(hide = true)]
    Completions(completions::Args),
    #[command(hide = true)]
    Man(man::Args),
    Demo(demo::Args),
    #[command(hide = true)]
    Help(help::Args),
}

impl Verb {
    /// Whether it changes anything where it succeeds.
    pub fn changes(&self) -> bool {
        match self {
            Verb::Claim(_)
            | Verb::Release(_)
            | Verb::Takeover(_)
            | Verb::Register(_)
            | Verb::End(_)
            | Verb::Adopt(_)
            | Verb::Tell(_)
            | Verb::Renew(_)
            | Verb::Handoff(_) => true,
            Verb::Install(args) => args.changes(),
            Verb::Uninstall(args) => args.changes(),
            Verb::Meta(args) => args.changes(),
            Verb::Mission(args) => args.changes(),
            Verb::Transcript(args) => args.changes(),
            _ => false,
        }
    }
}

/// What tenure starts itself as; not for people, and no part of the command line that they see.
#[derive(Debug, clap::Parser)]
#[command(name = "tenure")]
pub enum Internal {
    #[command(name = "__demo-worker")]
    DemoWorker(demo::WorkerArgs),
    #[command(name = "__exec")]
    Exec(command::ExecArgs),
}

/// Runs what tenure started itself as.
pub fn run_internal(verb: &Internal) -> Outcome {
    match verb {
        Internal::DemoWorker(args) => demo::run_worker(args),
        Internal::Exec(args) => command::exec(args),
    }
}

pub fn run(verb: &Verb, app: &App) -> Outcome {
    match verb {
        Verb::Ps(args) => ps::run(args, app),
        Verb::Status(args) => status::run(args, app),
        Verb::Claim(args) => claim::run(args, app),
        Verb::Release(args) => release::run(args, app),
        Verb::Why(args) => why::run(args, app),
        Verb::Takeover(args) => takeover::run(args, app),
        Verb::Lock(args) => lock::run(args, app),
        Verb::Install(args) => install::run(args, app),
        Verb::Uninstall(args) => uninstall::run(args, app),
        Verb::Locks(args) => locks::run(args, app),
        Verb::Transcript(args) => transcript::run(args, app),
        Verb::Resume(args) => resume::run(args, app),
        Verb::Adopt(args) => adopt::run(args, app),
        Verb::Log(args) => log::run(args, app),
        Verb::Register(args) => register::run(args, app),
        Verb::End(args) => end::run(args, app),
        Verb::Whoami(args) => whoami::run(args, app),
        Verb::Who(args) => who::run(args, app),
        Verb::Show(args) => show::run(args, app),
        Verb::Alive(args) => alive::run(args, app),
        Verb::Wait(args) => wait::run(args, app),
        Verb::Tell(args) => tell::run(args, app),
        Verb::Meta(args) => meta::run(args, app),
        Verb::Verify(args) => verify::run(args, app),
        Verb::Mission(args) => mission::run(args, app),
        Verb::Renew(args) => renew::run(args, app),
        Verb::Handoff(args) => handoff::run(args, app),
        Verb::Guard(args) => guard::run(args, app),
        Verb::Claims(args) => claims::run(args, app),
        Verb::Hook(args) => Ok(Shown::silent(hook::run_parsed(args))),
        Verb::Statusline(args) => statusline::run(args, app),
        Verb::Config(args) => config::run(args, app),
        Verb::Schema(args) => schema::run(args, app),
        Verb::Completions(args) => completions::run(args, app),
        Verb::Man(args) => man::run(args, app),
        Verb::Demo(args) => demo::run(args, app),
        Verb::Help(args) => help::run(args, app),
    }
}
