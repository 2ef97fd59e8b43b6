//! Tokens of the HTTP API.

use super::StoreError;
use crate::token::{ApiToken, TokenName};

pub trait TokenRows {
    /// Adds a token. A second one of that name and owner is a conflict.
    fn insert_token(&mut self, token: &ApiToken) -> Result<(), StoreError>;

    fn token(&mut self, owner: &str, name: &TokenName) -> Result<Option<ApiToken>, StoreError>;

    /// The tokens of an owner, by name.
    fn tokens(&mut self, owner: &str) -> Result<Vec<ApiToken>, StoreError>;

    /// Removes a token; returns whether there was one.
    fn remove_token(&mut self, owner: &str, name: &TokenName) -> Result<bool, StoreError>;
}
