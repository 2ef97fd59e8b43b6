use tenure_cli::verbs::dispatch::InitArgs;

use tenure_dispatch::init::{InitReport, InitValues, init};

use tenure_cli::app::App;
use tenure_cli::lines::Lines;
use tenure_cli::output::{Outcome, Output};

pub fn run(args: &InitArgs, _: &App) -> Outcome {
    let known = InitValues {
        kind: args.kind.clone(),
        authors: args.authors.clone(),
        api: args.url.clone().zip(args.token_file.clone()),
    };
    let written = init(args.dir.as_deref(), &known)?;
    Ok(Output::new("dispatch_init", &written, text(&written)))
}

fn text(written: &InitReport) -> Lines {
    let mut text = Lines::default();
    if let Some(added) = &written.added {
        text.line(format!("added {added} to {}", written.file.display()));
        text.line(
            "Its rules are those without repo. Create a webhook in the forge, as for the others.",
        );
        let file = tenure_core::text::shell(&written.file.display().to_string());
        text.line(format!("Then run `tenure dispatch check --config {file}`."));
        return text;
    }
    text.line(format!("wrote {}", written.file.display()));
    text.line(format!(
        "wrote {} (mode 0600)",
        written.secret_file.display()
    ));
    for skill in &written.skills {
        text.line(format!("wrote {}", skill.display()));
    }
    text.line("");
    text.line("Fill in what is empty there. Then create a webhook in the forge:");
    text.line(format!("  URL: http(s)://YOUR-HOST{}", written.endpoint));
    text.line(format!(
        "  Secret: the content of {}",
        written.secret_file.display()
    ));
    for forge in written.forges {
        text.line(format!("  {}:", forge.kind));
        for step in forge.setup {
            text.line(format!("    {step}"));
        }
    }
    text.line("");
    let file = tenure_core::text::shell(&written.file.display().to_string());
    text.line(format!("Then run `tenure dispatch check --config {file}`."));
    text.line("Start `tenure dispatch`, and send it a test delivery with `tenure dispatch ping`.");
    text
}
