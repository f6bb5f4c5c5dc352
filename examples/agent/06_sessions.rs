//! A session that outlives its process: recorded as it happens, resumed later.
//!
//! `cargo run -p haft-agent --example 06_sessions`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

mod model;

use haft::Runtime;
use haft_agent::Agent;
use haft_store::sessions::{NewSession, SessionKind, Sessions, new_id};
use model::{Told, answer};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("sessions.db");
    let id = new_id();
    {
        let sessions = Sessions::open(&file)?;
        let session = sessions.begin(NewSession {
            id: Some(id.clone()),
            kind: SessionKind::Agent,
            work_dir: dir.path().to_owned(),
            toolset: "standard".to_owned(),
            provider: "example".to_owned(),
            model: "told".to_owned(),
            title: None,
            parent: None,
            system: None,
        })?;
        let runtime = Runtime::builder().dir(dir.path()).session(&id).build()?;
        let agent = Agent::new(Told::model([answer("Noted.", None)]), runtime).recorded(session);
        let mut events = agent.prompt("My name is Ada").await?;
        while events.next().await.is_some() {}
    }
    // Later, in another process.
    let sessions = Sessions::open(&file)?;
    let (session, loaded) = sessions.resume(&id)?;
    let runtime = Runtime::builder().dir(dir.path()).session(&id).build()?;
    let agent =
        Agent::new(Told::model([answer("Ada.", None)]), runtime).resuming(session, &loaded)?;
    let mut events = agent.prompt("What is my name?").await?;
    while events.next().await.is_some() {}
    println!(
        "{} messages, the last: {}",
        agent.history().len(),
        agent.last_text()
    );
    assert_eq!(agent.history().len(), 4);
    Ok(())
}
