//! Starts sub-agents and continues them.

use super::background::{self, Background};
use super::background_run::{BackgroundRun, RunInput};
use super::control;
use super::names::fresh_id;
use super::observe::{RunOutcome, in_time, observe};
use super::pending::PendingQuestion;
use super::reply;
use super::tasks::{self, Task, TaskRecord, Tasks};
use super::team::{Member, MemberSource, Team};
use super::{Child, SubagentSetup};
use crate::agent::{Handle, Settings, WeakHandle};
use crate::{Agent, Event, Events, Hooks, Message, Model, Resumed, ToolCall};
use async_trait::async_trait;
use haft::{ApprovalAnswer, Context, Error, Narrow, Reply, Runtime, State};
use std::sync::Arc;

/// Starts the sub-agents of one agent.
pub(super) struct Dispatcher {
    pub(super) team: Arc<Team>,
    /// The agent that the sub-agents work for.
    parent: WeakHandle,
    session: String,
    settings: Settings,
    depth: usize,
    tasks: Tasks,
}

/// Work for a sub-agent.
pub(super) struct WorkRequest {
    pub(super) member: Arc<Member>,
    pub(super) prompt: String,
    /// Short description of the work.
    pub(super) description: String,
    /// Id of the task to continue; `None` starts a new one.
    pub(super) task_id: Option<String>,
}

impl Dispatcher {
    pub(super) fn new(team: &Arc<Team>, agent: &Agent, depth: usize) -> Self {
        Self {
            team: Arc::clone(team),
            parent: agent.handle().weak(),
            session: agent.session().to_owned(),
            settings: agent.settings.clone(),
            depth,
            tasks: Tasks::default(),
        }
    }

    /// Runs a sub-agent and waits for its reply.
    pub(super) async fn work(&self, request: WorkRequest, cx: &Context) -> Result<Reply, Error> {
        self.check_session(cx)?;
        let _permit = self.acquire(cx).await?;
        let (task, events) = self.begin(&request, cx).await?;
        self.tasks.keep(&task);
        let show = |status: String| cx.update(status);
        let (parent, limits) = (&self.parent, &self.settings);
        let stop = cx.cancel().child_token();
        let parent = (parent, Handle::forward as fn(&Handle, Event));
        let outcome = observe(&task.agent, events, parent, limits, &stop, &show);
        let outcome = in_time(outcome, &task.agent, &stop, cx).await;
        let waits = matches!(outcome, RunOutcome::Waits { .. }).then(|| {
            let asks = task.agent.pending_calls().into_iter().map(Into::into);
            (cx.call_id(), asks.collect())
        });
        let id = task.agent.session();
        tasks::store(
            cx.state().outermost(),
            &self.session,
            id,
            task.what(),
            waits,
        );
        reply::from_outcome(outcome, &self.name_of(&task.kind), id, cx)
    }

    /// Refuses calls from another session, which could be at another depth than this
    /// dispatcher assumes.
    pub(super) fn check_session(&self, cx: &Context) -> Result<(), Error> {
        match cx.runtime().session() == self.session {
            true => Ok(()),
            false => Err(Error::failed(
                "sub-agents cannot be called from here: they belong to another session",
            )),
        }
    }

    /// Returns the display name of a sub-agent, given the name of its tool.
    pub(super) fn name_of(&self, kind: &str) -> String {
        let member = self.team.member(kind);
        member.map_or_else(|| kind.to_owned(), |member| member.name.clone())
    }

    /// Returns the background tasks.
    pub(super) fn background(&self) -> Result<Arc<Background>, Error> {
        let parent = self.parent.upgrade().ok_or(Error::Cancelled)?;
        Ok(parent.background())
    }

    /// Starts or continues a sub-agent in the background.
    pub(super) fn start(&self, request: WorkRequest, cx: &Context) -> Result<Reply, Error> {
        self.check_session(cx)?;
        if let Some(ApprovalAnswer::Reject { reason }) = cx.answer() {
            return Err(not_started(reason.as_deref()));
        }
        let caller = Caller::Leaves(cx.call_id());
        let task = match &request.task_id {
            None => {
                self.has_room()?;
                self.fresh(&request, caller)?
            }
            Some(id) => self.found(&self.same(id, &request.member, cx)?, caller)?,
        };
        let id = task.agent.session().to_owned();
        let name = self.name_of(&task.kind);
        let status = self.launch(task, RunInput::Prompt(request.prompt))?;
        let waits = match status {
            "queued" => " It starts when another background task is done.",
            _ => "",
        };
        let text = format!(
            "started task {id} ({name}) in the background.{waits} Continue with something else: \
             a message will tell you when it has ended"
        );
        Ok(control::status_reply(&text, &id, status, cx))
    }

