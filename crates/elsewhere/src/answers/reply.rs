//! What a person is shown of open questions, and answering one.

use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use tenure_agents::{AskedKind, Misfit, PersonsAnswer};
use tenure_app::open::Context;
use tenure_core::id::QuestionId;
use tenure_core::text;
use tenure_core::time::Timestamp;
use tenure_host::clock;
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::view::SessionView;

use crate::answers::answerer::Answerer;
use crate::answers::files::{Closing, QuestionFile, QuestionFiles, Step};

const OWN_WINDOW: &str = "answer in the agent's own window";
/// How long a hook may take to send an answer.
const SENDING: Duration = Duration::from_secs(3);
/// How many characters of the question are logged.
const MAX_RECORDED: usize = 500;

/// A question that can be answered from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QuestionView {
    pub id: String,
    /// The session's handle.
    pub session: String,
    /// `permission` (allow or deny) or `question` (a text for each, or deny).
    pub kind: &'static str,
    pub tool: String,
    /// All that it asks, line by line.
    pub shown: Vec<String>,
    /// The questions, if it asks for texts.
    pub questions: Vec<QuestionPart>,
    /// Where the agent works.
    pub dir: String,
    pub opened_at: Timestamp,
    /// Until when it can be answered from elsewhere.
    pub until: Timestamp,
}

/// One of the questions that are asked together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QuestionPart {
    pub question: String,
    /// What the agent offers; another text is an answer too.
    pub options: Vec<String>,
}

/// What somebody answers to which question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerRequest {
    /// A session's handle, id, or a unique part of either.
    pub session: String,
    pub id: QuestionId,
    pub answer: PersonsAnswer,
}

/// An answer that the agent has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SentAnswer {
    pub question: QuestionView,
    /// `allow`, `deny` or `answer`.
    pub answer: &'static str,
    /// Who answered, and where.
    pub by: String,
}

impl QuestionView {
    fn of(id: &QuestionId, question: QuestionFile, handle: &str) -> Self {
        let (kind, questions) = match question.kind {
            AskedKind::Permission => ("permission", Vec::new()),
            AskedKind::Questions(all) => ("question", all),
        };
        let line = |said: String| text::line(&said).into_owned();
        let part = |one: tenure_agents::AskedQuestion| QuestionPart {
            question: line(one.question),
            options: one.options.into_iter().map(line).collect(),
        };
        Self {
            id: id.to_string(),
            session: handle.to_owned(),
            kind,
            tool: line(question.tool),
            // Another program may have written the file.
            shown: question.shown.into_iter().map(line).collect(),
            questions: questions.into_iter().map(part).collect(),
            dir: line(question.dir),
            opened_at: question.opened_at,
            until: question.until,
        }
    }

    /// The whole question for people.
    pub fn lines(&self) -> Vec<String> {
        let (session, id) = (&self.session, &self.id);
        let asks = match self.kind {
            "permission" => format!("permission for {}, for one call", self.tool),
            _ => "an answer".to_owned(),
        };
        let mut lines = vec![
            format!("{session} asks for {asks} ({id})"),
            format!("  in {}", self.dir),
        ];
        lines.extend(self.shown.iter().map(|line| format!("  | {line}")));
        lines
    }

    /// The same with how it is answered.
    pub fn lines_with_usage(&self) -> Vec<String> {
        let mut lines = self.lines();
        lines.push(format!("  answer: {}", self.usage()));
        lines
    }

    /// How it is answered.
    pub fn usage(&self) -> String {
        let (session, id) = (&self.session, &self.id);
        let texts = "TEXT ".repeat(self.questions.len());
        match self.kind {
            "permission" => format!("tenure answer {session} {id} allow|deny"),
            _ => format!("tenure answer {session} {id} {}|deny", texts.trim_end()),
        }
    }
}

/// The open questions of a session, or of all.
pub fn open_questions(
    context: &mut Context,
    session: Option<&str>,
) -> Result<Vec<QuestionView>, Problem> {
    let named = session.map(|name| found(context, name)).transpose()?;
    let files = QuestionFiles::below(context.dir());
    let mut open = Vec::new();
    for (id, question) in files.open_questions() {
        let handle = match &named {
            Some(session) if session.id == question.session => session.handle.clone(),
            Some(_) => continue,
            None => match context.service().show(&question.session) {
                Ok(shown) => shown.value.session.handle,
                // Another store's session.
                Err(_) => continue,
            },
        };
        open.push(QuestionView::of(&id, question, &handle));
    }
    Ok(open)
}

