//! The file as written, with only its keys and types checked.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawTop {
    pub listen: String,
    pub concurrency: u32,
    pub breaker: u32,
    pub keep_deliveries: String,
    pub sweep: String,
    pub places: Option<String>,
}

impl Default for RawTop {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:7421".to_owned(),
            concurrency: 4,
            breaker: 10,
            keep_deliveries: "30d".to_owned(),
            sweep: "10m".to_owned(),
            places: None,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawForge {
    pub kind: String,
    pub secret_files: Vec<String>,
    pub url: Option<String>,
    pub token_file: Option<String>,
    pub ca_file: Option<String>,
    pub own_account: Option<String>,
    #[serde(default)]
    pub bots: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRepo {
    pub forge: String,
    pub url: Option<String>,
    pub dir: Option<String>,
    #[serde(default)]
    pub trusted: bool,
    pub concurrency: Option<u32>,
    pub push_credential: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawCaps {
    pub runs_per_hour: Option<u32>,
    pub usd_per_day: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawModel {
    pub url: String,
    pub key_file: Option<String>,
    pub key_header: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRule {
    pub name: Option<String>,
    pub repo: Option<String>,
    pub on: Vec<String>,
    #[serde(default)]
    pub authors: Vec<String>,
    #[serde(default)]
    pub associations: Vec<String>,
    pub label: Option<String>,
    pub mention: Option<String>,
    pub assignee: Option<String>,
    pub reviewer: Option<String>,
    pub branch: Option<String>,
    pub agent: String,
    #[serde(default)]
    pub role: String,
    pub skill: String,
    #[serde(default)]
    pub fresh: bool,
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub env: Vec<String>,
    #[serde(default)]
    pub wrap: Vec<String>,
    #[serde(default)]
    pub exclusive: bool,
    pub timeout: Option<String>,
    #[serde(default)]
    pub caps: RawCaps,
    pub reply: Option<String>,
    pub on_close: Option<String>,
    #[serde(default)]
    pub push: bool,
    #[serde(default)]
    pub open_pr: bool,
    #[serde(default)]
    pub merge: bool,
    pub publish: Option<String>,
    #[serde(default)]
    pub workflows: bool,
    pub model: Option<RawModel>,
    #[serde(default, rename = "continue")]
    pub goes_on: bool,
}