    /// Continues a task in the background. Returns its status.
    pub(super) fn continue_task(
        &self,
        found: &TaskRecord,
        prompt: String,
        cx: &Context,
    ) -> Result<&'static str, Error> {
        let task = self.found(found, Caller::Leaves(cx.call_id()))?;
        self.launch(task, RunInput::Prompt(prompt))
    }

    /// Restarts a background task that waited for approval.
    pub(super) fn restart(
        &self,
        found: &TaskRecord,
        answers: Vec<(String, ApprovalAnswer)>,
    ) -> Result<(), Error> {
        // The record already has the call that started the task.
        let task = self.found(found, Caller::Leaves(""))?;
        let prompt = None;
        self.launch(task, RunInput::Resume(Resumed { answers, prompt }))?;
        Ok(())
    }

    fn has_room(&self) -> Result<(), Error> {
        let live = self.background()?.live().len();
        match live < background::MAX_LIVE {
            true => Ok(()),
            false => Err(Error::Failed {
                text: format!(
                    "too many background tasks ({live}/{})",
                    background::MAX_LIVE
                ),
                hint: Some("wait for one with check_task, or stop one with cancel_task".to_owned()),
            }),
        }
    }

    /// Starts a task in the background, or queues it. Returns its status.
    fn launch(&self, task: Arc<Task>, input: RunInput) -> Result<&'static str, Error> {
        self.has_room()?;
        let permits = self.team.background.get(self.depth).ok_or_else(too_deep)?;
        let parent = self.parent.upgrade().ok_or(Error::Cancelled)?;
        let background = parent.background();
        let is_live = background.job(task.agent.session());
        if is_live.is_some_and(|job| job.is_live()) || task.agent.handle().is_busy() {
            return Err(at_work(&task));
        }
        self.tasks.keep(&task);
        let job = background.add(task);
        let run = BackgroundRun {
            job,
            background: Arc::downgrade(&background),
            permits: Arc::clone(permits),
            parent: self.parent.clone(),
            session: self.session.clone(),
            settings: self.settings.clone(),
        };
        let permit = Arc::clone(permits).try_acquire_owned().ok();
        let status = match permit {
            Some(_) => {
                run.set_running();
                "running"
            }
            None => "queued",
        };
        run.mark(status, Vec::new());
        run.emit(status);
        tokio::spawn(run.run(input, permit));
        Ok(status)
    }

    /// Waits until another sub-agent may run.
    async fn acquire(&self, cx: &Context) -> Result<tokio::sync::SemaphorePermit<'_>, Error> {
        let permits = self.team.permits.get(self.depth).ok_or_else(too_deep)?;
        if let Ok(permit) = permits.try_acquire() {
            return Ok(permit);
        }
        cx.update("waiting for another sub-agent to finish");
        tokio::select! {
            permit = permits.acquire() => permit.map_err(|_| Error::Cancelled),
            () = cx.cancel().cancelled() => Err(Error::Cancelled),
        }
    }

    async fn begin(
        &self,
        request: &WorkRequest,
        cx: &Context,
    ) -> Result<(Arc<Task>, Events), Error> {
        // This call waited for approval before. The same work continues, and the user is
        // asked again if they have not answered.
        if let Some(found) = tasks::by_call(cx.state().outermost(), &self.session, cx.call_id()) {
            let answer = cx.answer();
            let task = self.found(&found, Caller::Waits(cx))?;
            let open = task.agent.pending_approvals();
            if matches!(answer, Some(ApprovalAnswer::ApproveWith { .. })) && open.len() > 1 {
                let open: Vec<_> = open.into_iter().map(|one| one.name).collect();
                return Err(Error::Waiting {
                    question: format!(
                        "{} calls are pending, and changed arguments can only be for one: approve \
                         or reject all, or answer each by its own id: {}",
                        open.len(),
                        open.join(", ")
                    ),
                });
            }
            let open = answerable(&task.agent, cx.state().outermost());
            // Answers for single calls, followed by the answer for all of them.
            let parent = self.parent.upgrade().ok_or(Error::Cancelled)?;
            let for_all = open.into_iter();
            let for_all = for_all.filter_map(|id| Some((id, answer?.clone())));
            let resumed = Resumed {
                answers: parent.answers_within().into_iter().chain(for_all).collect(),
                prompt: None,
            };
            let events = task.agent.resume(resumed).await;
            return Ok((
                task,
                events.map_err(|busy| Error::failed(busy.to_string()))?,
            ));
        }
        if let Some(ApprovalAnswer::Reject { reason }) = cx.answer() {
            return Err(not_started(reason.as_deref()));
        }
        let task = match &request.task_id {
            None => self.fresh(request, Caller::Waits(cx))?,
            Some(id) => self.found(&self.same(id, &request.member, cx)?, Caller::Waits(cx))?,
        };
        let prompt = request.prompt.clone();
        let is_queued = self.background()?.job(task.agent.session());
        if is_queued.is_some_and(|job| job.is_live()) {
            return Err(at_work(&task));
        }
        let bounded = bounded(&task.agent, &self.parent, &self.settings);
        let events = if pending_ids(&task.agent).is_empty() {
            bounded.prompt(prompt).await
        } else {
            let resumed = Resumed {
                answers: Vec::new(),
                prompt: Some(prompt.into()),
            };
            bounded.resume(resumed).await
        };
        let events = events.map_err(|_| at_work(&task))?;
        Ok((task, events))
    }

    /// Returns the task with this id, which must have the same type.
    fn same(&self, id: &str, member: &Member, cx: &Context) -> Result<TaskRecord, Error> {
        let found = match self.known(id, cx) {
            Err(Error::Failed { text, hint }) => {
                let hint = hint.map(|hint| format!("{hint}; omit task_id to start a new one"));
                return Err(Error::Failed { text, hint });
            }
            known => known?,
        };
        let (is, asked) = (&found.kind, &member.tool);
        match is == asked {
            true => Ok(found),
            false => Err(Error::Failed {
                text: format!("task {id} has subagent_type {is}, not {asked}"),
                hint: Some(format!(
                    "pass {is} to continue it, or omit task_id to start a new {asked}"
                )),
            }),
        }
    }

    /// Returns the pending calls of a sub-agent, according to its own record. `None` if neither
    /// it nor one of its background tasks waits for approval.
    pub(super) fn asks(&self, found: &TaskRecord) -> Option<Vec<PendingQuestion>> {
        // The record already has the call that started the task.
        let task = self.found(found, Caller::Leaves("")).ok()?;
        if task.agent.pending_approvals().is_empty() {
            return None;
        }
        let waiting = task.agent.pending_calls().into_iter();
        Some(waiting.map(Into::into).collect())
    }

    pub(super) fn known(&self, id: &str, cx: &Context) -> Result<TaskRecord, Error> {
        tasks::by_id(cx.state().outermost(), &self.session, id).ok_or_else(|| {
            let known = tasks::ids(cx.state().outermost(), &self.session);
            let known = match known.is_empty() {
                true => "no task was started yet".to_owned(),
                false => format!("known tasks: {}", known.join(", ")),
            };
            Error::Failed {
                text: format!("unknown task_id: {}", reply::cut(id, 80)),
                hint: Some(known),
            }
        })
    }

    /// Returns a task that was started before, in this process or another.
    pub(super) fn found(&self, found: &TaskRecord, caller: Caller<'_>) -> Result<Arc<Task>, Error> {
        self.tasks.get(&found.id, || self.restored(found, caller))
    }

    fn restored(&self, found: &TaskRecord, caller: Caller<'_>) -> Result<Task, Error> {
        let gone = |why: String| Error::Failed {
            text: format!("cannot continue task {}: {why}", found.id),
            hint: Some("start a new one, and tell it what is already done".to_owned()),
        };
        let records = self.team.records.as_ref();
        let records =
            records.ok_or_else(|| gone("its conversation was not recorded".to_owned()))?;
        let member = self.team.member(&found.kind);
        let member = member
            .ok_or_else(|| gone(format!("sub-agent {} does not exist any more", found.kind)))?;
        let agent = self.agent(member, found.id.clone(), caller)?;
        let child = self.child(&agent, member, caller.call_id());
        let agent = records.restore(agent, &child).map_err(gone)?;
        Ok(Task {
            agent,
            kind: member.tool.clone(),
            description: found.description.clone(),
        })
    }

    fn fresh(&self, request: &WorkRequest, caller: Caller<'_>) -> Result<Arc<Task>, Error> {
        let member = &request.member;
        let agent = self.agent(member, fresh_id(), caller)?;
        let begun = match &self.team.records {
            None => None,
            Some(records) => {
                let child = self.child(&agent, member, caller.call_id());
                records.begin(&child).map_err(|why| {
                    let name = &member.name;
                    Error::failed(format!("sub-agent {name} was not started: {why}"))
                })?
            }
        };
        let agent = match begun {
            Some(session) => agent.recorded_in(session),
            None => agent,
        };
        Ok(Arc::new(Task {
            agent,
            kind: member.tool.clone(),
            description: reply::cut(request.description.trim(), 80),
        }))
    }

    fn child(&self, agent: &Agent, member: &Member, call_id: &str) -> Child {
        Child {
            id: agent.session().to_owned(),
            parent: self.session.clone(),
            call_id: call_id.to_owned(),
            kind: member.tool.clone(),
            model: agent.model().id(),
            system: agent.settings.system.clone(),
        }
    }

    /// Creates an agent with an empty conversation.
    fn agent(&self, member: &Arc<Member>, id: String, caller: Caller<'_>) -> Result<Agent, Error> {
        let fail = |why: String| Error::failed(format!("sub-agent {}: {why}", member.name));
        let parent = self.parent.upgrade().ok_or(Error::Cancelled)?;
        let mut agent = match &member.how {
            MemberSource::Built(make) => {
                let narrow = narrow(member, id, &self.team.usual, &self.team);
                let start = SubagentSetup {
                    runtime: caller.session(parent.runtime(), narrow),
                    model: parent.model(),
                };
                make(start).map_err(fail)?
            }
            MemberSource::Spec {
                spec,
                tools,
                skills,
                format,
            } => {
                let model = match &spec.model {
                    None => parent.model(),
                    Some(name) => self.model(name).map_err(fail)?,
                };
                let narrow = narrow(member, id, tools, &self.team);
                let runtime = caller.session(parent.runtime(), narrow);
                let mut agent = Agent::new(model, runtime);
                agent.settings = self.settings.clone();
                agent.settings.format.clone_from(format);
                agent.settings.hooks = Arc::new(ToolHooks(Arc::clone(&self.settings.hooks)));
                if !skills.is_empty() {
                    // Replaces the parent's skills.
                    agent.tools().remove(crate::skills::SKILL);
                    let added = skills.add_to(agent.runtime());
                    added.map_err(|error| fail(error.to_string()))?;
                }
                super::tool::add_tools(&self.team, &agent, self.depth + 1, Some(tools))
                    .map_err(|error| fail(error.to_string()))?;
                let section = agent.runtime().prompt_section();
                agent.settings.system = system(
                    spec.system_prompt.as_deref(),
                    &self.team.surroundings,
                    &section,
                    &skills.section(),
                );
                agent
            }
        };
        parent.redact_key(&*agent.model());
        parent.share_session_with(&agent.shared);
        // A sub-agent's reply must include the work of its own background tasks.
        agent.settings.waits_for_background = true;
        agent.settings.parent = Some(self.session.clone());
        Ok(agent)
    }

    fn model(&self, name: &str) -> Result<Arc<dyn Model>, String> {
        let Some(find) = &self.team.model_by_name else {
            return Err(format!("unknown model {name}"));
        };
        find(name).map_err(|why| format!("its model {name}: {why}"))
    }
}

