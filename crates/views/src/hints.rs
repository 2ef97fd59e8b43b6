//! A failure and its way out, as people read them.

use tenure_core::text;
use tenure_service::answer::Hint;

/// A hint as it is typed.
pub fn command_line(hint: &Hint) -> String {
    let Some(verb) = hint.verb else {
        return hint.why.clone();
    };
    let mut command = format!("tenure {verb}");
    for word in &hint.args {
        command.push(' ');
        command.push_str(&text::shell(word));
    }
    format!("run `{command}` {}", hint.why)
}
