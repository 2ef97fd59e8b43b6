use tenure_app::mission_token;
use tenure_core::mission::{MissionId, ParticipantId, Role};
use tenure_core::reason::Reason;
use tenure_service::JoinRequest;

use super::shown::warn;
use crate::app::App;
use crate::output::{Outcome, Output};

/// Join a mission, or change your role in it
///
/// The mission becomes this session's active mission. Joining again changes only the role.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure mission join 041-login --role developer
  tenure mission join 041-login --role reviewer --participant 01ARZ3NDEKTSV4RRFFQ69G5FAV")]
pub struct Args {
    /// Mission to join
    #[arg(value_name = "MISSION")]
    mission: String,

    /// Role of this session in it, such as developer or reviewer
    #[arg(long, value_name = "ROLE")]
    role: String,

    /// Participant id (a ULID), if another system assigned one
    #[arg(long, value_name = "ULID")]
    participant: Option<String>,

    /// Reason, logged (required when --session names another session)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let request = JoinRequest {
        mission: MissionId::parse(&args.mission)?,
        role: Role::parse(&args.role)?,
        participant: args
            .participant
            .as_deref()
            .map(ParticipantId::parse)
            .transpose()?,
    };
    let mut context = app.open()?;
    let here = context.here();
    let act_for = app.act_for(args.reason.as_ref());
    let answer = context.service().join_mission(&act_for, &here, &request)?;
    let joined = &answer.value;
    if let Some(before) = &joined.continues {
        let own = &joined.participant.session.id;
        let handed = mission_token::hand_on(context.dir(), before, own, &args.mission);
        if let Err(error) = handed {
            let said = format!("the token of {before} is not this session's: {error}");
            warn(app, &[said]);
        }
    }
    warn(app, &joined.warnings);
    let one = &joined.participant;
    let word = if joined.new {
        "joined"
    } else {
        "is already in"
    };
    let text = format!(
        "{} {word} {} as {} (participant {})",
        one.session.handle, one.mission, one.role, one.participant_id
    );
    Ok(Output::new("participant", one, text)
        .with("joined", &if joined.new { "new" } else { "same" })
        .with("warnings", &joined.warnings)
        .told(&answer))
}