/// The call that starts or continues a sub-agent.
#[derive(Clone, Copy)]
pub(super) enum Caller<'a> {
    /// Waits for the sub-agent. The time limit of the call pauses while the user is asked.
    Waits(&'a Context),
    /// Leaves the sub-agent in the background. Holds the id of the call.
    Leaves(&'a str),
}

impl Caller<'_> {
    fn call_id(&self) -> &str {
        match self {
            Self::Waits(cx) => cx.call_id(),
            Self::Leaves(call_id) => call_id,
        }
    }

    /// Creates the session for the sub-agent.
    fn session(&self, outer: &Runtime, narrow: Narrow) -> Runtime {
        match self {
            Self::Waits(cx) => cx.narrowed(narrow),
            Self::Leaves(_) => outer.narrowed(narrow),
        }
    }
}

fn too_deep() -> Error {
    Error::failed("sub-agents cannot be nested more deeply")
}

fn not_started(reason: Option<&str>) -> Error {
    let why = reason.map(str::trim).unwrap_or_default();
    let colon = if why.is_empty() { "" } else { ": " };
    Error::failed(format!("not started: the user said no{colon}{why}"))
}

/// Describes the session of a sub-agent.
fn narrow(member: &Member, id: String, tools: &[String], team: &Team) -> Narrow {
    // The tools of sub-agents belong to one agent each.
    let tools: Vec<_> = tools
        .iter()
        .filter(|name| !team.has_tool(name))
        .cloned()
        .collect();
    let (interrupt_on, granted) = match &member.how {
        MemberSource::Built(_) => Default::default(),
        MemberSource::Spec { spec, .. } => {
            let waits = spec.interrupt_on.iter().filter(|(_, waits)| **waits);
            let waits = waits.map(|(name, _)| name.clone()).collect();
            let granted = if spec.may_exceed {
                tools.clone()
            } else {
                Vec::new()
            };
            (waits, granted)
        }
    };
    Narrow {
        id,
        tools,
        granted,
        interrupt_on,
        agent: Some(member.name.clone()),
    }
}

