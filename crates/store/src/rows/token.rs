//! Tokens of the HTTP API in rows, as digests.
//!
//! *Crash*: a token is there or not. *Clock jump*: the time is for people only. *Older version*: it does not know the table;
//! a scope that core does not parse is damage.

use tenure_core::store::{StoreError, TokenRows};
use tenure_core::token::{ApiToken, Scope, TokenName};

use crate::cells::Cells;
use crate::columns::columns;
use crate::engine::{Engine, Rows};
use crate::value::params;

columns! { $
    TokenRow of "tokens" by select_tokens { owner, name, hash, scopes, created_at }
}

const ONE: &str = select_tokens!("WHERE owner = ?1 AND name = ?2");
const OF_OWNER: &str = select_tokens!("WHERE owner = ?1 ORDER BY name");
const REMOVE: &str = "DELETE FROM tokens WHERE owner = ?1 AND name = ?2";

fn read(cells: &mut Cells<'_>) -> Result<ApiToken, StoreError> {
    let row = TokenRow::read(cells);
    let scopes = row.scopes.text()?;
    let scopes = scopes
        .split(' ')
        .map(Scope::parse)
        .collect::<Result<_, _>>();
    Ok(ApiToken {
        owner: row.owner.text()?,
        name: row.name.parsed(TokenName::parse)?,
        hash: row.hash.text()?,
        scopes: scopes.map_err(|error| row.scopes.bad(&error.to_string()))?,
        created_at: row.created_at.time()?,
    })
}

impl<E: Engine> TokenRows for Rows<E> {
    fn insert_token(&mut self, token: &ApiToken) -> Result<(), StoreError> {
        let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
        let row = TokenRow {
            owner: token.owner.as_str().into(),
            name: token.name.as_str().into(),
            hash: token.hash.as_str().into(),
            scopes: scopes.join(" ").into(),
            created_at: token.created_at.0.into(),
        };
        self.compare_and_set(TokenRow::INSERT, &row.values())
    }

    fn token(&mut self, owner: &str, name: &TokenName) -> Result<Option<ApiToken>, StoreError> {
        self.first("tokens", ONE, &params![owner, name.as_str()], read)
    }

    fn tokens(&mut self, owner: &str) -> Result<Vec<ApiToken>, StoreError> {
        self.all("tokens", OF_OWNER, &params![owner], read)
    }

    fn remove_token(&mut self, owner: &str, name: &TokenName) -> Result<bool, StoreError> {
        Ok(self.run(REMOVE, &params![owner, name.as_str()])? > 0)
    }
}
