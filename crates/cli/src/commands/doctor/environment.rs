//! Checks what an agent needs besides the sandbox: a model, language runtimes and MCP
//! servers.

use crate::agent;
use crate::commands::mcp_servers::{ServerStatus, statuses};
use crate::env;
use crate::text::on_one_line;
use haft::ops::text::decode::visible;
use haft_agent::provider::Provider;
use haft_config::Settings;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Ollama's default address.
const OLLAMA: &str = "127.0.0.1:11434";

/// Time limit for a server on this machine to answer.
const LOCAL_TIMEOUT: Duration = Duration::from_millis(300);

/// Maximum bytes read of the list of models.
const MAX_BYTES: u64 = 1 << 20;

/// Number of models that are listed.
const MAX_LISTED: usize = 5;

/// Programs, and what needs them.
const RUNTIMES: [(&str, &str); 6] = [
    ("bash", "commands, plugins"),
    ("python3", "plugins in Python"),
    (
        "node",
        "plugins in TypeScript and JavaScript, MCP servers by npx",
    ),
    ("ruby", "plugins in Ruby"),
    ("go", "plugins in Go"),
    ("cargo", "plugins in Rust"),
];

pub(super) struct Environment {
    model: ModelStatus,
    keys: Vec<(String, &'static str, bool)>,
    ollama: Result<Vec<String>, String>,
    runtimes: Vec<(&'static str, &'static str, bool)>,
    servers: Vec<ServerStatus>,
}

/// Model according to the configuration.
enum ModelStatus {
    None,
    Model { provider: String, model: String },
    Invalid(String),
}

/// Examines the environment.
pub(super) async fn examine(settings: &Settings) -> Environment {
    let model = match agent::model(settings) {
        Ok(None) => ModelStatus::None,
        Ok(Some(model)) => ModelStatus::Model {
            provider: model.id().provider,
            model: match settings.as_written("model") {
                Some(written) => written.to_owned(),
                None => model.id().model,
            },
        },
        Err(failure) => ModelStatus::Invalid(failure.message),
    };
    let is_set = |variable: &str| {
        env::read()
            .text(variable)
            .is_some_and(|key| !key.trim().is_empty())
    };
    // Two protocols of the same provider share a key.
    let mut keys: Vec<(String, &'static str, bool)> = Vec::new();
    for provider in Provider::ALL {
        let Some(variable) = provider.key_variable() else {
            continue;
        };
        match keys.iter_mut().find(|(_, known, _)| *known == variable) {
            Some((names, ..)) => *names = format!("{names}, {provider}"),
            None => keys.push((provider.to_string(), variable, is_set(variable))),
        }
    }
    let folders = env::read().paths("PATH");
    let has = |program: &str| {
        folders
            .iter()
            .any(|folder| is_program(&folder.join(program)))
    };
    let (address, place) = ollama_address(settings);
    Environment {
        model,
        keys,
        ollama: ollama(&address)
            .await
            .map_err(|problem| format!("{problem} at {place}")),
        runtimes: RUNTIMES
            .map(|(name, what)| (name, what, has(name)))
            .to_vec(),
        servers: statuses(settings),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "programs in the user's PATH, not paths from a tool"
)]
fn is_program(path: &std::path::Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Returns Ollama's address, configured or default, and how to show it.
fn ollama_address(settings: &Settings) -> (String, String) {
    let chosen = settings.model.as_ref().ok();
    let chosen = chosen.and_then(|model| model.base_url.as_ref()?.for_provider(Provider::Ollama));
    let address = chosen
        .and_then(|address| url::Url::parse(address).ok())
        .and_then(|url| Some((url.host_str()?.to_owned(), url.port_or_known_default()?)));
    match address {
        Some((host, port)) => {
            let address = format!("{host}:{port}");
            let written = settings.as_written("base_url");
            let shown = written.map_or_else(|| address.clone(), str::to_owned);
            (address, shown)
        }
        None => (OLLAMA.to_owned(), OLLAMA.to_owned()),
    }
}

/// Returns Ollama's models, or why they cannot be listed.
async fn ollama(address: &str) -> Result<Vec<String>, &'static str> {
    let exchange = tokio::time::timeout(LOCAL_TIMEOUT, async {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("GET /api/tags HTTP/1.0\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.take(MAX_BYTES).read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    });
    let answer = exchange.await.ok().and_then(Result::ok);
    let answer = answer.ok_or("no answer")?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body);
    let body: Option<Value> = body.and_then(|body| serde_json::from_str(body).ok());
    let models = body
        .as_ref()
        .and_then(|body| body.get("models")?.as_array());
    let models = models.ok_or("another program answers")?;
    let names = models
        .iter()
        .filter_map(|model| model.get("name")?.as_str());
    Ok(names.map(str::to_owned).collect())
}

impl Environment {
    /// Formats the findings as lines, with what to do about missing things.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![match &self.model {
            ModelStatus::Model { provider, model } => format!("model: {model} ({provider})"),
            ModelStatus::None => "model: none; set a key or use Ollama".to_owned(),
            ModelStatus::Invalid(why) => format!("model: error: {why}"),
        }];
        for (providers, variable, is_set) in &self.keys {
            lines.push(match is_set {
                true => format!("  {providers}: {variable} is set"),
                false => format!("  {providers}: no key; export {variable}=…"),
            });
        }
        lines.push(match &self.ollama {
            Ok(models) if models.is_empty() => {
                "  ollama: running, but has no models; `ollama pull NAME` gets one".to_owned()
            }
            Ok(models) => {
                let named = models.iter().take(MAX_LISTED).cloned().collect::<Vec<_>>();
                let more = match models.len().saturating_sub(MAX_LISTED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                format!(
                    "  ollama: has {}{more}; to use one, set `provider: ollama` and `model: NAME` in haft.yaml",
                    named.join(", ")
                )
            }
            Err(why) => format!("  ollama: {why}; `ollama serve` starts it"),
        });
        let names = |wanted: bool| {
            let some = self.runtimes.iter().filter(|(_, _, has)| *has == wanted);
            some.collect::<Vec<_>>()
        };
        let found: Vec<&str> = names(true).iter().map(|(name, ..)| *name).collect();
        lines.push(format!(
            "runtimes: {}",
            [&found[..], &["lua (built in)"]].concat().join(", ")
        ));
        for (name, what, _) in names(false) {
            lines.push(format!("  {name} is not on PATH; needed for {what}"));
        }
        if !self.servers.is_empty() {
            lines.push("MCP servers (`haft mcp test NAME` connects to one):".to_owned());
        }
        for server in &self.servers {
            let problem = server.problem.as_ref();
            let problem = problem.map(|problem| format!(": {problem}"));
            let (name, state) = (visible(&server.name), server.state);
            let line = format!("  {name}: {state}{}", problem.unwrap_or_default());
            lines.push(on_one_line(&line));
        }
        lines
    }

    /// Returns the findings as JSON.
    pub(super) fn json(&self) -> Value {
        let keys = self.keys.iter();
        let runtimes = self.runtimes.iter();
        json!({
            "model": match &self.model {
                ModelStatus::Model { provider, model } => json!({ "provider": provider, "model": model }),
                ModelStatus::None => Value::Null,
                ModelStatus::Invalid(why) => json!({ "problem": why }),
            },
            "keys": keys.map(|(_, name, is_set)| ((*name).to_owned(), Value::from(*is_set)))
                .collect::<serde_json::Map<_, _>>(),
            "ollama": match &self.ollama {
                Ok(models) => json!({ "models": models }),
                Err(why) => json!({ "problem": why }),
            },
            "mcp": self.servers.iter().map(ServerStatus::json).collect::<Value>(),
            "runtimes": runtimes.map(|(name, _, has)| ((*name).to_owned(), Value::from(*has)))
                .collect::<serde_json::Map<_, _>>(),
        })
    }
}
