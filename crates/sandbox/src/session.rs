//! Serving a session of haft: JSON lines, as plugins speak them (protocol 2). The
//! session holds the files; this process asks for them with `host_call`.

use crate::host::Host;
use crate::reply;
use crate::sandbox::Sandbox;
use crate::tools::{self, BashArgs, InstallArgs, PythonArgs};
use async_trait::async_trait;
use haft::Reply;
use haft::guest::{Ask, Guest, Refusal, Told};
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
        told: Told,
    },
}

/// What is on its way.
#[derive(Default)]
struct Desk {
    calls: HashMap<String, AbortHandle>,
    asked: HashMap<u64, oneshot::Sender<Told>>,
}

#[derive(Clone)]
struct Line {
    out: mpsc::UnboundedSender<String>,
    desk: Arc<Mutex<Desk>>,
    next: Arc<AtomicU64>,
}

impl Line {
    fn say(&self, message: &Value) {
        let _ = self.out.send(format!("{message}\n"));
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves standard input and output until the input ends.
pub(crate) async fn serve(sandbox: Arc<Sandbox>) -> io::Result<()> {
    let (out, mut lines) = mpsc::unbounded_channel::<String>();
    let writing = tokio::spawn(async move {
        let mut output = tokio::io::stdout();
        while let Some(line) = lines.recv().await {
            output.write_all(line.as_bytes()).await?;
            output.flush().await?;
        }
        io::Result::Ok(())
    });
    let line = Line {
        out,
        desk: Arc::default(),
        next: Arc::default(),
    };
    let mut input = BufReader::with_capacity(64 << 10, tokio::io::stdin()).lines();
    while let Some(text) = input.next_line().await? {
        match serde_json::from_str(&text) {
            Ok(message) => heed(message, &line, &sandbox),
            Err(error) => {
                let message = format!("that is no message: {error}");
                line.say(&json!({ "type": "invalid", "message": message }));
            }
        }
    }
    writing.abort();
    Ok(())
}

fn heed(message: Message, line: &Line, sandbox: &Arc<Sandbox>) {
    match message {
        Message::Describe | Message::Init => line.say(&described(sandbox)),
        Message::Cancel { call_id } => {
            if let Some(call) = line.desk().calls.remove(&call_id) {
                call.abort();
                line.say(&result(&call_id, &Reply::error("cancelled")));
            }
        }
        Message::HostResult { id, told } => {
            if let Some(asked) = line.desk().asked.remove(&id) {
                let _ = asked.send(told);
            }
        }
        Message::Call {
            name,
            call_id,
            params,
        } => {
            let (sandbox, answering, id) = (Arc::clone(sandbox), line.clone(), call_id.clone());
            // Held until the call is on the list, so that it cannot be over before.
            let mut desk = line.desk();
            let task = tokio::spawn(async move {
                let host: Arc<dyn Host> = Arc::new(Asking {
                    call_id: id.clone(),
                    line: answering.clone(),
                });
                let reply = call(&sandbox, &name, params, host).await;
                if answering.desk().calls.remove(&id).is_some() {
                    answering.say(&result(&id, &reply));
                }
            });
            desk.calls.insert(call_id, task.abort_handle());
        }
    }
}

async fn call(sandbox: &Sandbox, name: &str, params: Value, host: Arc<dyn Host>) -> Reply {
    let unfit = |error: serde_json::Error| reply::failure(&error.to_string(), None);
    match name {
        "execute_python" => match serde_json::from_value::<PythonArgs>(params) {
            Ok(args) => sandbox.python(host, args.code).await,
            Err(error) => unfit(error),
        },
        "execute_bash" => match serde_json::from_value::<BashArgs>(params) {
            Ok(args) => sandbox.bash(host, args.command).await,
            Err(error) => unfit(error),
        },
        "install_packages" => match serde_json::from_value::<InstallArgs>(params) {
            Ok(args) => sandbox.install(host, args.packages).await,
            Err(error) => unfit(error),
        },
        other => reply::failure(&format!("there is no tool {other:?}"), None),
    }
}

fn described(sandbox: &Arc<Sandbox>) -> Value {
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

/// The session, asked on behalf of one call.
struct Asking {
    call_id: String,
    line: Line,
}

#[async_trait]
impl Host for Asking {
    async fn ask(&self, ask: Ask) -> Told {
        let id = self.line.next.fetch_add(1, Ordering::Relaxed);
        let (told, hear) = oneshot::channel();
        self.line.desk().asked.insert(id, told);
        let _waiting = Waiting(&self.line, id);
        self.line.say(&json!({
            "type": "host_call", "call_id": self.call_id, "id": id, "name": "guest", "params": ask,
        }));
        hear.await.unwrap_or_else(|_| Told::Refused {
            why: Refusal::Failed,
            message: "the session is over".to_owned(),
        })
    }
}

/// A question that is forgotten with whoever asked it.
struct Waiting<'a>(&'a Line, u64);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.desk().asked.remove(&self.1);
    }
}
