//! What became of each entry of another system.

use schemars::JsonSchema;
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ImportView {
    /// The system that the data is of.
    pub format: &'static str,
    pub source: String,
    /// Whether anything was written; false without `--apply`.
    pub applied: bool,
    /// How many entries were read; the sum of the next three.
    pub read: usize,
    pub taken: usize,
    pub refused: usize,
    pub left: usize,
    pub entries: Vec<ImportedView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ImportedView {
    /// Its name in the other system.
    pub name: String,
    /// The file or table that it is in.
    pub source: String,
    /// `taken`, `refused` or `left`.
    pub verdict: &'static str,
    /// What it became; null if it was not taken.
    pub became: Option<String>,
    /// Why it was not taken; null if it was.
    pub why: Option<String>,
}
