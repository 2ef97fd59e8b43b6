//! A store, as people read it.

use tenure_app::store_admin::StoreView;

use crate::lines::Lines;

pub fn shown(store: &StoreView) -> Lines {
    let mut text = Lines::default();
    text.line(format!("store: {}", store.location));
    if let (Some(server), Some(role)) = (&store.server, &store.role) {
        text.line(format!("server: PostgreSQL {server}, as {role}"));
    }
    if let (Some(schema), Some(supported)) = (store.schema, store.supported) {
        text.line(format!(
            "schema: {schema} (this tenure supports {supported})"
        ));
    }
    if store.standby {
        text.line("warning: the server is a standby; connect to the primary server");
    }
    for setting in &store.warnings {
        text.line(format!(
            "warning: {setting} on the server; a crash there can lose changes that tenure confirmed"
        ));
    }
    text
}
