//! A connection for statements of a test.

use tokio::runtime::Runtime;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

/// An open connection.
#[derive(Debug)]
pub struct Asker {
    runtime: Runtime,
    client: Client,
}

impl Asker {
    #[track_caller]
    pub(super) fn connect(config: &Config) -> Asker {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let client = runtime.block_on(async {
            let (client, connection) = config.connect(NoTls).await.expect("a connection");
            tokio::spawn(connection);
            client
        });
        Asker { runtime, client }
    }

    /// Runs a statement; returns the first column of its rows.
    #[track_caller]
    pub fn ask(&mut self, sql: &str) -> Vec<String> {
        let answers = self.runtime.block_on(self.client.simple_query(sql));
        let answers = answers.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let rows = answers.into_iter().filter_map(|answer| match answer {
            SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
            _ => None,
        });
        rows.collect()
    }
}
