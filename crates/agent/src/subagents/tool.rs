//! The tools: one for each sub-agent, and `task` for all of them.

use super::names::asked_for;
use super::start::{Desk, Wanted};
use super::team::{Member, SubagentError, TASK, Team};
use crate::Agent;
use futures::future::BoxFuture;
use haft::{AnyTool, Context, Definition, Effect, Error, Reply, Resource};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Gives an agent at this depth the tools of its sub-agents, or `only` some of them;
/// none, where it is too deep for that.
pub(super) fn seat(
    team: &Arc<Team>,
    agent: &Agent,
    depth: usize,
    only: Option<&[String]>,
) -> Result<(), SubagentError> {
    if depth >= team.places.len() {
        return Ok(());
    }
    let desk = Arc::new(Desk::new(team, agent, depth));
    let wanted = |tool: &str| only.is_none_or(|only| only.iter().any(|name| name == tool));
    for member in team.members.iter().filter(|member| wanted(&member.tool)) {
        let tool = One {
            definition: definition_of(member),
            member: Arc::clone(member),
            desk: Arc::clone(&desk),
        };
        let added = agent.tools().add_any(Arc::new(tool));
        added.map_err(|_| super::team::taken(member))?;
    }
    if wanted(TASK) {
        let tool = Task {
            definition: task_definition(team),
            desk: Arc::clone(&desk),
        };
        let added = agent.tools().add_any(Arc::new(tool));
        added.map_err(|_| SubagentError::NameTaken {
            name: TASK.to_owned(),
            tool: TASK.to_owned(),
        })?;
    }
    for tool in super::control::tools(&desk) {
        let name = tool.definition().name.clone();
        // Whoever can start them can look after them.
        if wanted(TASK) || wanted(&name) {
            let added = agent.tools().add_any(tool);
            added.map_err(|_| SubagentError::NameTaken {
                tool: name.clone(),
                name,
            })?;
        }
    }
    let background = &agent.shared.background;
    background.belongs_to(&desk);
    background.find_waiting(agent.runtime());
    Ok(())
}

fn definition_of(member: &Member) -> Definition {
    Definition {
        name: member.tool.clone(),
        description: format!(
            "{}\nA sub-agent: sees nothing of this conversation, answers once.",
            member.description.trim()
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "request": {
                    "type": "string",
                    "description": "What to do, with all it has to know.",
                },
            },
            "required": ["request"],
        }),
        guidance: None,
    }
}

fn task_definition(team: &Team) -> Definition {
    let text = |text: &str| json!({ "type": "string", "description": text });
    let types: Vec<_> = team.members.iter().map(|one| one.tool.as_str()).collect();
    let parameters = json!({
        "type": "object",
        "properties": {
            "description": text("The work in a few words."),
            "prompt": text("What to do, with all it has to know."),
            "subagent_type": text(&format!("One of: {}.", types.join(", "))),
            "task_id": text("To go on: as an earlier reply named it."),
            "background": {
                "type": "boolean",
                "description": "Return at once and let it work; you are told when it has ended.",
            },
        },
        "required": ["description", "prompt", "subagent_type"],
    });
    Definition {
        name: TASK.to_owned(),
        description: "Give work to a sub-agent, or go on with one. Calls made together run at \
                      the same time."
            .to_owned(),
        parameters,
        guidance: None,
    }
}

/// The tool of one sub-agent.
struct One {
    definition: Definition,
    member: Arc<Member>,
    desk: Arc<Desk>,
}

#[derive(Deserialize)]
struct OneArgs {
    request: String,
}

impl AnyTool for One {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn effect(&self) -> Effect {
        self.member.effect
    }

    fn resources(&self, _: &Value) -> Vec<Resource> {
        Vec::new()
    }

    // It ends by itself: its turns and what they cost have limits.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<Reply, Error>> {
        Box::pin(async move {
            let args: OneArgs = typed(arguments)?;
            if args.request.trim().is_empty() {
                return Err(Error::invalid("request must say what is to be done"));
            }
            let wanted = Wanted {
                member: Arc::clone(&self.member),
                description: args.request.clone(),
                prompt: args.request,
                task_id: None,
            };
            self.desk.work(wanted, cx).await
        })
    }
}

/// The tool of all of them.
struct Task {
    definition: Definition,
    desk: Arc<Desk>,
}

#[derive(Deserialize)]
struct TaskArgs {
    description: String,
    prompt: String,
    subagent_type: String,
    task_id: Option<String>,
    background: Option<bool>,
}

impl AnyTool for Task {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn effect(&self) -> Effect {
        self.desk.team.effect()
    }

    fn resources(&self, _: &Value) -> Vec<Resource> {
        Vec::new()
    }

    fn timeout(&self) -> Option<Duration> {
        None
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<Reply, Error>> {
        Box::pin(async move {
            let args: TaskArgs = typed(arguments)?;
            let is_blank = |text: &String| text.trim().is_empty();
            let given = [&args.prompt, &args.description];
            let Some(prompt) = given.into_iter().find(|text| !is_blank(text)) else {
                return Err(Error::invalid(
                    "either prompt or description must say what is to be done",
                ));
            };
            let team = &self.desk.team;
            let Some(member) = team.member(&asked_for(&args.subagent_type)) else {
                let known: Vec<_> = team.members.iter().map(|one| one.tool.as_str()).collect();
                return Err(Error::invalid(format!(
                    "parameter \"subagent_type\" must be one of {}",
                    known.join(", ")
                )));
            };
            let wanted = Wanted {
                member: Arc::clone(member),
                prompt: prompt.clone(),
                description: match is_blank(&args.description) {
                    true => args.prompt,
                    false => args.description,
                },
                task_id: args.task_id.filter(|id| !is_blank(id)),
            };
            match args.background {
                Some(true) => self.desk.start(wanted, cx),
                _ => self.desk.work(wanted, cx).await,
            }
        })
    }
}

fn typed<T: serde::de::DeserializeOwned>(arguments: Value) -> Result<T, Error> {
    serde_json::from_value(arguments).map_err(|error| Error::invalid(error.to_string()))
}
