//! The table of docs/agents.md that the tests of this folder make.

use std::path::Path;

/// Cells that no test leaves, and why.
const UNTESTED: &[(&str, &str, &str)] = &[(
    "qwen",
    "kill",
    "failed: its launcher then exits with 1; the conversation stays",
)];

/// Leaves a cell of the table, where one is asked for.
pub(super) fn leave(agent: &str, column: &str, cell: &str) {
    let Some(dir) = std::env::var_os("TENURE_RUN_TABLE") else {
        return;
    };
    let file = Path::new(&dir).join(format!("{agent}.{column}.cell"));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(file, format!("{cell}\n")).unwrap();
}

#[test]
#[ignore = "is part of the runs with real agents"]
fn what_is_not_tested_is_told() {
    for (agent, column, why) in UNTESTED {
        leave(agent, column, why);
    }
}

/// An agent without a cell, or a cell without a word, would look like a promise.
#[test]
fn every_agent_has_a_cell_in_every_column() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agents.md");
    let document = std::fs::read_to_string(document).unwrap();
    let (_, table) = document.split_once("<!-- runs: begin -->\n").unwrap();
    let (table, _) = table.split_once("<!-- runs: end -->").unwrap();
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim_matches('|').split('|');
        inner.map(|cell| cell.trim().to_owned()).collect()
    };
    let mut lines = table.lines().map(cells);
    let head = lines.next().unwrap();
    let columns = [
        "agent", "fresh", "resume", "unknown", "unusable", "429", "kill", "stop",
    ];
    assert_eq!(head, columns);
    let rows: Vec<Vec<String>> = lines.skip(1).collect();
    let agents = tenure_agents::names(|row| row.runs.is_some());
    let named: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(named, agents);
    for row in rows {
        assert_eq!(row.len(), columns.len(), "{row:?}");
        let is_told = |cell: &String| !cell.is_empty() && cell != "not run";
        assert!(row.iter().all(is_told), "{row:?}");
    }
}
