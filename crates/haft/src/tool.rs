//! What a tool is: typed for its author, erased for the registry.

use crate::{Context, Error, Mention, Offered, Reply, Standing, schema};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// What a call can do to the world, at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// Looks at files.
    Read,
    /// Changes files.
    Write,
    /// Runs a program, which can do whatever it is not kept from.
    Execute,
    /// Talks to other machines.
    Network,
    /// None of these: computes, or talks only to the session.
    Pure,
}

impl Effect {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Read,
        Self::Write,
        Self::Execute,
        Self::Network,
        Self::Pure,
    ];

    /// Its name, as rules write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Execute => "execute",
            Self::Network => "network",
            Self::Pure => "pure",
        }
    }

    /// An effect by its name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effect| effect.name() == name)
    }
}

/// Something a call is about to touch, as its arguments name it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resource {
    /// A file or folder, and what for.
    Path(String, crate::Access),
    /// A command line, for a shell.
    Command(String),
    /// A program and its arguments, with no shell in between.
    Program(Vec<String>),
    /// Another machine, by its name or address, without a port.
    Host(String),
    /// A channel for messages, by its name. For rules it is the host it talks to.
    Channel(String),
}

impl Resource {
    /// A file of which a part is changed. It is read as well as written: the reply tells
    /// what is in it, even if the text to replace is not found.
    #[must_use]
    pub fn edited(path: &str) -> Vec<Self> {
        [crate::Access::Write, crate::Access::Read]
            .map(|access| Self::Path(path.to_owned(), access))
            .into()
    }
}

/// A tool with typed arguments.
///
/// The doc comment on `Args` is the description a model reads, those on its
/// fields describe the parameters, and the schema is derived from its types.
pub trait Tool: Send + Sync + 'static {
    /// The name a model calls it by.
    const NAME: &'static str;
    /// What it can do at most.
    const EFFECT: Effect;
    /// Whether it sends messages over the channels of the session. It is offered only where
    /// there are some, and its description names them.
    const SENDS_MESSAGES: bool = false;
    /// The parts of its description and guidance that name other tools, which a session may
    /// lack.
    const MENTIONS: &'static [Mention] = &[];
    /// Its parameters: a flat struct.
    type Args: DeserializeOwned + JsonSchema + Send + 'static;

    /// What a call with these arguments will touch. The policy judges it, and
    /// calls that write the same file wait for each other.
    fn resources(&self, _args: &Self::Args) -> Vec<Resource> {
        Vec::new()
    }

    /// Returns why a call with these arguments is always refused, whatever the policy says,
    /// as far as that is known without running it. `tools` are the tools that the session
    /// has. For explanations only: [`Tool::call`] must refuse by itself.
    fn refusal(&self, _args: &Self::Args, _tools: &Offered) -> Option<Error> {
        None
    }

    /// How long a call may take, unless the session says less.
    fn timeout(&self) -> Option<Duration> {
        Some(Duration::from_secs(120))
    }

    /// Guidance for the prompt, beyond the description.
    fn guidance(&self) -> Option<&str> {
        None
    }

    /// Does it. Cancelled by being dropped; a panic becomes an error reply.
    fn call(
        &self,
        args: Self::Args,
        cx: &Context,
    ) -> impl Future<Output = Result<Reply, Error>> + Send;
}

/// The shorter of two limits, where there are any.
pub(crate) fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// What a model sees of a tool. Serialized, it has the three fields that go to a model's
/// service: `name`, `description` and `parameters`.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// A JSON Schema of its arguments.
    pub parameters: Value,
    /// Guidance for the prompt. Not serialized: services reject fields that they do not
    /// know.
    #[serde(skip)]
    pub guidance: Option<String>,
}

/// A tool whose arguments are JSON: what the registry holds.
pub trait AnyTool: Send + Sync {
    /// What a model sees that has all the tools it mentions.
    fn definition(&self) -> &Definition;
    /// The parts of the definition's texts that name other tools.
    fn mentions(&self) -> &[Mention] {
        &[]
    }
    /// What a model sees that has these tools.
    fn definition_among(&self, tools: &Offered) -> Definition {
        let whole = self.definition().clone();
        let reword = |text: &String| tools.reword(text, self.mentions());
        Definition {
            description: reword(&whole.description),
            guidance: whole.guidance.as_ref().map(reword),
            ..whole
        }
    }
    /// What it can do at most.
    fn effect(&self) -> Effect;
    /// What a call with these (valid) arguments will touch.
    fn resources(&self, arguments: &Value) -> Vec<Resource>;
    /// Returns why a call with these (valid) arguments is always refused, as
    /// [`Tool::refusal`] does.
    fn refusal(&self, _arguments: &Value, _tools: &Offered) -> Option<Error> {
        None
    }
    /// How long a call may take.
    fn timeout(&self) -> Option<Duration>;
    /// How long a call may take in a session that limits its calls to `session`: the
    /// shorter of the two, unless the user has set a limit for this very tool.
    fn limit(&self, session: Option<Duration>) -> Option<Duration> {
        shorter(session, self.timeout())
    }
    /// Whether a call does nothing but wait for somebody else: then it needs no task
    /// of its own, which would take longer than the rest.
    fn only_waits(&self) -> bool {
        false
    }
    /// Whether it sends messages over the channels of the session.
    fn sends_messages(&self) -> bool {
        false
    }
    /// Whether its program goes on between calls. What such a program did to protected
    /// places is looked at after each call, however the call ended.
    fn outlives_calls(&self) -> bool {
        false
    }
    /// Whose word its program is, where it is one that haft starts. A failure that comes
    /// of what such a program may not do is explained.
    fn standing(&self) -> Option<Standing> {
        None
    }
    /// Does it.
    fn call<'a>(&'a self, arguments: Value, cx: &'a Context)
    -> BoxFuture<'a, Result<Reply, Error>>;
}

