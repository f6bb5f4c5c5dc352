//! Starting a sub-agent, or going on with one.

use super::background::{self, Background};
use super::control;
use super::drive::{Begin, Drive};
use super::follow::{Followed, follow, in_time};
use super::names::fresh_id;
use super::reply;
use super::tasks::{self, Remembered, Task, Tasks};
use super::team::{How, Member, Team};
use super::within::Ask;
use super::{Child, Start};
use crate::agent::{Handle, Settings, WeakHandle};
use crate::{Agent, Event, Events, Hooks, Model, Resumed, Said, ToolCall};
use async_trait::async_trait;
use haft::{Answer, Context, Error, Narrow, Reply, Runtime, State};
use std::sync::Arc;

/// What an agent needs to have sub-agents.
pub(super) struct Desk {
    pub(super) team: Arc<Team>,
    /// The agent whose sub-agents they are, and its session.
    parent: WeakHandle,
    session: String,
    settings: Settings,
    depth: usize,
    tasks: Tasks,
}

/// Work for a sub-agent.
pub(super) struct Wanted {
    pub(super) member: Arc<Member>,
    pub(super) prompt: String,
    /// The work in a few words.
    pub(super) description: String,
    /// The one that goes on, if it is not a new one.
    pub(super) task_id: Option<String>,
}

impl Desk {
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

    /// Has work done, and waits for what comes of it.
    pub(super) async fn work(&self, wanted: Wanted, cx: &Context) -> Result<Reply, Error> {
        self.is_here(cx)?;
        let _place = self.place(cx).await?;
        let (task, events) = self.begin(&wanted, cx).await?;
        self.tasks.hold(&task);
        let show = |status: String| cx.update(status);
        let (parent, limits) = (&self.parent, &self.settings);
        let stop = cx.cancel().child_token();
        let parent = (parent, Handle::pass_on as fn(&Handle, Event));
        let followed = follow(&task.agent, events, parent, limits, &stop, &show);
        let followed = in_time(followed, &task.agent, &stop, cx).await;
        let waits = matches!(followed, Followed::Waits { .. }).then(|| {
            let asks = task.agent.waiting().into_iter().map(Into::into);
            (cx.call_id(), asks.collect())
        });
        let id = task.agent.session();
        tasks::remember(
            cx.state().outermost(),
            &self.session,
            id,
            task.what(),
            waits,
        );
        reply::of(followed, &self.name_of(&task.kind), id, cx)
    }

    /// Refuses calls of another session. In a session within this one it would be somebody
    /// else's: one that works more deeply than it says.
    pub(super) fn is_here(&self, cx: &Context) -> Result<(), Error> {
        match cx.runtime().session() == self.session {
            true => Ok(()),
            false => Err(Error::failed(
                "sub-agents cannot be asked from here: they work for another session",
            )),
        }
    }

    /// A sub-agent's name for people, by the name of its tool.
    pub(super) fn name_of(&self, kind: &str) -> String {
        let member = self.team.member(kind);
        member.map_or_else(|| kind.to_owned(), |member| member.name.clone())
    }

    /// The sub-agents in the background.
    pub(super) fn background(&self) -> Result<Arc<Background>, Error> {
        let parent = self.parent.upgrade().ok_or(Error::Cancelled)?;
        Ok(parent.background())
    }

    /// Has work done in the background.
    pub(super) fn start(&self, wanted: Wanted, cx: &Context) -> Result<Reply, Error> {
        self.is_here(cx)?;
        if let Some(Answer::Reject { reason }) = cx.answer() {
            return Err(not_started(reason.as_deref()));
        }
        let caller = Caller::Leaves(cx.call_id());
        let task = match &wanted.task_id {
            None => {
                self.has_room()?;
                self.fresh(&wanted, caller)?
            }
            Some(id) => self.found(&self.same(id, &wanted.member, cx)?, caller)?,
        };
        let id = task.agent.session().to_owned();
        let name = self.name_of(&task.kind);
        let status = self.launch(task, Begin::Prompt(wanted.prompt))?;
        let waits = match status {
            "queued" => " It begins when another background task is done.",
            _ => "",
        };
        let text = format!(
            "started task {id} ({name}) in the background.{waits} Go on with something else: you \
             are told when it has ended"
        );
        Ok(control::said(&text, &id, status, cx))
    }

