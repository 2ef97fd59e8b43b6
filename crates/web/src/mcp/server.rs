//! The requests of the protocol, and what answers them.

use std::io::Write;
use std::os::unix::net::UnixStream;

use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;

use super::call::ToolCall;
use super::end::{CallEnd, Client, ClientPresence};
use super::reply::{ToolReply, ToolResult, resource, without_notices};
use super::tools::{self, RESOURCES};
use super::wire::UnwrittenNotices;

/// What a model reads about the server as a whole.
const INSTRUCTIONS: &str = "tenure knows which coding agents run on this machine and stops two of them working on the \
     same thing. Claim an item (an issue, a work package, a path) before you work on it, and release it when you are \
     done. If it is held, do something else, wait, or tell the holder.";

/// One conversation with a client.
pub struct Server {
    told: UnwrittenNotices,
    client: Client,
}

impl Server {
    pub fn new(told: UnwrittenNotices, client: Client) -> Self {
        Self { told, client }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .build();
        let identity = Implementation::new("tenure", env!("CARGO_PKG_VERSION"))
            .with_title("tenure")
            .with_description("Which coding agents run, and who works on what");
        ServerConfig::new(capabilities)
            .with_server_info(identity)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let all = tools::TOOLS.iter().map(tools::ToolRow::shown);
        Ok(ListToolsResult::with_all_items(all.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::TOOLS
            .iter()
            .find(|tool| tool.spec.name == request.name)
        else {
            let message = format!("there is no tool {}", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = request.arguments.unwrap_or_default();
        let reply = self
            .answer(context, move |call| tool.run(arguments, call))
            .await?;
        Ok(reply.into_result().into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let all = RESOURCES.iter().map(tools::Resource::shown);
        Ok(ListResourcesResult::with_all_items(all.collect()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let Some(found) = RESOURCES.iter().find(|one| one.uri == request.uri) else {
            let message = format!("there is no resource {}", request.uri);
            return Err(ErrorData::resource_not_found(message, None));
        };
        // A client reads a resource for itself: its model sees no notice there.
        let reply = self
            .answer(context, |call| without_notices((found.read)(&call)))
            .await?;
        Ok(resource(&request.uri, reply)?.into())
    }
}

impl Server {
    /// Runs a call on a thread of its own.
    async fn answer(
        &self,
        context: RequestContext<RoleServer>,
        run: impl FnOnce(ToolCall) -> ToolResult + Send + 'static,
    ) -> Result<ToolReply, ErrorData> {
        let failed =
            |error: &dyn std::error::Error| ErrorData::internal_error(error.to_string(), None);
        let _goes_on = self.client.call().await;
        let meta = Value::Object(context.meta.0.0.clone());
        let (cancelled, client) = (context.ct.clone(), self.client.clone());
        let (news, mut to_call) = UnixStream::pair().map_err(|error| failed(&error))?;
        let mut reply = tokio::task::spawn_blocking(move || {
            let end = CallEnd {
                client,
                is_cancelled: Box::new(move || cancelled.is_cancelled()),
                news,
            };
            ToolReply::of(run(ToolCall::new(&meta, end)))
        });
        let is_over = async {
            tokio::select! {
                () = context.ct.cancelled() => {}
                () = self.client.has_only(ClientPresence::Reader) => {}
            }
        };
        let reply = tokio::select! {
            reply = &mut reply => reply,
            () = is_over => {
                if to_call.write_all(b".").is_err() {
                    // It is over by now.
                }
                reply.await
            }
        };
        let reply = reply.map_err(|error| failed(&error))?;
        self.told.will(context.id, reply.notices());
        Ok(reply)
    }
}
