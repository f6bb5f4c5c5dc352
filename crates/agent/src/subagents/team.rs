//! The configured sub-agents, with their shared settings.

use super::control::{CANCEL, CHECK, MESSAGE};
use super::names::{GENERAL_PURPOSE, tool_name};
use super::{MakeAgent, ModelByName, Records, Subagent, SubagentSpec, Subagents};
use crate::ResponseFormat;
use crate::skills::{SkillFolder, Skills};
use haft::ops::text::decode::visible;
use haft::{Effect, Runtime, toolsets};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Name of the tool that starts any sub-agent.
pub(super) const TASK: &str = "task";

/// An invalid sub-agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubagentError {
    /// `tools` has tools that the agent does not have.
    #[error("sub-agent \"{name}\": unknown tools: {}; known tools: {}", unknown.join(", "), known.join(", "))]
    UnknownTools {
        /// Name of the sub-agent.
        name: String,
        /// Tools that the agent does not have.
        unknown: Vec<String>,
        /// Tools that the agent has.
        known: Vec<String>,
    },
    /// `tools` has tools that the preset hides from the agent, which only the user can allow.
    #[error("sub-agent \"{name}\": the agent itself does not have these tools: {}; only a sub-agent in your own haft.yaml, or in a file named with --config, may have more tools than the agent", tools.join(", "))]
    NotGranted {
        /// Name of the sub-agent.
        name: String,
        /// Tools that the agent does not have.
        tools: Vec<String>,
    },
    /// `response_format` is not a valid JSON Schema.
    #[error("sub-agent \"{name}\": response_format: {reason}")]
    BadFormat {
        /// Name of the sub-agent.
        name: String,
        /// Problem with the schema.
        reason: String,
    },
    /// `interrupt_on` has tools that the sub-agent does not have.
    #[error("sub-agent \"{name}\": interrupt_on names tools that it does not have: {}; it has: {}", unknown.join(", "), known.join(", "))]
    UnknownInterrupts {
        /// Name of the sub-agent.
        name: String,
        /// Tools that the sub-agent does not have.
        unknown: Vec<String>,
        /// Tools that it has.
        known: Vec<String>,
    },
    /// Another sub-agent or tool has the same name.
    #[error("sub-agent \"{name}\": a tool named \"{tool}\" already exists; choose another name")]
    NameTaken {
        /// Name of the sub-agent.
        name: String,
        /// Name of its tool.
        tool: String,
    },
}

/// A configured sub-agent.
pub(super) struct Member {
    /// Display name.
    pub(super) name: String,
    pub(super) tool: String,
    pub(super) description: String,
    pub(super) effect: Effect,
    pub(super) how: MemberSource,
}

/// Source of a sub-agent.
pub(super) enum MemberSource {
    Spec {
        spec: Box<SubagentSpec>,
        tools: Vec<String>,
        skills: Skills,
        format: Option<Arc<ResponseFormat>>,
    },
    Built(MakeAgent),
}

/// All sub-agents of an agent, and of its sub-agents.
pub(super) struct Team {
    pub(super) members: Vec<Arc<Member>>,
    pub(super) model_by_name: Option<ModelByName>,
    pub(super) records: Option<Arc<dyn Records>>,
    pub(super) surroundings: String,
    /// The file and todo tools of the outermost agent.
    pub(super) usual: Vec<String>,
    /// Limits how many run in parallel, per depth. With one semaphore for all depths, parents
    /// that wait could keep their sub-agents from starting.
    pub(super) permits: Vec<Semaphore>,
    /// The same limit for background tasks.
    pub(super) background: Vec<Arc<Semaphore>>,
}

impl Team {
    pub(super) async fn gather(
        subagents: Subagents,
        runtime: &Runtime,
    ) -> Result<(Self, Vec<String>), SubagentError> {
        let usual = usual_tools(runtime);
        let mut agents = subagents.agents;
        let has = |agent: &Subagent| tool_name(name_of(agent)) == GENERAL_PURPOSE;
        if !agents.iter().any(has) {
            agents.insert(0, general_purpose().into());
        }
        let own: BTreeSet<_> = agents.iter().map(|one| tool_name(name_of(one))).collect();
        let mut members: Vec<Arc<Member>> = Vec::new();
        let mut warnings = Vec::new();
        for agent in agents {
            let member = match agent {
                Subagent::Spec(spec) => {
                    let tools = tools_of(&spec, runtime, &usual, &own).await?;
                    from_spec(spec, tools, runtime, &mut warnings).await?
                }
                Subagent::Built {
                    name,
                    description,
                    make,
                } => Member {
                    tool: tool_name(&name),
                    name: shown(&name),
                    description,
                    effect: Effect::Write,
                    how: MemberSource::Built(make),
                },
            };
            let is_ours = is_ours(&member.tool);
            if is_ours || members.iter().any(|other| other.tool == member.tool) {
                return Err(taken(&member));
            }
            members.push(Arc::new(member));
        }
        let at_once = subagents.max_at_once.clamp(1, Semaphore::MAX_PERMITS);
        let team = Self {
            members,
            model_by_name: subagents.model_by_name,
            records: subagents.records,
            surroundings: subagents.surroundings,
            usual,
            permits: (0..subagents.max_depth)
                .map(|_| Semaphore::new(at_once))
                .collect(),
            background: (0..subagents.max_depth)
                .map(|_| Arc::new(Semaphore::new(at_once)))
                .collect(),
        };
        Ok((team, warnings))
    }

    pub(super) fn member(&self, tool: &str) -> Option<&Arc<Member>> {
        self.members.iter().find(|member| member.tool == tool)
    }