    /// Goes on with one in the background. Returns its status.
    pub(super) fn go_on(
        &self,
        found: &Remembered,
        prompt: String,
        cx: &Context,
    ) -> Result<&'static str, Error> {
        let task = self.found(found, Caller::Leaves(cx.call_id()))?;
        self.launch(task, Begin::Prompt(prompt))
    }

    /// Starts one again in the background that waited for a person.
    pub(super) fn restart(
        &self,
        found: &Remembered,
        answers: Vec<(String, Answer)>,
    ) -> Result<(), Error> {
        // Its record has the call that it was started by.
        let task = self.found(found, Caller::Leaves(""))?;
        let prompt = None;
        self.launch(task, Begin::Resume(Resumed { answers, prompt }))?;
        Ok(())
    }

    fn has_room(&self) -> Result<(), Error> {
        let live = self.background()?.live().len();
        match live < background::MOST {
            true => Ok(()),
            false => Err(Error::Failed {
                text: format!("too many background tasks ({live}/{})", background::MOST),
                hint: Some("check_task with wait waits for one, cancel_task stops one".to_owned()),
            }),
        }
    }

    /// Sets one to work in the background, or queues it. Returns which.
    fn launch(&self, task: Arc<Task>, begin: Begin) -> Result<&'static str, Error> {
        self.has_room()?;
        let places = self.team.background.get(self.depth).ok_or_else(too_deep)?;
        let parent = self.parent.upgrade().ok_or(Error::Cancelled)?;
        let background = parent.background();
        let is_live = background.job(task.agent.session());
        if is_live.is_some_and(|job| job.is_live()) || task.agent.handle().is_at_work() {
            return Err(at_work(&task));
        }
        self.tasks.hold(&task);
        let job = background.add(task);
        let drive = Drive {
            job,
            background: Arc::downgrade(&background),
            places: Arc::clone(places),
            parent: self.parent.clone(),
            session: self.session.clone(),
            settings: self.settings.clone(),
        };
        let place = Arc::clone(places).try_acquire_owned().ok();
        let status = match place {
            Some(_) => {
                drive.begins();
                "running"
            }
            None => "queued",
        };
        drive.mark(status, Vec::new());
        drive.tell(status);
        tokio::spawn(drive.run(begin, place));
        Ok(status)
    }

    /// Waits until there is a place to work.
    async fn place(&self, cx: &Context) -> Result<tokio::sync::SemaphorePermit<'_>, Error> {
        let places = self.team.places.get(self.depth).ok_or_else(too_deep)?;
        if let Ok(place) = places.try_acquire() {
            return Ok(place);
        }
        cx.update("waits until another sub-agent is done");
        tokio::select! {
            place = places.acquire() => place.map_err(|_| Error::Cancelled),
            () = cx.cancel().cancelled() => Err(Error::Cancelled),
        }
    }

    async fn begin(&self, wanted: &Wanted, cx: &Context) -> Result<(Arc<Task>, Events), Error> {
        // This very call has waited for a person. Who has not answered is asked again, for
        // the same work: it does not begin anew.
        if let Some(found) = tasks::waiting(cx.state().outermost(), &self.session, cx.call_id()) {
            let answer = cx.answer();
            let task = self.found(&found, Caller::Waits(cx))?;
            let open = task.agent.questions();
            if matches!(answer, Some(Answer::ApproveWith { .. })) && open.len() > 1 {
                let open: Vec<_> = open.into_iter().map(|one| one.name).collect();
                return Err(Error::Waiting {
                    question: format!(
                        "{} calls wait, and changed arguments would be for one: approve or \
                         reject, or answer each by its own id: {}",
                        open.len(),
                        open.join(", ")
                    ),
                });
            }
            let open = answerable(&task.agent, cx.state().outermost());
            // Those that were given for one of its own calls, and for all of them.
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
        if let Some(Answer::Reject { reason }) = cx.answer() {
            return Err(not_started(reason.as_deref()));
        }
        let task = match &wanted.task_id {
            None => self.fresh(wanted, Caller::Waits(cx))?,
            Some(id) => self.found(&self.same(id, &wanted.member, cx)?, Caller::Waits(cx))?,
        };
        let prompt = wanted.prompt.clone();
        let is_queued = self.background()?.job(task.agent.session());
        if is_queued.is_some_and(|job| job.is_live()) {
            return Err(at_work(&task));
        }
        let bounded = bounded(&task.agent, &self.parent, &self.settings);
        let events = if waiting(&task.agent).is_empty() {
            bounded.prompt(prompt).await
        } else {
            let resumed = Resumed {
                answers: Vec::new(),
                prompt: Some(prompt),
            };
            bounded.resume(resumed).await
        };
        let events = events.map_err(|_| at_work(&task))?;
        Ok((task, events))
    }

    /// The task of this id, which must be a sub-agent of this type.
    fn same(&self, id: &str, member: &Member, cx: &Context) -> Result<Remembered, Error> {
        let found = match self.known(id, cx) {
            Err(Error::Failed { text, hint }) => {
                let hint = hint.map(|hint| format!("{hint}; leave task_id out to start a new one"));
                return Err(Error::Failed { text, hint });
            }
            known => known?,
        };
        let (is, asked) = (&found.kind, &member.tool);
        match is == asked {
            true => Ok(found),
            false => Err(Error::Failed {
                text: format!("task {id} is of the subagent_type {is}, not {asked}"),
                hint: Some(format!(
                    "pass {is} to go on with it, or leave task_id out to start a new {asked}"
                )),
            }),
        }
    }

    /// The calls of a remembered sub-agent that wait for a person, by its own record. Nothing,
    /// if neither it waits nor one that it has in the background.
    pub(super) fn asks(&self, found: &Remembered) -> Option<Vec<Ask>> {
        // Its record has the call that it was started by.
        let task = self.found(found, Caller::Leaves("")).ok()?;
        if task.agent.questions().is_empty() {
            return None;
        }
        let waiting = task.agent.waiting().into_iter();
        Some(waiting.map(Into::into).collect())
    }

    pub(super) fn known(&self, id: &str, cx: &Context) -> Result<Remembered, Error> {
        tasks::remembered(cx.state().outermost(), &self.session, id).ok_or_else(|| {
            let known = tasks::known(cx.state().outermost(), &self.session);
            let known = match known.is_empty() {
                true => "there is none yet".to_owned(),
                false => format!("there are: {}", known.join(", ")),
            };
            Error::Failed {
                text: format!("no task has the task_id {}", reply::cut(id, 80)),
                hint: Some(known),
            }
        })
    }

    /// One that was started before, in this process or another.
    pub(super) fn found(&self, found: &Remembered, caller: Caller<'_>) -> Result<Arc<Task>, Error> {
        self.tasks.get(&found.id, || self.restored(found, caller))
    }

    fn restored(&self, found: &Remembered, caller: Caller<'_>) -> Result<Task, Error> {
        let gone = |why: String| Error::Failed {
            text: format!("task {} cannot go on: {why}", found.id),
            hint: Some("start a new one, and tell it what is done already".to_owned()),
        };
        let records = self.team.records.as_ref();
        let records = records.ok_or_else(|| gone("what was said in it was not kept".to_owned()))?;
        let member = self.team.member(&found.kind);
        let member = member.ok_or_else(|| gone(format!("there is no {} now", found.kind)))?;
        let agent = self.agent(member, found.id.clone(), caller)?;
        let child = self.child(&agent, member, caller.call_id());
        let agent = records.restore(agent, &child).map_err(gone)?;
        Ok(Task {
            agent,
            kind: member.tool.clone(),
            description: found.description.clone(),
        })
    }

    fn fresh(&self, wanted: &Wanted, caller: Caller<'_>) -> Result<Arc<Task>, Error> {
        let member = &wanted.member;
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
            Some(session) => agent.recorded(session),
            None => agent,
        };
        Ok(Arc::new(Task {
            agent,
            kind: member.tool.clone(),
            description: reply::cut(wanted.description.trim(), 80),
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

    /// An agent that has heard nothing yet.
    fn agent(&self, member: &Arc<Member>, id: String, caller: Caller<'_>) -> Result<Agent, Error> {
        let fail = |why: String| Error::failed(format!("sub-agent {}: {why}", member.name));
        let parent = self.parent.upgrade().ok_or(Error::Cancelled)?;
        let mut agent = match &member.how {
            How::Built(make) => {
                let narrow = narrow(member, id, &self.team.usual, &self.team);
                let start = Start {
                    runtime: caller.session(parent.runtime(), narrow),
                    model: parent.model(),
                };
                make(start).map_err(fail)?
            }
            How::Spec {
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
                agent.settings.hooks = Arc::new(OfTools(Arc::clone(&self.settings.hooks)));
                if !skills.is_empty() {
                    // Its own, not those of the agent that asks.
                    agent.tools().remove(crate::skills::SKILL);
                    let added = skills.add_to(agent.runtime());
                    added.map_err(|error| fail(error.to_string()))?;
                }
                super::tool::seat(&self.team, &agent, self.depth + 1, Some(tools))
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
        parent.hide(&*agent.model());
        parent.shares_session_with(&agent.shared);
        // It answers when all of its work is done, also that in the background.
        agent.settings.waits_for_background = true;
        agent.settings.parent = Some(self.session.clone());
        Ok(agent)
    }

    fn model(&self, name: &str) -> Result<Arc<dyn Model>, String> {
        let Some(find) = &self.team.model_by_name else {
            return Err(format!("its model {name} is not known here"));
        };
        find(name).map_err(|why| format!("its model {name}: {why}"))
    }
}

/// The call that a sub-agent is begun or gone on with by.
#[derive(Clone, Copy)]
pub(super) enum Caller<'a> {
    /// It waits for the sub-agent: while a person is asked, its clock stops.
    Waits(&'a Context),
    /// It leaves the sub-agent to work in the background. The id of the call.
    Leaves(&'a str),
}

impl Caller<'_> {
    fn call_id(&self) -> &str {
        match self {
            Self::Waits(cx) => cx.call_id(),
            Self::Leaves(call_id) => call_id,
        }
    }

    /// The session that the sub-agent works in.
    fn session(&self, outer: &Runtime, narrow: Narrow) -> Runtime {
        match self {
            Self::Waits(cx) => cx.narrowed(narrow),
            Self::Leaves(_) => outer.narrowed(narrow),
        }
    }
}

fn too_deep() -> Error {
    Error::failed("sub-agents cannot ask each other more deeply")
}

fn not_started(reason: Option<&str>) -> Error {
    let why = reason.map(str::trim).unwrap_or_default();
    let colon = if why.is_empty() { "" } else { ": " };
    Error::failed(format!("not started: the user said no{colon}{why}"))
}

/// What the session of a sub-agent has of the session around it.
fn narrow(member: &Member, id: String, tools: &[String], team: &Team) -> Narrow {
    // Those of sub-agents belong to one agent each.
    let tools: Vec<_> = tools
        .iter()
        .filter(|name| !team.has_tool(name))
        .cloned()
        .collect();
    let (interrupt_on, granted) = match &member.how {
        How::Built(_) => Default::default(),
        How::Spec { spec, .. } => {
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
        "task {id} is at work already; wait for its end, or start another one without task_id"
    ))
}

/// The same agent, which may take what is left of what the other one may.
pub(super) fn bounded(agent: &Agent, parent: &WeakHandle, limits: &Settings) -> Agent {
    let mut settings = agent.settings.clone();
    if let Some(parent) = parent.upgrade() {
        let (tokens, cost) = parent.taken();
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

/// The lower of two bounds, where there are some.
fn less<T>(a: Option<T>, b: Option<T>, lower: impl Fn(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(lower(a, b)),
        (a, b) => a.or(b),
    }
}

/// The calls of an agent that wait for a person, by id.
fn waiting(agent: &Agent) -> Vec<String> {
    let conversation = agent.shared.lock();
    let open = conversation.open.as_ref();
    let waiting = open.map(|open| open.waiting.iter());
    let ids = waiting.into_iter().flatten().map(|one| one.call_id.clone());
    ids.collect()
}

/// What an answer to all that waits in an agent has to name: its own calls, and its tasks in
/// the background.
fn answerable(agent: &Agent, state: &State) -> Vec<String> {
    let tasks = tasks::background(state, agent.session()).into_iter();
    let tasks = tasks.filter(|one| one.status == "waiting");
    let mut all = waiting(agent);
    all.extend(tasks.map(|one| one.id));
    all
}

/// What a sub-agent is told first.
fn system(own: Option<&str>, surroundings: &str, tools: &str, skills: &str) -> String {
    let parts = [
        own.unwrap_or("You work on one task, from its beginning to its end."),
        "You work for another agent. It gets your last message and nothing else, and cannot \
         answer questions: decide by yourself, do the work with the tools, and end with all \
         that it needs to know.",
        surroundings,
        tools,
        skills,
    ];
    let parts = parts.iter().map(|part| part.trim());
    let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

/// Who has a say in the calls of an agent has it in those of its sub-agents. What they
/// are asked is not a person's prompt, and what they hear is their own.
struct OfTools(Arc<dyn Hooks>);

#[async_trait]
impl Hooks for OfTools {
    async fn before_tool(&self, call: &mut ToolCall) -> Option<Reply> {
        self.0.before_tool(call).await
    }

    async fn after_tool(&self, call: &ToolCall, reply: &mut Reply) {
        self.0.after_tool(call, reply).await;
    }

    async fn transform_context(&self, _: &[Arc<Said>]) -> Option<Vec<Arc<Said>>> {
        None
    }
}
