use tenure_app::settings::kept_store;
use tenure_host::env;
use tenure_keeper::unit;
use tenure_service::answer::{Class, Hint, Problem};

use crate::app::App;
use crate::kept_store::store_lines;
use crate::lines::Lines;
use crate::output::{Outcome, Output, warn};

/// Print a systemd user unit that runs the keeper
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: &Args, _: &App) -> Outcome {
    let program = env::program().map_err(|error| {
        let message = format!("cannot find this program's own path: {error}");
        Problem::new(
            Class::Internal,
            "internal",
            message,
            Hint::step("mount /proc, then run the same command again"),
        )
    })?;
    // The unit names the program that people type; it executes the other one by itself.
    let text = unit(&program.with_file_name("tenure"));
    if let Some(kept) = kept_store::keep(false)? {
        // The unit goes to a file, and a person reads this.
        let mut said = Lines::default();
        store_lines(&mut said, &kept, false);
        warn(said.as_str().trim_end());
    }
    Ok(Output::new("keeper_unit", &text, Lines::own(&text)))
}
