use tenure_core::token::{Scope, TokenName};
use tenure_host::digest::sha256;
use tenure_host::random;
use tenure_service::NewToken;
use tenure_service::answer::{Class, Hint};

use super::{scopes, user};
use crate::app::App;
use crate::output::{CliError, Outcome, Output, warn};

/// Make a token and print it once
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the person or program that uses it
    #[arg(value_name = "NAME", value_parser = TokenName::parse)]
    name: TokenName,

    /// What it allows, with commas between them
    #[arg(long, value_name = "SCOPES", value_delimiter = ',', default_value = "read", value_parser = Scope::parse)]
    scope: Vec<Scope>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    app.check_before_making(|_| Ok(()))?;
    let mut context = app.open()?;
    let secret = random::secret().map_err(|error| no_random(&error))?;
    let token = args.name.with_secret(&secret);
    let new = NewToken {
        name: args.name.clone(),
        hash: sha256(token.as_bytes()),
        scopes: args.scope.iter().copied().collect(),
    };
    let answer = context.service().make_token(&user(), &new)?;
    if !app.style.json && !app.style.quiet {
        let scopes = scopes(&answer.value);
        warn(format!(
            "note: token {} ({scopes}); it is shown only now",
            args.name
        ));
    }
    Ok(Output::new("api_token", &answer.value, token.as_str())
        .with("secret", &token)
        .told(&answer))
}

fn no_random(error: &std::io::Error) -> CliError {
    let message = format!("cannot make a token: {error}");
    CliError::new(
        Class::Internal,
        "internal",
        message,
        Hint::step("run it again"),
    )
}