/// Answers an open question: the first answer counts. It is recorded before it is sent, and it was sent when this returns.
pub fn answer(
    context: &mut Context,
    by: &Answerer,
    request: AnswerRequest,
) -> Result<SentAnswer, Problem> {
    let session = found(context, &request.session)?;
    let AnswerRequest { id, answer, .. } = request;
    let files = QuestionFiles::below(context.dir());
    let question = files.question(&id).filter(|one| one.session == session.id);
    let Some(question) = question else {
        let why = format!("{} asks no question {id}", session.handle);
        return Err(not_open(&session, why));
    };
    if let Some(closing) = files.closing(&id) {
        return Err(closed(&files, &session, &id, &closing));
    }
    answer.check(&question.kind).map_err(|wrong| {
        let view = QuestionView::of(&id, question.clone(), &session.handle);
        misfit(&wrong, format!("use `{}`", view.usage()))
    })?;
    let Some(waiter) = question.awaited() else {
        let why = "its hook is gone; only its own window can answer it".to_owned();
        return Err(not_open(&session, why));
    };
    let closing = Closing::Answered {
        answer: answer.clone(),
        by: by.name().to_owned(),
        at: clock::wall(),
    };
    let is_first = files.close(&id, &closing).map_err(|error| {
        let why = format!("cannot answer: {error}");
        Problem::new(Class::Store, "store", why, Hint::step(OWN_WINDOW))
    })?;
    if !is_first {
        let closing = files.closing(&id);
        let closing = closing.unwrap_or_else(|| Closing::over("another answer came first"));
        return Err(closed(&files, &session, &id, &closing));
    }
    let evidence = logged(context, &id, &question, &answer, by);
    let to = tenure_core::id::SessionId::parse(&session.id)?;
    context
        .service()
        .note_answer(to, &evidence)
        .map_err(|error| {
            let mut problem = Problem::from(error);
            problem.message = format!("nothing was sent: {}", problem.message);
            problem.hints.push(Hint::step(OWN_WINDOW));
            problem
        })?;
    let recorded = files.mark(&id, Step::Recorded);
    // The hook ends when it has sent it.
    let has_ended = recorded.and_then(|()| waiter.wait(SENDING));
    if !files.is_marked(&id, Step::Sent) {
        let why = match has_ended {
            Ok(false) => {
                "its hook does not react; it may still send the answer, so look at its own window"
            }
            _ => "its hook ended before it could send the answer; its own window decides",
        };
        return Err(not_open(&session, why.to_owned()));
    }
    Ok(SentAnswer {
        question: QuestionView::of(&id, question, &session.handle),
        answer: answer.word(),
        by: by.name().to_owned(),
    })
}

/// What somebody typed as an answer.
pub fn of_words(words: &[String], message: Option<&str>) -> Result<PersonsAnswer, Problem> {
    let parsed = PersonsAnswer::of_words(words, message);
    parsed.map_err(|wrong| misfit(&wrong, "use allow, deny or a text".to_owned()))
}

fn misfit(wrong: &Misfit, step: String) -> Problem {
    Problem::new(Class::Usage, "usage", wrong.to_string(), Hint::step(step))
}

/// The only question of a session, for somebody who names no other.
pub fn only(context: &mut Context, session: &str) -> Result<QuestionView, Problem> {
    let mut open = open_questions(context, Some(session))?;
    if open.len() == 1 {
        return Ok(open.remove(0));
    }
    let why = match open.len() {
        0 => format!("{session} asks nothing that can be answered from elsewhere"),
        count => format!("{session} asks {count} things; name the id of one"),
    };
    let hint = Hint::verb("answer", "to list what is asked");
    Err(Problem::new(Class::Refused, "not_open", why, hint))
}

/// A session by its name, if it is one of this machine.
fn found(context: &mut Context, name: &str) -> Result<SessionView, Problem> {
    let session = context.service().show(name)?.value.session;
    match &session.host {
        None => Ok(session),
        Some(host) => {
            let why = format!("{} runs on {host}", session.handle);
            let hint = Hint::step(format!("answer on {host}, as the user who runs it"));
            Err(Problem::new(Class::Refused, "elsewhere", why, hint))
        }
    }
}

/// What the log has: what was answered, to what, and by whom. Where nothing private may be stored, only the kinds.
fn logged(
    context: &Context,
    id: &QuestionId,
    question: &QuestionFile,
    answer: &PersonsAnswer,
    by: &Answerer,
) -> String {
    let (word, tool, by) = (answer.word(), text::line(&question.tool), by.name());
    if !context.settings.keeps_titles(Path::new(&question.dir)) {
        return format!("{word} {id}, {tool}; by {by}");
    }
    let said = match answer {
        PersonsAnswer::Allow | PersonsAnswer::Deny(None) => String::new(),
        PersonsAnswer::Deny(Some(why)) => format!(" {}", text::quoted(why)),
        PersonsAnswer::Texts(texts) => {
            let texts: Vec<String> = texts.iter().map(|text| text::quoted(text)).collect();
            format!(" {}", texts.join(", "))
        }
    };
    let shown = text::line(&question.shown.join("\n")).into_owned();
    let shown = text::clipped(&shown, MAX_RECORDED);
    format!("{word}{said} to {id}, {tool}: {shown}; by {by}")
}

fn closed(
    files: &QuestionFiles,
    session: &SessionView,
    id: &QuestionId,
    closing: &Closing,
) -> Problem {
    let why = match closing {
        Closing::Answered { answer, by, .. } if files.is_marked(id, Step::Sent) => {
            format!("{id} was answered already: {} by {by}", answer.word())
        }
        // Its answer is on the way, or was killed on the way.
        Closing::Answered { answer, by, .. } => format!(
            "{id} has an answer that is not sent yet, {} by {by}; if it stays so, {OWN_WINDOW}",
            answer.word()
        ),
        Closing::Over { why, .. } => format!("{id} is not open any more: {why}"),
    };
    not_open(session, why)
}

fn not_open(session: &SessionView, why: String) -> Problem {
    let hint = Hint::run("answer", [session.handle.as_str()], "to list what it asks");
    Problem::new(Class::Refused, "not_open", why, hint)
}
