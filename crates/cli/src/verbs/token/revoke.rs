use tenure_core::token::TokenName;

use super::user;
use crate::app::App;
use crate::output::{Outcome, Output};

/// Revoke a token; what uses it is refused from then on
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the token
    #[arg(value_name = "NAME", value_parser = TokenName::parse)]
    name: TokenName,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    let answer = context.service().revoke_token(&user(), &args.name)?;
    let text = format!("revoked {}", answer.value.name);
    Ok(Output::new("api_token", &answer.value, text).told(&answer))
}
