//! Missions: one tool for what a session does in shared work.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tenure_app::mission_token;
use tenure_app::open::{Context, Purpose};
use tenure_core::mission::change::MissionChange;
use tenure_core::mission::{MissionId, Role};
use tenure_service::answer::Problem;
use tenure_service::{ActFor, ChangeRequest, JoinRequest};

use super::{Arguments, Effect, Spec, malformed};
use crate::mcp::call::{self, ToolCall};
use crate::mcp::reply::{ToolAnswer, ToolResult};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mission {
    /// What to do; status shows who does what
    act: MissionAct,
    /// The mission; by default the active one
    #[serde(default)]
    mission: Option<String>,
    /// With join: your role, such as developer. With focus: wp:ID, step:ID or none. With drive: active or inactive
    #[serde(default)]
    value: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum MissionAct {
    Status,
    List,
    Join,
    Leave,
    Focus,
    Drive,
}

impl Arguments for Mission {
    const SPEC: Spec = Spec {
        name: "mission",
        title: "Take part in shared work: join a mission, set your focus, see who does what",
        description: "For work that several sessions share: join a mission in a role, say what you focus on and whether \
             you drive it, see the others and collisions. Not for claiming items: use claim. Not needed for work that \
             you do alone.",
        effect: Effect::Adds,
        is_repeatable: true,
    };

    fn run(self, call: &ToolCall) -> ToolResult {
        let mission = self.mission.as_deref().map(MissionId::parse).transpose()?;
        let purpose = match self.act {
            MissionAct::Status | MissionAct::List => Purpose::Read,
            MissionAct::Join | MissionAct::Leave | MissionAct::Focus | MissionAct::Drive => {
                Purpose::Change
            }
        };
        let mut context = call.open(purpose)?;
        let said = match self.act {
            MissionAct::Status => status(&mut context, mission.as_ref()),
            MissionAct::List => list(&mut context),
            MissionAct::Join => {
                let role = Role::parse(self.value()?)?;
                let mission = mission.ok_or_else(|| malformed("mission", "mission is missing"))?;
                join(&mut context, mission, role)
            }
            MissionAct::Leave => leave(&mut context, self.mission.as_deref()),
            MissionAct::Focus => change(&mut context, mission, "focus", self.value()?),
            MissionAct::Drive => change(&mut context, mission, "drive", self.value()?),
        }?;
        if purpose == Purpose::Change {
            call::finish(&mut context);
        }
        Ok(said)
    }
}

impl Mission {
    fn value(&self) -> Result<&str, Problem> {
        let given = self.value.as_deref();
        given.ok_or_else(|| malformed("mission", "value is missing"))
    }
}

fn status(context: &mut Context, mission: Option<&MissionId>) -> ToolResult {
    let here = context.here();
    let answer = context
        .service()
        .roster(&ActFor::default(), &here, mission)?;
    let found = &answer.value;
    let line = format!(
        "{}: {} participants, {} live, {} driving",
        found.mission.id, found.mission.participants, found.mission.live, found.mission.driving
    );
    let warnings: Vec<String> = found
        .faults
        .iter()
        .chain(&found.pointer.passed_over)
        .map(ToString::to_string)
        .collect();
    Ok(ToolAnswer::new(line, "mission", &found.mission)
        .with("participants", &found.participants)
        .with("pointer", &found.pointer)
        .with("faults", &found.faults)
        .with("warnings", &warnings)
        .told(&answer))
}

fn list(context: &mut Context) -> ToolResult {
    let here = context.here();
    let answer = context
        .service()
        .missions(&ActFor::default(), &here, false)?;
    let ids: Vec<&str> = answer.value.iter().map(|one| one.id.as_str()).collect();
    let line = if ids.is_empty() {
        "no missions".to_owned()
    } else {
        format!("missions: {}", ids.join(", "))
    };
    Ok(ToolAnswer::new(line, "missions", &answer.value).told(&answer))
}

fn join(context: &mut Context, mission: MissionId, role: Role) -> ToolResult {
    let here = context.here();
    let request = JoinRequest {
        mission,
        role,
        participant: None,
    };
    let answer = context
        .service()
        .join_mission(&ActFor::default(), &here, &request)?;
    let joined = &answer.value;
    let one = &joined.participant;
    let mut warnings = joined.warnings.clone();
    if let Some(before) = &joined.continues {
        let handed = mission_token::hand_on(context.dir(), before, &one.session.id, &one.mission);
        if let Err(error) = handed {
            warnings.push(format!(
                "the token of {before} is not this session's: {error}"
            ));
        }
    }
    let word = if joined.new {
        "joined"
    } else {
        "is already in"
    };
    let line = format!(
        "{} {word} {} as {}",
        one.session.handle, one.mission, one.role
    );
    Ok(ToolAnswer::new(line, "participant", one)
        .with("joined", &if joined.new { "new" } else { "same" })
        .with("warnings", &warnings)
        .told(&answer))
}

fn leave(context: &mut Context, mission: Option<&str>) -> ToolResult {
    let here = context.here();
    let answer = context
        .service()
        .leave_mission(&ActFor::default(), &here, mission)?;
    let left = &answer.value;
    let mut line = format!("left {}", left.mission);
    // Only a valid mission has a token; the name of another may lead out of the directory.
    if MissionId::parse(&left.mission).is_ok()
        && let Err(error) = mission_token::remove(context.dir(), &left.session, &left.mission)
    {
        line.push_str(&format!("; its token could not be removed: {error}"));
    }
    let part = json!({"mission": left.mission, "pointer_cleared": left.cleared});
    Ok(ToolAnswer::new(line, "left", &part).told(&answer))
}

fn change(
    context: &mut Context,
    mission: Option<MissionId>,
    field: &str,
    value: &str,
) -> ToolResult {
    let here = context.here();
    let request = ChangeRequest {
        mission,
        change: MissionChange::named(field, value)?,
        strict: false,
    };
    let answer = context
        .service()
        .change_participant(&ActFor::default(), &here, &request)?;
    let changed = &answer.value;
    let passed = changed.pointer.passed_over.iter().map(ToString::to_string);
    let warnings: Vec<String> = changed.warnings.iter().cloned().chain(passed).collect();
    let one = &changed.participant;
    let focus = one.focus.as_deref().unwrap_or("none");
    let mut line = format!(
        "{} in {}: focus {focus}, drive {}",
        one.session.handle, one.mission, one.drive
    );
    for warning in &warnings {
        line.push_str(&format!("; warning: {warning}"));
    }
    Ok(ToolAnswer::new(line, "participant", one)
        .with("pointer", &changed.pointer)
        .with("warnings", &warnings)
        .told(&answer))
}