fn at_work(task: &Task) -> Error {
    let id = task.agent.session();
    Error::failed(format!(
        "task {id} is already running; wait for its end, or omit task_id to start another one"
    ))
}

/// Returns the same agent, limited to the tokens and the cost that its parent has left.
pub(super) fn bounded(agent: &Agent, parent: &WeakHandle, limits: &Settings) -> Agent {
    let mut settings = agent.settings.clone();
    if let Some(parent) = parent.upgrade() {
        let (tokens, cost) = parent.run_usage();
        let tokens = limits.max_tokens.map(|most| most.saturating_sub(tokens));
        let cost = limits.max_cost.map(|most| (most - cost).max(0.0));
        settings.max_tokens = less(settings.max_tokens, tokens, u64::min);
        settings.max_cost = less(settings.max_cost, cost, f64::min);
    }
    Agent {
        settings,
        shared: Arc::clone(&agent.shared),
    }
}

/// Returns the lower of two optional limits.
fn less<T>(a: Option<T>, b: Option<T>, lower: impl Fn(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(lower(a, b)),
        (a, b) => a.or(b),
    }
}

/// Returns the ids of an agent's calls that wait for approval.
fn pending_ids(agent: &Agent) -> Vec<String> {
    let conversation = agent.shared.lock();
    let open = conversation.open.as_ref();
    let pending = open.map(|open| open.pending.iter());
    let ids = pending.into_iter().flatten().map(|one| one.call_id.clone());
    ids.collect()
}

