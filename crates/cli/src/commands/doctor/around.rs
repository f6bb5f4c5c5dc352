//! What an agent needs beside its sandbox: somebody to ask, and what tools are run by.

use crate::commands::mcp_servers::{Known, known};
use crate::config::Settings;
use crate::text::on_one_line;
use crate::{agent, env};
use haft::ops::text::decode::visible;
use haft_agent::provider::Provider;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Where Ollama listens unless it is told otherwise.
const OLLAMA: &str = "127.0.0.1:11434";

/// A server on this machine answers within that, or it is not there.
const QUICK: Duration = Duration::from_millis(300);

/// The most that is read of a list of models.
const MOST: u64 = 1 << 20;

/// How many models are named.
const NAMED: usize = 5;

/// Programs, and what is written for them.
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

/// What was found.
pub(super) struct Around {
    model: Asked,
    keys: Vec<(String, &'static str, bool)>,
    ollama: Result<Vec<String>, String>,
    runtimes: Vec<(&'static str, &'static str, bool)>,
    servers: Vec<Known>,
}

/// Who would be asked.
enum Asked {
    Nobody,
    Model { provider: String, model: String },
    Wrong(String),
}

/// Looks around.
pub(super) async fn look(settings: &Settings) -> Around {
    let model = match agent::model(settings) {
        Ok(None) => Asked::Nobody,
        Ok(Some(model)) => Asked::Model {
            provider: model.id().provider,
            model: match settings.as_written("model") {
                Some(written) => written.to_owned(),
                None => model.id().model,
            },
        },
        Err(failure) => Asked::Wrong(failure.message),
    };
    let is_set = |variable: &str| env::text(variable).is_some_and(|key| !key.trim().is_empty());
    // Two protocols of one provider have one key.
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
    let folders = env::paths("PATH");
    let has = |program: &str| {
        folders
            .iter()
            .any(|folder| is_program(&folder.join(program)))
    };
    let (address, place) = ollama_address(settings);
    Around {
        model,
        keys,
        ollama: ollama(&address)
            .await
            .map_err(|problem| format!("{problem} at {place}")),
        runtimes: RUNTIMES
            .map(|(name, what)| (name, what, has(name)))
            .to_vec(),
        servers: known(settings),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "programs of the person's PATH, which no tool can name"
)]
fn is_program(path: &std::path::Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Where it is, by the configuration or as usual, and how that is shown.
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

/// The models that it has, or what is wrong.
async fn ollama(address: &str) -> Result<Vec<String>, &'static str> {
    let asked = tokio::time::timeout(QUICK, async {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("GET /api/tags HTTP/1.0\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.take(MOST).read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    });
    let answer = asked.await.ok().and_then(Result::ok);
    let answer = answer.ok_or("nothing answers")?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body);
    let body: Option<Value> = body.and_then(|body| serde_json::from_str(body).ok());
    let models = body
        .as_ref()
        .and_then(|body| body.get("models")?.as_array());
    let models = models.ok_or("something else answers")?;
    let names = models
        .iter()
        .filter_map(|model| model.get("name")?.as_str());
    Ok(names.map(str::to_owned).collect())
}

impl Around {
    /// In words, with what to do about what is not there.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![match &self.model {
            Asked::Model { provider, model } => format!("model: {model} ({provider})"),
            Asked::Nobody => "model: none yet; a key or Ollama gives one".to_owned(),
            Asked::Wrong(why) => format!("model: none: {why}"),
        }];
        for (providers, variable, is_set) in &self.keys {
            lines.push(match is_set {
                true => format!("  {providers}: {variable} is set"),
                false => format!("  {providers}: no key; export {variable}=…"),
            });
        }
        lines.push(match &self.ollama {
            Ok(models) if models.is_empty() => {
                "  ollama: answers, and has no model; `ollama pull NAME`".to_owned()
            }
            Ok(models) => {
                let named = models.iter().take(NAMED).cloned().collect::<Vec<_>>();
                let more = match models.len().saturating_sub(NAMED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                format!(
                    "  ollama: has {}{more}; `provider: ollama` and `model: NAME` in haft.yaml",
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
            lines.push(format!("  {name} is not on PATH: {what} need it"));
        }
        if !self.servers.is_empty() {
            lines.push("MCP servers (`haft mcp test NAME` reaches one):".to_owned());
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

    /// The same for programs.
    pub(super) fn json(&self) -> Value {
        let keys = self.keys.iter();
        let runtimes = self.runtimes.iter();
        json!({
            "model": match &self.model {
                Asked::Model { provider, model } => json!({ "provider": provider, "model": model }),
                Asked::Nobody => Value::Null,
                Asked::Wrong(why) => json!({ "problem": why }),
            },
            "keys": keys.map(|(_, name, is_set)| ((*name).to_owned(), Value::from(*is_set)))
                .collect::<serde_json::Map<_, _>>(),
            "ollama": match &self.ollama {
                Ok(models) => json!({ "models": models }),
                Err(why) => json!({ "problem": why }),
            },
            "mcp": self.servers.iter().map(Known::json).collect::<Value>(),
            "runtimes": runtimes.map(|(name, _, has)| ((*name).to_owned(), Value::from(*has)))
                .collect::<serde_json::Map<_, _>>(),
        })
    }
}
