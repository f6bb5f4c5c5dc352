//! The tools that start sub-agents: one for each sub-agent, and `task` for all of them.

use super::dispatcher::{Dispatcher, WorkRequest};
use super::names::requested_tool;
use super::team::{Member, SubagentError, TASK, Team};
use crate::Agent;
use haft::{
    AnyTool, Context, Definition, Effect, Error, PreparedCall, Reply, prepared, read_arguments,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Adds the tools for sub-agents to an agent, or `only` some of them. Does nothing at the
/// maximum depth.
pub(super) fn add_tools(
    team: &Arc<Team>,
    agent: &Agent,
    depth: usize,
    only: Option<&[String]>,
) -> Result<(), SubagentError> {
    if depth >= team.permits.len() {
        return Ok(());
    }
    let dispatcher = Arc::new(Dispatcher::new(team, agent, depth));
    let is_included = |tool: &str| only.is_none_or(|only| only.iter().any(|name| name == tool));
    for member in team
        .members
        .iter()
        .filter(|member| is_included(&member.tool))
    {
        let tool = SubagentTool {
            definition: definition_of(member),
            member: Arc::clone(member),
            dispatcher: Arc::clone(&dispatcher),
        };
        let added = agent.tools().add_any(Arc::new(tool));
        added.map_err(|_| super::team::taken(member))?;
    }
    if is_included(TASK) {
        let tool = TaskTool {
            definition: task_definition(team),
            dispatcher: Arc::clone(&dispatcher),
        };
        let added = agent.tools().add_any(Arc::new(tool));
        added.map_err(|_| SubagentError::NameTaken {
            name: TASK.to_owned(),
            tool: TASK.to_owned(),
        })?;
    }
    for tool in super::control::tools(&dispatcher) {
        let name = tool.definition().name.clone();
        // An agent that can start background tasks can also control them.
        if is_included(TASK) || is_included(&name) {
            let added = agent.tools().add_any(tool);
            added.map_err(|_| SubagentError::NameTaken {
                tool: name.clone(),
                name,
            })?;
        }
    }
    let background = &agent.shared.background;
    background.set_dispatcher(&dispatcher);
    background.find_waiting(agent.runtime());
    Ok(())
}

fn definition_of(member: &Member) -> Definition {
    Definition {
        name: member.tool.clone(),
        description: format!(
            "{}\nA sub-agent: does not see this conversation, answers once.",
            member.description.trim()
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "request": {
                    "type": "string",
                    "description": "What to do, with everything it needs to know.",
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
            "description": text("Short description of the work."),
            "prompt": text("What to do, with everything it needs to know."),
            "subagent_type": text(&format!("One of: {}.", types.join(", "))),
            "task_id": text("To continue a task: the id from an earlier reply."),
            "background": {
                "type": "boolean",
                "description": "Return immediately; a message tells you when it has ended.",
            },
        },
        "required": ["description", "prompt", "subagent_type"],
    });
    Definition {
        name: TASK.to_owned(),
        description: "Give work to a sub-agent, or continue one. Calls made together run in \
                      parallel."
            .to_owned(),
        parameters,
        guidance: None,
    }
}

/// The tool of one sub-agent.
struct SubagentTool {
    definition: Definition,
    member: Arc<Member>,
    dispatcher: Arc<Dispatcher>,
}

#[derive(Deserialize)]
struct SubagentArgs {
    request: String,
}

impl AnyTool for SubagentTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn effect(&self) -> Effect {
        self.member.effect
    }

    fn prepare(self: Arc<Self>, arguments: Arc<Value>) -> Result<Box<dyn PreparedCall>, Error> {
        let args = read_arguments(&arguments)?;
        Ok(prepared(Vec::new(), move |cx| async move {
            self.call(args, &cx).await
        }))
    }

    // A sub-agent has limits on turns, tokens and cost instead.
    fn timeout(&self) -> Option<Duration> {
        None
    }
}

impl SubagentTool {
    async fn call(&self, args: SubagentArgs, cx: &Context) -> Result<Reply, Error> {
        if args.request.trim().is_empty() {
            return Err(Error::invalid("parameter \"request\" must not be empty"));
        }
        let request = WorkRequest {
            member: Arc::clone(&self.member),
            description: args.request.clone(),
            prompt: args.request,
            task_id: None,
        };
        self.dispatcher.work(request, cx).await
    }
}

/// The tool `task`, which starts any sub-agent.
struct TaskTool {
    definition: Definition,
    dispatcher: Arc<Dispatcher>,
}

#[derive(Deserialize)]
struct TaskArgs {
    description: String,
    prompt: String,
    subagent_type: String,
    task_id: Option<String>,
    background: Option<bool>,
}

impl AnyTool for TaskTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn effect(&self) -> Effect {
        self.dispatcher.team.effect()
    }

    fn prepare(self: Arc<Self>, arguments: Arc<Value>) -> Result<Box<dyn PreparedCall>, Error> {
        let args = read_arguments(&arguments)?;
        Ok(prepared(Vec::new(), move |cx| async move {
            self.call(args, &cx).await
        }))
    }

    fn timeout(&self) -> Option<Duration> {
        None
    }
}

impl TaskTool {
    async fn call(&self, args: TaskArgs, cx: &Context) -> Result<Reply, Error> {
        let is_blank = |text: &String| text.trim().is_empty();
        let given = [&args.prompt, &args.description];
        let Some(prompt) = given.into_iter().find(|text| !is_blank(text)) else {
            return Err(Error::invalid(
                "parameters \"prompt\" and \"description\" must not both be empty",
            ));
        };
        let team = &self.dispatcher.team;
        let Some(member) = team.member(&requested_tool(&args.subagent_type)) else {
            let known: Vec<_> = team.members.iter().map(|one| one.tool.as_str()).collect();
            return Err(Error::invalid(format!(
                "parameter \"subagent_type\" must be one of {}",
                known.join(", ")
            )));
        };
        let request = WorkRequest {
            member: Arc::clone(member),
            prompt: prompt.clone(),
            description: match is_blank(&args.description) {
                true => args.prompt,
                false => args.description,
            },
            task_id: args.task_id.filter(|id| !is_blank(id)),
        };
        match args.background {
            Some(true) => self.dispatcher.start(request, cx),
            _ => self.dispatcher.work(request, cx).await,
        }
    }
}
