//! A client for the protocol's conformance suite, using the client code behind `tools.mcp`:
//! connects to the given server, signs in if necessary, and calls every tool.
//! `tests/conformance/run` drives it.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a separate program that the suite configures through the environment"
)]

use async_trait::async_trait;
use haft::{ApprovalAnswer, Approver, Definition, Filled, Form, Question, Runtime};
use haft_mcp::client::{Remote, RemoteServer, Report, ReportError, Tokens};
use haft_web::client::{Method, Origin, Redirects, Url};
use haft_web::{Client, Request, Secret, Settings};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

type Failed = Box<dyn std::error::Error>;

/// Redirect address of the sign-in. Nothing listens there: only the address is needed.
const BACK: &str = "http://localhost:3000/callback";

/// Address of this client's metadata document.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// Maximum number of sign-ins.
const SIGN_INS: usize = 3;

const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let url = std::env::args().nth(1).ok_or("no address")?;
    let mut remote = Remote::at("suite", &url)?;
    remote.tokens = Some(Arc::new(Memory::default()));
    remote.identity.metadata_url = Some(DOCUMENT.to_owned());
    // Credentials that a server's operator would issue.
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let given = |name: &str| context[name].as_str().map(str::to_owned);
    remote.identity.client_id = given("client_id");
    remote.identity.client_secret = given("client_secret").map(Secret::new);
    let server = RemoteServer::new(remote)?;
    let report = reach(&server).await?;
    let folder = std::env::temp_dir();
    let runtime = Runtime::builder()
        .dir(folder)
        .preset("none")
        .source(server.clone())
        .approver(Arc::new(Agreeable))
        .build()?;
    runtime.ready().await;
    for (_, definition) in &report.tools {
        let mut reply = runtime.call(&definition.name, arguments(definition)).await;
        // A call may need more access than was granted so far.
        for _ in 1..SIGN_INS {
            if !reply.is_error() {
                break;
            }
            reach(&server).await?;
            reply = runtime.call(&definition.name, arguments(definition)).await;
        }
        eprintln!("{}: {}", definition.name, reply.text());
    }
    Ok(())
}

/// Connects to the server, and signs in as often as it asks for that.
async fn reach(server: &RemoteServer) -> Result<Report, Failed> {
    for _ in 0..SIGN_INS {
        match server.report(None, Some(PATIENCE)).await {
            Ok(report) => return Ok(report),
            Err(ReportError::SignIn { challenge }) => {
                let pending = server.begin_sign_in(challenge, BACK).await?;
                let answer = agree(pending.address()).await?;
                server.finish_sign_in(pending, &answer).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(format!("still not authorized after {SIGN_INS} sign-ins").into())
}

/// Does the part of the user's browser: opens the address and follows the redirect.
async fn agree(address: &str) -> Result<String, Failed> {
    let client = Client::new(Settings::default())?;
    let answer = client
        .send(Request {
            method: Method::Get,
            origin: Origin::Configuration,
            url: Url::parse(address)?,
            headers: Vec::new(),
            body: None,
            timeout: PATIENCE,
            limit: 1 << 20,
            redirects: Redirects::Refuse,
        })
        .await?;
    let back = answer
        .header("location")
        .ok_or("the response has no redirect")?;
    Ok(back.to_owned())
}

/// Returns a value for each parameter.
fn arguments(definition: &Definition) -> Value {
    let mut arguments = Map::new();
    let fields = definition.parameters["properties"].as_object();
    for (name, field) in fields.into_iter().flatten() {
        let value = match field["type"].as_str() {
            Some("number" | "integer") => json!(2),
            Some("boolean") => json!(true),
            _ => json!("something"),
        };
        arguments.insert(name.clone(), value);
    }
    Value::Object(arguments)
}

/// Approves everything, and leaves every form field at its default.
struct Agreeable;

#[async_trait]
impl Approver for Agreeable {
    async fn ask(&self, _: &Question) -> ApprovalAnswer {
        ApprovalAnswer::Approve
    }

    async fn fill(&self, form: &Form) -> Filled {
        let fields = form.schema["properties"].as_object();
        let defaults = fields.into_iter().flatten();
        let defaults = defaults
            .filter_map(|(name, field)| Some((name.clone(), field.get("default")?.clone())));
        Filled::Accepted(Value::Object(defaults.collect()))
    }
}

/// Credentials in memory.
#[derive(Default)]
struct Memory(Mutex<Option<Value>>);

impl Tokens for Memory {
    fn load(&self) -> Option<Value> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn store(&self, tokens: &Value) -> Result<(), String> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(tokens.clone());
        Ok(())
    }

    fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
