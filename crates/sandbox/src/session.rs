//! Serves a session of haft with the plugin protocol (JSON lines, version 2). The session
//! holds the files; this process requests them with `host_call`.

use crate::host::Host;
use crate::reply;
use crate::sandbox::Sandbox;
use crate::tools::{self, BashArgs, InstallArgs, PythonArgs};
use async_trait::async_trait;
use haft::Reply;
use haft::guest::{Guest, GuestRequest, GuestResponse, Refusal};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Message {
    Describe,
    Init,
    Call {
        name: String,
        call_id: String,
        #[serde(default)]
        params: Value,
    },
    Cancel {
        call_id: String,
    },
    HostResult {
        id: u64,
        told: GuestResponse,
    },
}

/// Calls and requests in progress.
#[derive(Default)]
struct InProgress {
    calls: HashMap<String, AbortHandle>,
    requests: HashMap<u64, oneshot::Sender<GuestResponse>>,
}

#[derive(Clone)]
struct Connection {
    out: mpsc::UnboundedSender<String>,
    in_progress: Arc<Mutex<InProgress>>,
    next: Arc<AtomicU64>,
}

impl Connection {
    fn send(&self, message: &Value) {
        let _ = self.out.send(format!("{message}\n"));
    }

    fn in_progress(&self) -> MutexGuard<'_, InProgress> {
        self.in_progress
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves standard input and output until the input ends.
pub(crate) async fn serve(sandbox: Arc<Sandbox>) -> io::Result<()> {
    let (out, mut lines) = mpsc::unbounded_channel::<String>();
    let writer = tokio::spawn(async move {
        let mut output = tokio::io::stdout();
        while let Some(line) = lines.recv().await {
            output.write_all(line.as_bytes()).await?;
            output.flush().await?;
        }
        io::Result::Ok(())
    });
    let connection = Connection {
        out,
        in_progress: Arc::default(),
        next: Arc::default(),
    };
    let mut input = BufReader::with_capacity(64 << 10, tokio::io::stdin()).lines();
    while let Some(text) = input.next_line().await? {
        match serde_json::from_str(&text) {
            Ok(message) => handle(message, &connection, &sandbox),
            Err(error) => {
                let message = format!("invalid message: {error}");
                connection.send(&json!({ "type": "invalid", "message": message }));
            }
        }
    }
    writer.abort();
    Ok(())
}

fn handle(message: Message, connection: &Connection, sandbox: &Arc<Sandbox>) {
    match message {
        Message::Describe | Message::Init => connection.send(&description(sandbox)),
        Message::Cancel { call_id } => {
            if let Some(call) = connection.in_progress().calls.remove(&call_id) {
                call.abort();
                connection.send(&result(&call_id, &Reply::error("cancelled")));
            }
        }
        Message::HostResult { id, told } => {
            if let Some(requests) = connection.in_progress().requests.remove(&id) {
                let _ = requests.send(told);
            }
        }
        Message::Call {
            name,
            call_id,
            params,
        } => {
            let (sandbox, reply_to, id) =
                (Arc::clone(sandbox), connection.clone(), call_id.clone());
            // Locked until the call is registered, so that it cannot end before.
            let mut in_progress = connection.in_progress();
            let task = tokio::spawn(async move {
                let host: Arc<dyn Host> = Arc::new(SessionHost {
                    call_id: id.clone(),
                    connection: reply_to.clone(),
                });
                let reply = call(&sandbox, &name, params, host).await;
                if reply_to.in_progress().calls.remove(&id).is_some() {
                    reply_to.send(&result(&id, &reply));
                }
            });
            in_progress.calls.insert(call_id, task.abort_handle());
        }
    }
}

async fn call(sandbox: &Sandbox, name: &str, params: Value, host: Arc<dyn Host>) -> Reply {
    let invalid = |error: serde_json::Error| reply::failure(&error.to_string(), None);
    match name {
        "execute_python" => match serde_json::from_value::<PythonArgs>(params) {
            Ok(args) => sandbox.python(host, args.code).await,
            Err(error) => invalid(error),
        },
        "execute_bash" => match serde_json::from_value::<BashArgs>(params) {
            Ok(args) => sandbox.bash(host, args.command).await,
            Err(error) => invalid(error),
        },
        "install_packages" => match serde_json::from_value::<InstallArgs>(params) {
            Ok(args) => sandbox.install(host, args.packages).await,
            Err(error) => invalid(error),
        },
        other => reply::failure(&format!("unknown tool: {other:?}"), None),
    }
}

fn description(sandbox: &Arc<Sandbox>) -> Value {
    let tools = tools::all(sandbox, &Guest::default());
    let tools = tools.iter().map(|tool| {
        let tool = tool.definition();
        json!({
            "name": tool.name, "description": tool.description, "parameters": tool.parameters,
        })
    });
    json!({ "protocol": 2, "tools": tools.collect::<Vec<Value>>() })
}

fn result(call_id: &str, reply: &Reply) -> Value {
    json!({
        "type": "result", "call_id": call_id,
        "content": reply.content(), "error": reply.is_error(),
    })
}

/// Sends requests to the session on behalf of one call.
struct SessionHost {
    call_id: String,
    connection: Connection,
}

#[async_trait]
impl Host for SessionHost {
    async fn ask(&self, ask: GuestRequest) -> GuestResponse {
        let id = self.connection.next.fetch_add(1, Ordering::Relaxed);
        let (told, response) = oneshot::channel();
        self.connection.in_progress().requests.insert(id, told);
        let _pending = PendingRequest(&self.connection, id);
        self.connection.send(&json!({
            "type": "host_call", "call_id": self.call_id, "id": id, "name": "guest", "params": ask,
        }));
        response.await.unwrap_or_else(|_| GuestResponse::Refused {
            why: Refusal::Failed,
            message: "the session has ended".to_owned(),
        })
    }
}

/// Removes a request when the caller is dropped.
struct PendingRequest<'a>(&'a Connection, u64);

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        self.0.in_progress().requests.remove(&self.1);
    }
}
