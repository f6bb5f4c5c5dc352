//! Many agents in one process, each with its own tools and session; all share one model and
//! one database.
//!
//! `cargo run -p haft-agent --example 07_many_at_once`, or with the address of a Chat
//! Completions server and the number of agents: `… -- http://127.0.0.1:8080 100`
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example shows its result"
)]

mod model;

use haft::Runtime;
use haft_agent::provider::{self, Provider, Settings};
use haft_agent::{Agent, AgentEvent, EventKind, Model};
use haft_store::sessions::{NewSession, SessionKind, Sessions};
use model::{Told, answer};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use tokio::task::JoinSet;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut words = std::env::args().skip(1);
    let server = words.next();
    let count: usize = words.next().map_or(Ok(100), |word| word.parse())?;
    let dir = tempfile::tempdir()?;
    for name in ["a.txt", "b.txt"] {
        std::fs::write(dir.path().join(name), format!("{name}\n").repeat(640))?;
    }
    let sessions = Sessions::open(dir.path().join("sessions.db"))?;
    let mut agents = JoinSet::new();
    for number in 0..count {
        let model = model(server.as_deref(), number)?;
        let agent = agent(model, dir.path(), &sessions)?;
        agents.spawn(async move {
            let mut events = agent.prompt("Read both files").await?;
            let mut reason = "";
            while let Some(event) = events.next().await {
                if let EventKind::Agent(AgentEvent::AgentEnd { reason: end, .. }) = event.kind {
                    reason = end;
                }
            }
            // Every agent is kept until the last one is done.
            Ok::<_, Failure>((agent, reason))
        });
    }
    let mut done = Vec::new();
    while let Some(agent) = agents.join_next().await {
        let (agent, reason) = agent??;
        assert_eq!(reason, "done");
        done.push(agent);
    }
    if let Some(peak) = peak() {
        println!("peak memory: {peak} KiB");
    }
    println!("{} sessions done", done.len());
    Ok(())
}

fn model(server: Option<&str>, number: usize) -> Result<Arc<dyn Model>, Failure> {
    let Some(server) = server else {
        let read = |id, path: &str| answer("", Some((id, "read", json!({ "path": path }))));
        let answers = [
            read("1", "a.txt"),
            read("2", "b.txt"),
            answer("Read.", None),
        ];
        return Ok(Told::model(answers));
    };
    let mut settings = Settings::new(Provider::OpenaiCompletions, "scripted");
    settings.base_url = Some(format!("{server}/{number}"));
    Ok(provider::connect(settings)?)
}

fn agent(model: Arc<dyn Model>, dir: &Path, sessions: &Sessions) -> Result<Agent, Failure> {
    let runtime = Runtime::builder().dir(dir).build()?;
    let id = model.id();
    let session = sessions.begin(NewSession {
        id: Some(runtime.session().to_owned()),
        kind: SessionKind::Agent,
        work_dir: dir.to_owned(),
        toolset: "standard".to_owned(),
        provider: id.provider,
        model: id.model,
        title: None,
        parent: None,
        system: None,
    })?;
    Ok(Agent::new(model, runtime).recorded(session))
}

/// Peak memory of this process in KiB, if the system reports it.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