    /// Whether a tool belongs to sub-agents. Such a tool is never shared between agents.
    pub(super) fn has_tool(&self, tool: &str) -> bool {
        is_ours(tool) || self.member(tool).is_some()
    }

    /// Returns the strongest effect of any sub-agent.
    pub(super) fn effect(&self) -> Effect {
        let writes = |member: &Arc<Member>| member.effect == Effect::Write;
        match self.members.iter().any(writes) {
            true => Effect::Write,
            false => Effect::Read,
        }
    }
}

/// Names of the tools that work with any sub-agent.
pub const TASK_TOOLS: [&str; 4] = [TASK, CHECK, MESSAGE, CANCEL];

fn is_ours(tool: &str) -> bool {
    TASK_TOOLS.contains(&tool)
}

pub(super) fn taken(member: &Member) -> SubagentError {
    SubagentError::NameTaken {
        name: member.name.clone(),
        tool: member.tool.clone(),
    }
}

fn name_of(agent: &Subagent) -> &str {
    match agent {
        Subagent::Spec(spec) => &spec.name,
        Subagent::Built { name, .. } => name,
    }
}

/// Returns a name for display, on one line.
fn shown(name: &str) -> String {
    visible(&name.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn general_purpose() -> SubagentSpec {
    SubagentSpec {
        name: GENERAL_PURPOSE.to_owned(),
        description: "Works on a task of several steps on its own.".to_owned(),
        ..SubagentSpec::default()
    }
}

/// Returns the default tools of sub-agents: those of the toolset that read and write files, and
/// those that only use the session. Commands, network and added tools are excluded.
fn usual_tools(runtime: &Runtime) -> Vec<String> {
    let own = toolsets::by_name(runtime.toolset()).map(|toolset| {
        let names = toolset.tools.iter();
        names
            .map(|tool| tool.definition().name.clone())
            .collect::<BTreeSet<_>>()
    });
    let is_own = |name: &String| own.as_ref().is_none_or(|own| own.contains(name));
    let is_usual = |name: &String| {
        matches!(
            runtime.effect_of(name),
            Some(Effect::Read | Effect::Write | Effect::Pure)
        )
    };
    let names = runtime.tools().names().into_iter();
    names
        .filter(|name| is_own(name) && is_usual(name))
        .collect()
}

/// Returns the tools of a sub-agent, if all of them exist.
async fn tools_of(
    spec: &SubagentSpec,
    runtime: &Runtime,
    usual: &[String],
    own: &BTreeSet<String>,
) -> Result<Vec<String>, SubagentError> {
    let tools = spec.tools.clone().unwrap_or_else(|| usual.to_vec());
    let is_theirs = |name: &String| is_ours(name) || own.contains(name);
    let missing = |names: &[String]| {
        let known = runtime.tools().names();
        let is_granted = |name: &str| spec.may_exceed && runtime.reserved(name).is_some();
        let is_missing =
            |name: &&String| !known.contains(name) && !is_theirs(name) && !is_granted(name);
        let missing: Vec<_> = names.iter().filter(is_missing).cloned().collect();
        (missing, known)
    };
    if !missing(&tools).0.is_empty() {
        // Plugins may still be starting.
        runtime.ready().await;
    }
    let (unknown, known) = missing(&tools);
    let is_reserved = |name: &&String| runtime.reserved(name).is_some();
    let reserved: Vec<_> = unknown.iter().filter(is_reserved).cloned().collect();
    if !reserved.is_empty() {
        return Err(SubagentError::NotGranted {
            name: shown(&spec.name),
            tools: reserved,
        });
    }
    if !unknown.is_empty() {
        return Err(SubagentError::UnknownTools {
            name: shown(&spec.name),
            unknown: unknown.iter().map(|name| shown(name)).collect(),
            known,
        });
    }
    let interrupts = spec.interrupt_on.iter();
    let unknown: Vec<_> = interrupts
        .filter(|(name, waits)| **waits && !tools.contains(name))
        .map(|(name, _)| shown(name))
        .collect();
    if !unknown.is_empty() {
        return Err(SubagentError::UnknownInterrupts {
            name: shown(&spec.name),
            unknown,
            known: tools,
        });
    }
    Ok(tools)
}

async fn from_spec(
    spec: SubagentSpec,
    tools: Vec<String>,
    runtime: &Runtime,
    warnings: &mut Vec<String>,
) -> Result<Member, SubagentError> {
    let format = match &spec.response_format {
        None => None,
        Some(schema) => match ResponseFormat::new(schema.clone()) {
            Ok(format) => Some(Arc::new(format)),
            Err(reason) => {
                let name = shown(&spec.name);
                return Err(SubagentError::BadFormat { name, reason });
            }
        },
    };
    let folders: Vec<_> = spec.skills.iter().map(SkillFolder::named).collect();
    let (skills, bad) = Skills::load(runtime, &folders).await;
    let name = shown(&spec.name);
    warnings.extend(
        bad.into_iter()
            .map(|one| format!("sub-agent \"{name}\": {one}")),
    );
    // The tools may include other sub-agents, whose effects count too.
    let only_looks = |tool: &String| {
        let effect = runtime.effect_of(tool).or_else(|| runtime.reserved(tool));
        matches!(effect, Some(Effect::Read | Effect::Pure))
    };
    let effect = match tools.iter().all(only_looks) {
        true => Effect::Read,
        false => Effect::Write,
    };
    Ok(Member {
        tool: tool_name(&spec.name),
        name,
        description: spec.description.clone(),
        effect,
        how: MemberSource::Spec {
            spec: Box::new(spec),
            tools,
            skills,
            format,
        },
    })
}
