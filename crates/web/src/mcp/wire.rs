//! The standard streams, one message a line, and what must happen around a message.
//!
//! Notices count as delivered once the answer that has them was written. *Crash*: they are delivered again.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tenure_core::notice::Notice;
use tokio::io::{Stdin, Stdout};

use super::call;
use super::end::{Client, ClientPresence};

/// The notices in answers that are not written yet.
#[derive(Debug, Clone, Default)]
pub struct UnwrittenNotices(Arc<Mutex<HashMap<RequestId, Vec<Notice>>>>);

impl UnwrittenNotices {
    /// Remembers what the answer to a request tells.
    pub fn will(&self, request: RequestId, notices: Vec<Notice>) {
        if !notices.is_empty() {
            self.all().insert(request, notices);
        }
    }

    /// What it tells, once.
    fn take(&self, request: &RequestId) -> Option<Vec<Notice>> {
        self.all().remove(request)
    }

    fn all(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, Vec<Notice>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The client's end.
pub struct Wire {
    lines: AsyncRwTransport<RoleServer, Stdin, Stdout>,
    told: UnwrittenNotices,
    client: Client,
    /// Whether the client asked anything yet.
    has_begun: bool,
}

impl Wire {
    pub fn new(told: UnwrittenNotices, client: Client) -> Self {
        Self {
            lines: AsyncRwTransport::new(tokio::io::stdin(), tokio::io::stdout()),
            told,
            client,
            has_begun: false,
        }
    }
}

impl Transport<RoleServer> for Wire {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let notices = match &item {
            JsonRpcMessage::Response(response) => self.told.take(&response.id),
            JsonRpcMessage::Error(error) => {
                // It tells nothing.
                error.id.as_ref().and_then(|id| self.told.take(id));
                None
            }
            _ => None,
        };
        let written = self.lines.send(item);
        async move {
            written.await?;
            if let Some(notices) = notices {
                // If they cannot be marked, they are delivered again.
                tokio::task::spawn_blocking(move || call::mark_delivered(&notices)).await?;
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let Some(message) = self.lines.receive().await else {
                self.client.loses(ClientPresence::Reader);
                return None;
            };
            if let JsonRpcMessage::Request(request) = &message {
                self.has_begun = true;
                // An earlier request with this id was cancelled, so its answer was not written.
                self.told.take(&request.id);
            }
            // A client that begins with anything but a request is not refused for it.
            if self.has_begun {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.lines.close().await
    }
}
