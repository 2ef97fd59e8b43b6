//! Draws docs/demo.svg from what `tenure demo` prints, or reports with `--check` whether it is up to date. With `--top` it
//! draws docs/top.svg from a screen on its standard input.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};

use tenure_testkit::picture;

fn main() -> ExitCode {
    match draw() {
        Ok(said) => {
            writeln!(std::io::stdout(), "{said}").ok();
            ExitCode::SUCCESS
        }
        Err(error) => {
            writeln!(std::io::stderr(), "picture: {error}").ok();
            ExitCode::FAILURE
        }
    }
}

fn draw() -> Result<String, Box<dyn Error>> {
    if std::env::args().any(|arg| arg == "--top") {
        let screen = std::io::read_to_string(std::io::stdin())?;
        let lines: Vec<String> = screen.lines().map(str::to_owned).collect();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/top.svg");
        std::fs::write(&file, picture::of_top(&lines))?;
        return Ok("docs/top.svg is drawn".to_owned());
    }
    let own = std::env::current_exe()?;
    let tenure = own.with_file_name("tenure");
    let printed = Command::new(&tenure).arg("demo").output()?;
    if !printed.status.success() {
        let why = String::from_utf8_lossy(&printed.stderr);
        return Err(format!("{} demo failed: {why}", tenure.display()).into());
    }
    let svg = picture::of_demo(&String::from_utf8(printed.stdout)?);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(picture::FILE);
    if std::env::args().any(|arg| arg == "--check") {
        return if std::fs::read_to_string(&file)? == svg {
            Ok("docs/demo.svg is what the demo prints".to_owned())
        } else {
            Err("docs/demo.svg is not what the demo prints: run scripts/picture".into())
        };
    }
    std::fs::write(&file, svg)?;
    Ok("docs/demo.svg is written".to_owned())
}
