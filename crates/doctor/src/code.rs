//! The codes of findings, each with its meaning. They stay the same in later versions.

use schemars::JsonSchema;
use serde::Serialize;

macro_rules! codes {
    ($($(#[doc = $meaning:literal])+ $code:ident = $name:literal,)+) => {
        /// What kind of thing is wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[schemars(rename = "FindingCode")]
        pub enum Code {
            $($(#[doc = $meaning])+ $code,)+
        }

        impl Code {
            /// Every code, with its meaning.
            pub const ALL: &'static [(Self, &'static str)] = &[$((Self::$code, concat!($($meaning),+))),+];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)+
                }
            }
        }
    };
}

codes! {
    /// The settings cannot be read.
    SettingsUnreadable = "settings_unreadable",
    /// A project sets what only the user may set.
    SettingIgnored = "setting_ignored",
    /// Others can write a settings file.
    SettingsWritable = "settings_writable",
    /// Others can enter the state directory.
    StateDirOpen = "state_dir_open",
    /// Others can read files of the state directory.
    FileModes = "file_modes",
    /// Another user owns files of the state directory.
    ForeignOwner = "foreign_owner",
    /// The disk of the state directory is almost full.
    DiskFull = "disk_full",
    /// The store does not open.
    StoreUnusable = "store_unusable",
    /// The content of the store is damaged.
    StoreIntegrity = "store_integrity",
    /// The log of the store is long, because a process reads all the time.
    StoreLogLong = "store_log_long",
    /// Callers with the usual settings use another store.
    SecondStore = "second_store",
    /// A running agent has an environment that names another store.
    AgentOtherStore = "agent_other_store",
    /// Hooks could not record events in the last day.
    EventsMissed = "events_missed",
    /// The process of an open session is dead.
    SessionDeadOpen = "session_dead_open",
    /// Rows of the store cannot be read.
    RowsUnreadable = "rows_unreadable",
    /// Two live sessions are in one conversation.
    SessionTwin = "session_twin",
    /// What a dead session started still runs.
    SessionSurvivors = "session_survivors",
    /// A live session holds items and does nothing.
    HolderSilent = "holder_silent",
    /// It is unknown whether a holder is alive.
    HolderUnknown = "holder_unknown",
    /// A session lost a claim and was not told yet.
    ClaimLostUntold = "claim_lost_untold",
    /// Two sessions share a file, a focus or a conversation.
    SessionsCollide = "sessions_collide",
    /// The transcript path of a session was another session's.
    TranscriptForeign = "transcript_foreign",
    /// Lines of a transcript are damaged, or of another conversation.
    TranscriptDamaged = "transcript_damaged",
    /// An agent no longer has a conversation.
    ConversationGone = "conversation_gone",
    /// A mirror cannot be written.
    MirrorFailed = "mirror_failed",
    /// A mirror shows a session that is over.
    MirrorLeft = "mirror_left",
    /// The environment of this session contradicts the process table.
    IdentityWrong = "identity_wrong",
    /// An agent is here and has no hooks.
    HooksMissing = "hooks_missing",
    /// Hooks are incomplete, or run another tenure.
    HooksOutdated = "hooks_outdated",
    /// Hooks of one event run more than once.
    HooksDuplicated = "hooks_duplicated",
    /// Hooks run a program that is gone.
    HooksDead = "hooks_dead",
    /// An agent does not run hooks that it does not trust.
    HooksUntrusted = "hooks_untrusted",
    /// The settings of an agent cannot be read.
    HooksUnreadable = "hooks_unreadable",
    /// Something is wrong in the state directory of OpenClaw.
    OpenclawWrong = "openclaw_wrong",
    /// tenure-server is of another version.
    ProgramBeside = "program_beside",
    /// The store on a server gives no answer.
    ServerAway = "server_away",
    /// The server is a standby, which cannot be written.
    ServerStandby = "server_standby",
    /// The schema of the store is older than this version needs.
    ServerSchema = "server_schema",
    /// A crash of the server can lose what was confirmed.
    ServerUnsafe = "server_unsafe",
    /// The database has another encoding than UTF-8.
    ServerEncoding = "server_encoding",
    /// The role lacks rights on tables of the store.
    ServerGrants = "server_grants",
    /// No keeper runs on this machine.
    KeeperMissing = "keeper_missing",
    /// The keeper of this machine is of another version.
    KeeperVersion = "keeper_version",
    /// The keeper of this machine gets no answer from the store.
    KeeperAway = "keeper_away",
    /// The clocks of this machine and of the store differ.
    ClockApart = "clock_apart",
    /// dispatch.toml has faults.
    DispatchConfig = "dispatch_config",
    /// A wrap of a rule does not start.
    WrapFails = "wrap_fails",
    /// An endpoint refuses every delivery.
    EndpointRefuses = "endpoint_refuses",
    /// A forge does not answer as it should.
    ForgeFailing = "forge_failing",
    /// A job waits for a person.
    JobParked = "job_parked",
    /// The result of a job is not published.
    JobUnpublished = "job_unpublished",
    /// The run of a job is past its timeout and has no runner.
    JobLeft = "job_left",
    /// A check could not be made; the others were.
    CheckFailed = "check_failed",
}
