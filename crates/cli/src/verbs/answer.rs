use tenure_core::id::QuestionId;
use tenure_elsewhere::answers::reply::{self, QuestionView};
use tenure_elsewhere::answers::{AnswerRequest, Answerer};
use tenure_service::answer::Problem;

use crate::app::App;
use crate::lines::Lines;
use crate::output::{Outcome, Output};
use crate::person::asked;
use crate::sink::mention;

/// Answer what an agent asks, from another window
///
/// Without an answer, lists what is asked, whole, with its id. Only a person at a terminal can run this, never an agent.
/// The first answer counts; the agent's own window asks meanwhile. A permission is for one call. Off until answers.agents
/// names the agent and `tenure install AGENT --answers` was run.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure answer                                      everything that can be answered
  tenure answer claude-k7qd                          what this session asks
  tenure answer claude-k7qd allow                    show it again and ask before it is sent
  tenure answer claude-k7qd q-k7qd2m4zw9 allow
  tenure answer claude-k7qd q-k7qd2m4zw9 deny --message 'use the staging database'
  tenure answer claude-k7qd q-k7qd2m4zw9 Blue        a text for each of its questions")]
pub struct Args {
    /// Handle, id, or a unique part of either
    #[arg(id = "asks", value_name = "SESSION")]
    name: Option<String>,

    /// Id of the question, then allow, deny or a text
    #[arg(value_name = "ID|ANSWER", requires = "asks")]
    words: Vec<String>,

    /// With deny: what the model is told
    #[arg(long, value_name = "TEXT", requires = "words")]
    message: Option<String>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    let by = Answerer::person(&mut context)?;
    let id = args.words.first();
    let id = id.and_then(|word| QuestionId::parse(word).ok());
    let words = &args.words[usize::from(id.is_some())..];
    let (Some(session), false) = (&args.name, args.words.is_empty()) else {
        let open = reply::open_questions(&mut context, args.name.as_deref())?;
        let mut text = Lines::default();
        let lines = open.iter().flat_map(QuestionView::lines_with_usage);
        lines.for_each(|line| text.line(line));
        if open.is_empty() {
            text.line("nothing is asked that can be answered from elsewhere");
        }
        return Ok(Output::new("questions", &open, text));
    };
    let answer = reply::of_words(words, args.message.as_deref())?;
    let id = match id {
        Some(id) => id,
        None => {
            let question = reply::only(&mut context, session)?;
            question.lines().iter().for_each(|line| mention(line));
            if !asked(&format!("answer {} with {}?", question.id, answer.word())) {
                return Ok(Output::new("sent", &(), "nothing was sent"));
            }
            QuestionId::parse(&question.id).map_err(Problem::from)?
        }
    };
    let session = session.clone();
    let request = AnswerRequest {
        session,
        id,
        answer,
    };
    let sent = reply::answer(&mut context, &by, request)?;
    let text = format!("{} sent to {}", sent.answer, sent.question.session);
    Ok(Output::new("sent", &sent, text))
}
