//! Sub-agents: which ones an agent has, and how they are recorded.

use super::model_of;
use crate::exit::Failure;
use crate::output;
use haft_agent::{Agent, Child, ModelByName, Records, Subagent, SubagentSpec, Subagents};
use haft_config::{Settings, model};
use haft_store::record::SessionRecord;
use haft_store::sessions::{NewSession, SessionKind, Sessions};
use std::path::PathBuf;
use std::sync::Arc;

/// Toolset that offers sub-agents even if none are configured.
const ALWAYS: &str = "deepagents";

/// Adds the configured sub-agents to an agent.
pub(super) async fn with_children(
    agent: Agent,
    settings: &Settings,
    model: &model::Model,
    sessions: Option<&Sessions>,
    surroundings: String,
) -> Result<Agent, Failure> {
    if model.subagents.is_empty() && settings.toolset != ALWAYS {
        return Ok(agent);
    }
    let mut agents = Vec::new();
    for described in &model.subagents {
        let spec: SubagentSpec =
            serde_json::from_value(described.spec.clone()).map_err(|error| {
                let from = &described.from;
                Failure::usage(format!("{from}: subagents: {error}"))
            })?;
        agents.push(Subagent::Spec(SubagentSpec {
            // Only the user can grant more rights than the parent has, never a project,
            // trusted or not.
            may_exceed: !described.is_project,
            ..spec
        }));
    }
    let own = model.clone();
    let by_name: ModelByName = Arc::new(move |name| match model_of(&own, Some(name)) {
        Ok(Some(model)) => Ok(model),
        Ok(None) => Err(format!("no provider configured for model {name}")),
        Err(failure) => Err(failure.message),
    });
    let records = sessions.map(|sessions| {
        let recorded = ChildRecords {
            sessions: sessions.clone(),
            work_dir: settings.paths.work_dir.clone(),
            toolset: settings.toolset.clone(),
        };
        Arc::new(recorded) as Arc<dyn Records>
    });
    let subagents = Subagents {
        agents,
        model_by_name: Some(by_name),
        records,
        surroundings,
        ..Subagents::default()
    };
    let (agent, warnings) = agent
        .subagents(subagents)
        .await
        .map_err(|error| Failure::usage(format!("subagents: {error}")))?;
    if !settings.quiet {
        for warning in warnings {
            output::note(&format!("warning: {warning}"));
        }
    }
    Ok(agent)
}

/// Records sub-agents as sessions with a parent.
struct ChildRecords {
    sessions: Sessions,
    work_dir: PathBuf,
    toolset: String,
}

impl Records for ChildRecords {
    fn begin(&self, child: &Child) -> Result<Option<Arc<dyn SessionRecord>>, String> {
        let new = NewSession {
            id: Some(child.id.clone()),
            kind: SessionKind::Agent,
            work_dir: self.work_dir.clone(),
            toolset: self.toolset.clone(),
            provider: child.model.provider.clone(),
            model: child.model.model.clone(),
            title: None,
            parent: Some((child.parent.clone(), child.call_id.clone())),
            system: Some(child.system.clone()),
        };
        let begun = self.sessions.begin(new);
        let begun = begun.map_err(|error| error.to_string())?;
        Ok(Some(Arc::new(begun)))
    }

    fn restore(&self, agent: Agent, child: &Child) -> Result<Agent, String> {
        let message = |error: haft_store::sessions::Error| error.to_string();
        let stored = self.sessions.load(&child.id).map_err(message)?;
        let parent = stored.info.parent.as_ref().map(|(session, _)| session);
        if stored.info.id != child.id || parent != Some(&child.parent) {
            return Err(format!("task {} was not started by this session", child.id));
        }
        let (session, loaded) = self.sessions.resume(&child.id).map_err(message)?;
        agent
            .resuming(session, &loaded)
            .map_err(|error| error.to_string())
    }
}
