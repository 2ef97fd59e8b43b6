//! The MCP server of one agent: eight tools and two resources.
//!
//! Every call opens the store anew and finds its caller anew, so nothing here goes stale. Calls run beside each other,
//! each on a thread of its own, because a claim may wait.
//!
//! The server ends when its client closes the input. What was asked before is answered then, for a moment, and what
//! waits is over. If the client is gone, what goes on is undone.

mod call;
mod end;
mod reply;
mod server;
mod tools;
mod wire;

use std::io;
use std::time::Duration;

use rmcp::ServiceExt;

use end::{Client, ClientPresence};
use server::Server;
use wire::{UnwrittenNotices, Wire};

/// How long calls may go on after the input was closed.
const AFTER_INPUT: Duration = Duration::from_millis(500);

/// Serves the client at the standard streams until it is gone. `until_gone` is called on a thread of its own and
/// returns when the client, or its reading end, is gone in a way that the input does not show.
pub fn serve(until_gone: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let client = Client::default();
    let gone = client.clone();
    std::thread::Builder::new()
        .name("client".to_owned())
        .spawn(move || {
            until_gone();
            gone.loses(ClientPresence::Nothing);
        })?;
    runtime.block_on(converse(client));
    // A call that takes long, and the reader of the input, are left to the end of the process.
    runtime.shutdown_background();
    Ok(())
}

/// Answers until the input ends or the client is gone.
async fn converse(client: Client) {
    let told = UnwrittenNotices::default();
    let wire = Wire::new(told.clone(), client.clone());
    let server = Server::new(told, client.clone());
    let ended = async {
        if let Ok(running) = server.serve(wire).await
            && running.waiting().await.is_err()
        {
            // A task of the protocol failed: there is nobody left to tell.
        }
    };
    tokio::pin!(ended);
    tokio::select! {
        () = &mut ended => return,
        () = client.has_only(ClientPresence::Reader) => {}
    }
    let calls = async {
        tokio::select! {
            () = ended => {}
            () = client.is_gone() => {}
        }
    };
    if tokio::time::timeout(AFTER_INPUT, calls).await.is_err() {
        // What takes longer is not waited for.
    }
}