/// A typed tool for the registry.
pub fn erase<T: Tool>(tool: T) -> Arc<dyn AnyTool> {
    let (description, parameters) = schema::of::<T::Args>();
    let definition = Definition {
        name: T::NAME.to_owned(),
        description,
        parameters,
        guidance: tool.guidance().map(str::to_owned),
    };
    Arc::new(Typed { tool, definition })
}

struct Typed<T> {
    tool: T,
    definition: Definition,
}

impl<T: Tool> AnyTool for Typed<T> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn mentions(&self) -> &[Mention] {
        T::MENTIONS
    }

    fn effect(&self) -> Effect {
        T::EFFECT
    }

    fn resources(&self, arguments: &Value) -> Vec<Resource> {
        T::Args::deserialize(arguments)
            .map(|args| self.tool.resources(&args))
            .unwrap_or_default()
    }

    fn refusal(&self, arguments: &Value, tools: &Offered) -> Option<Error> {
        let args = T::Args::deserialize(arguments).ok()?;
        self.tool.refusal(&args, tools)
    }

    fn timeout(&self) -> Option<Duration> {
        self.tool.timeout()
    }

    fn sends_messages(&self) -> bool {
        T::SENDS_MESSAGES
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<Reply, Error>> {
        Box::pin(async move {
            // The schema was checked; this catches what a schema cannot say.
            let args = serde_json::from_value(arguments)
                .map_err(|error| Error::invalid(error.to_string()))?;
            self.tool.call(args, cx).await
        })
    }
}

/// A tool with another definition.
pub(crate) struct Redefined {
    pub(crate) tool: Arc<dyn AnyTool>,
    pub(crate) definition: Definition,
}

impl AnyTool for Redefined {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn mentions(&self) -> &[Mention] {
        self.tool.mentions()
    }

    fn effect(&self) -> Effect {
        self.tool.effect()
    }

    fn resources(&self, arguments: &Value) -> Vec<Resource> {
        self.tool.resources(arguments)
    }

    fn refusal(&self, arguments: &Value, tools: &Offered) -> Option<Error> {
        self.tool.refusal(arguments, tools)
    }

    fn timeout(&self) -> Option<Duration> {
        self.tool.timeout()
    }

    fn limit(&self, session: Option<Duration>) -> Option<Duration> {
        self.tool.limit(session)
    }

    fn only_waits(&self) -> bool {
        self.tool.only_waits()
    }

    fn sends_messages(&self) -> bool {
        self.tool.sends_messages()
    }

    fn outlives_calls(&self) -> bool {
        self.tool.outlives_calls()
    }

    fn standing(&self) -> Option<Standing> {
        self.tool.standing()
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<Reply, Error>> {
        self.tool.call(arguments, cx)
    }
}

/// The future of a tool made from a schema.
type Answer = BoxFuture<'static, Result<Reply, Error>>;

/// A tool whose schema is only known at run time: no derive, no type.
pub struct FromSchema {
    definition: Definition,
    effect: Effect,
    timeout: Option<Duration>,
    answer: Box<dyn Fn(Value, Context) -> Answer + Send + Sync>,
}

impl FromSchema {
    /// A tool from its parts. `parameters` is a JSON Schema of an object.
    ///
    /// # Errors
    /// When the schema is none, or too large or too deep to be checked quickly.
    pub fn new<F, R>(
        name: &str,
        description: &str,
        parameters: Value,
        effect: Effect,
        answer: F,
    ) -> Result<Self, Error>
    where
        F: Fn(Value, Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Reply, Error>> + Send + 'static,
    {
        schema::check(name, &parameters)?;
        let definition = Definition {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters,
            guidance: None,
        };
        let answer = Box::new(move |arguments, cx| -> Answer { Box::pin(answer(arguments, cx)) });
        Ok(Self {
            definition,
            effect,
            timeout: Some(Duration::from_secs(120)),
            answer,
        })
    }

    /// With another time limit, or none.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }
}

impl AnyTool for FromSchema {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn effect(&self) -> Effect {
        self.effect
    }

    fn resources(&self, _arguments: &Value) -> Vec<Resource> {
        Vec::new()
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<Reply, Error>> {
        (self.answer)(arguments, cx.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_definition_is_serialized_as_a_models_service_takes_it() {
        let parameters =
            json!({ "type": "object", "properties": { "city": { "type": "string" } } });
        let definition = Definition {
            name: "weather".to_owned(),
            description: "Tell the weather.".to_owned(),
            parameters: parameters.clone(),
            guidance: Some("Only for cities.".to_owned()),
        };
        // Services reject other fields, so there must not be any.
        let expected = json!({
            "name": "weather", "description": "Tell the weather.", "parameters": parameters,
        });
        assert_eq!(serde_json::to_value(&definition).unwrap(), expected);
        let text = serde_json::to_string(&definition).unwrap();
        assert!(
            text.starts_with(r#"{"name":"weather","description":"Tell"#),
            "{text}"
        );
    }

    #[test]
    fn the_definitions_of_every_toolset_can_be_serialized() {
        for name in crate::toolsets::NAMES {
            for tool in crate::toolsets::by_name(name).unwrap().tools {
                let written = serde_json::to_value(tool.definition()).unwrap();
                let fields: Vec<&String> = written.as_object().unwrap().keys().collect();
                assert_eq!(fields, ["name", "description", "parameters"], "{name}");
                assert_eq!(written["parameters"]["type"], "object", "{name}");
            }
        }
    }
}
