//! The hand-written SQLite as a program: one verb a run, or a loop beside others.
//!
//! `bench-bare DATABASE same|lean HEIGHT SESSION PID BOOT PRIVATE NAMESPACE HOST VERB [KEY [UNTIL]]`

use std::path::PathBuf;
use std::process::ExitCode;

use tenure_bench::Failed;
use tenure_bench::bare::{Bare, Manner, Who};
use tenure_bench::worker::{WorkLimit, contend};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "this is how a program complains")]
            {
                eprintln!("bench-bare: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failed> {
    let mut args = std::env::args().skip(1);
    let mut next = |what: &str| args.next().ok_or_else(|| format!("{what} is missing"));
    let database = PathBuf::from(next("the database")?);
    let manner = match next("the manner")?.as_str() {
        "same" => Manner::Same,
        "lean" => Manner::Lean,
        other => return Err(format!("{other} is no manner").into()),
    };
    let height = next("the height")?.parse()?;
    let who = Who::parse(&mut args)?;
    let verb = args.next().ok_or("the verb is missing")?;
    let key = args.next().unwrap_or_default();
    let mut bare = Bare::open(&database, who, manner, height)?;
    match verb.as_str() {
        "whoami" => bare.whoami(),
        "guard" => bare.guard(&key),
        "renew" => bare.be_durable().and_then(|()| bare.renew()),
        "claim" => {
            if bare.be_durable().and_then(|()| bare.claim(&key))? {
                Ok(())
            } else {
                Err("it is held".into())
            }
        }
        "release" => bare.be_durable().and_then(|()| bare.release(&key)),
        "contend" => {
            let until = WorkLimit::parse(&args.next().ok_or("until when is missing")?)?;
            bare.be_durable()?;
            contend(&mut bare, &key, until)
        }
        other => Err(format!("{other} is no verb").into()),
    }
}