/// Returns the ids that an answer to all pending calls of an agent must name: its own calls and
/// its background tasks.
fn answerable(agent: &Agent, state: &State) -> Vec<String> {
    let tasks = tasks::background(state, agent.session()).into_iter();
    let tasks = tasks.filter(|one| one.status == "waiting");
    let mut all = pending_ids(agent);
    all.extend(tasks.map(|one| one.id));
    all
}

/// Builds the system prompt of a sub-agent.
fn system(own: Option<&str>, surroundings: &str, tools: &str, skills: &str) -> String {
    let parts = [
        own.unwrap_or("You work on one task from start to finish."),
        "You work for another agent. It receives your last message and nothing else, and cannot \
         answer questions: make decisions yourself, do the work with the tools, and end with \
         everything that it needs to know.",
        surroundings,
        tools,
        skills,
    ];
    let parts = parts.iter().map(|part| part.trim());
    let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

/// Applies an agent's hooks for tools to its sub-agents. The other hooks do not apply: a
/// sub-agent's prompt is not the user's, and it has its own conversation.
struct ToolHooks(Arc<dyn Hooks>);

#[async_trait]
impl Hooks for ToolHooks {
    async fn before_tool(&self, call: &mut ToolCall) -> Option<Reply> {
        self.0.before_tool(call).await
    }

    async fn after_tool(&self, call: &ToolCall, reply: &mut Reply) {
        self.0.after_tool(call, reply).await;
    }

    async fn transform_context(&self, _: &[Arc<Message>]) -> Option<Vec<Arc<Message>>> {
        None
    }
}
