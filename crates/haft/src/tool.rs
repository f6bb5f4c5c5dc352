//! The tool contract: typed for authors ([`Tool`]), with JSON arguments for the registry
//! ([`AnyTool`]).

use crate::{Context, Error, Installer, Mention, Offered, Reply, schema};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// The most that a call of a tool can do to the outside world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// Reads files.
    Read,
    /// Changes files.
    Write,
    /// Runs a program, which can do anything that the sandbox does not prevent.
    Execute,
    /// Sends requests to other machines.
    Network,
    /// None of the above: computes, or only uses the session.
    Pure,
}

impl Effect {
    /// All effects, in the order of the enum.
    pub const ALL: [Self; 5] = [
        Self::Read,
        Self::Write,
        Self::Execute,
        Self::Network,
        Self::Pure,
    ];

    /// Returns the name that rules use.
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

    /// Whether a call can change something. Such a call is recorded before it runs, because
    /// its effects are unknown if it does not end.
    #[must_use]
    pub fn may_change(self) -> bool {
        !matches!(self, Self::Read | Self::Pure)
    }

    /// Returns the effect with the given name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effect| effect.name() == name)
    }
}

/// A file, command or host that a call is about to use, as named in its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resource {
    /// A file or folder, and how it is accessed.
    Path(String, crate::Access),
    /// A command line for a shell.
    Command(String),
    /// A program and its arguments, run without a shell.
    Program(Vec<String>),
    /// Another machine: host name or address, without a port.
    Host(String),
    /// A message channel by name. Rules see the host that it sends to.
    Channel(String),
}

impl Resource {
    /// Returns the resources of a call that edits a file. Editing also reads: the reply
    /// shows content of the file, even if the text to replace is not found.
    #[must_use]
    pub fn edited(path: &str) -> Vec<Self> {
        [crate::Access::Write, crate::Access::Read]
            .map(|access| Self::Path(path.to_owned(), access))
            .into()
    }
}

/// A tool with typed arguments.
///
/// The doc comment of `Args` is the description that the model reads, the doc comments of
/// its fields describe the parameters, and the JSON Schema is derived from their types.
pub trait Tool: Send + Sync + 'static {
    /// Name that the model calls.
    const NAME: &'static str;
    /// The most that a call can do.
    const EFFECT: Effect;
    /// Whether the tool sends messages over the session's channels. Such a tool is offered
    /// only if there are channels, and its description lists them.
    const SENDS_MESSAGES: bool = false;
    /// Parts of the description and guidance that mention other tools. They are reworded if
    /// the session lacks one of those tools.
    const MENTIONS: &'static [Mention] = &[];
    /// Parameters of the tool: a flat struct.
    type Args: DeserializeOwned + JsonSchema + Send + 'static;

    /// Returns the resources that a call with these arguments uses. The policy checks them
    /// before the call runs, and calls that write the same file run one after another. A
    /// path that is missing here is checked when [`Context::resolve`] is called: too late
    /// to ask the user about it.
    fn resources(&self, _args: &Self::Args) -> Vec<Resource> {
        Vec::new()
    }

    /// Returns why a call with these arguments is always refused regardless of the policy,
    /// if that can be told without running it. `tools` are the tools of the session. Only
    /// used for explanations: [`Tool::call`] must make the same check.
    fn refusal(&self, _args: &Self::Args, _tools: &Offered) -> Option<Error> {
        None
    }

    /// Returns the time limit of a call. The session may set a shorter one.
    fn timeout(&self) -> Option<Duration> {
        Some(Duration::from_secs(120))
    }

    /// Returns guidance for the system prompt, in addition to the description.
    fn guidance(&self) -> Option<&str> {
        None
    }

    /// Runs the call. It is cancelled by dropping the future; a panic becomes an error
    /// reply.
    fn call(
        &self,
        args: Self::Args,
        cx: &Context,
    ) -> impl Future<Output = Result<Reply, Error>> + Send;
}

/// Returns the shorter of two optional limits.
pub(crate) fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The definition of a tool as a model sees it. Serializes to the three fields that
/// providers accept: `name`, `description` and `parameters`.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Definition {
    /// Name that the model calls.
    pub name: String,
    /// What the tool does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    /// Guidance for the system prompt. Not serialized, because providers reject unknown
    /// fields.
    #[serde(skip)]
    pub guidance: Option<String>,
}

/// A tool with JSON arguments, as stored in the registry.
pub trait AnyTool: Send + Sync {
    /// Returns the definition for a session that has every tool it mentions.
    fn definition(&self) -> &Definition;
    /// Returns the parts of the definition that mention other tools.
    fn mentions(&self) -> &[Mention] {
        &[]
    }
    /// Returns the definition for a session that has the given tools.
    fn definition_among(&self, tools: &Offered) -> Definition {
        let full = self.definition().clone();
        let reword = |text: &String| tools.reword(text, self.mentions());
        Definition {
            description: reword(&full.description),
            guidance: full.guidance.as_ref().map(reword),
            ..full
        }
    }
    /// Returns the most that a call can do.
    fn effect(&self) -> Effect;
    /// Reads the arguments of a call. They match the schema.
    ///
    /// # Errors
    /// When they break a rule that the schema cannot express.
    fn prepare(self: Arc<Self>, arguments: Arc<Value>) -> Result<Box<dyn PreparedCall>, Error>;
    /// Returns the time limit of a call.
    fn timeout(&self) -> Option<Duration>;
    /// Returns the time limit of a call in a session that limits calls to `session`: the
    /// shorter of the two, unless the user has set a limit for this tool.
    fn limit(&self, session: Option<Duration>) -> Option<Duration> {
        shorter(session, self.timeout())
    }
    /// Whether a call only waits for another process or machine. Such a call runs without a
    /// task of its own, because spawning one would cost more than the call itself.
    fn only_waits(&self) -> bool {
        false
    }
    /// Whether the tool sends messages over the session's channels.
    fn sends_messages(&self) -> bool {
        false
    }
    /// Whether the tool's program keeps running between calls. The runtime then checks
    /// after every call, even a failed one, whether the program changed protected paths.
    fn outlives_calls(&self) -> bool {
        false
    }
    /// Returns what another server says about its tool beyond the definition, for front ends
    /// that pass it on. It is not checked and decides nothing here.
    fn foreign_parts(&self) -> Option<&ForeignParts> {
        None
    }
    /// Returns who installed the program, if haft starts one for this
    /// tool. If the sandbox stopped such a program, the reply to the failed call explains
    /// it.
    fn installer(&self) -> Option<Installer> {
        None
    }
    /// Whether a tool that is not part of the toolset can run under review: it makes all its
    /// changes through the session, or in a process that is started for the call and can be
    /// run without network.
    fn is_reviewable(&self) -> bool {
        false
    }
}

/// Statements of another server about its tool, beyond the definition.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForeignParts {
    /// Name for people.
    pub title: Option<String>,
    /// JSON schema of structured results, which is an object.
    pub output_schema: Option<Value>,
    /// Hints about the effects of a call.
    pub annotations: Option<Value>,
}

/// A call whose arguments have been read.
pub trait PreparedCall: Send {
    /// Returns the resources that the call uses.
    fn resources(&self) -> Vec<Resource>;
    /// Returns why the call is always refused; see [`Tool::refusal`].
    fn refusal(&self, _tools: &Offered) -> Option<Error> {
        None
    }
    /// Runs the call.
    fn run(self: Box<Self>, cx: Context) -> ReplyFuture;
}

/// Future of the reply to a call.
pub type ReplyFuture = BoxFuture<'static, Result<Reply, Error>>;

/// Reads arguments that match the schema of a tool.
///
/// # Errors
/// When they break a rule that the schema cannot express.
pub fn read_arguments<T: DeserializeOwned>(arguments: &Value) -> Result<T, Error> {
    T::deserialize(arguments).map_err(|error| Error::invalid(error.to_string()))
}

/// Creates a prepared call from a function that runs it.
pub fn prepared<F, R>(resources: Vec<Resource>, run: F) -> Box<dyn PreparedCall>
where
    F: FnOnce(Context) -> R + Send + 'static,
    R: Future<Output = Result<Reply, Error>> + Send + 'static,
{
    Box::new(FromFunction { resources, run })
}

struct FromFunction<F> {
    resources: Vec<Resource>,
    run: F,
}

impl<F, R> PreparedCall for FromFunction<F>
where
    F: FnOnce(Context) -> R + Send + 'static,
    R: Future<Output = Result<Reply, Error>> + Send + 'static,
{
    fn resources(&self) -> Vec<Resource> {
        self.resources.clone()
    }

    fn run(self: Box<Self>, cx: Context) -> ReplyFuture {
        // Within the future, where a panic becomes a reply.
        Box::pin(async move { (self.run)(cx).await })
    }
}

/// Turns a typed tool into one that the registry can store.
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

    fn prepare(self: Arc<Self>, arguments: Arc<Value>) -> Result<Box<dyn PreparedCall>, Error> {
        let args = read_arguments(&arguments)?;
        Ok(Box::new(TypedCall { tool: self, args }))
    }

    fn timeout(&self) -> Option<Duration> {
        self.tool.timeout()
    }

    fn sends_messages(&self) -> bool {
        T::SENDS_MESSAGES
    }
}

struct TypedCall<T: Tool> {
    tool: Arc<Typed<T>>,
    args: T::Args,
}

impl<T: Tool> PreparedCall for TypedCall<T> {
    fn resources(&self) -> Vec<Resource> {
        self.tool.tool.resources(&self.args)
    }

    fn refusal(&self, tools: &Offered) -> Option<Error> {
        self.tool.tool.refusal(&self.args, tools)
    }

    fn run(self: Box<Self>, cx: Context) -> ReplyFuture {
        Box::pin(async move { self.tool.tool.call(self.args, &cx).await })
    }
}

/// A tool with a changed definition.
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

    fn prepare(self: Arc<Self>, arguments: Arc<Value>) -> Result<Box<dyn PreparedCall>, Error> {
        Arc::clone(&self.tool).prepare(arguments)
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

    fn foreign_parts(&self) -> Option<&ForeignParts> {
        self.tool.foreign_parts()
    }

    fn installer(&self) -> Option<Installer> {
        self.tool.installer()
    }

    fn is_reviewable(&self) -> bool {
        self.tool.is_reviewable()
    }
}

/// A tool whose schema is only known at run time.
pub struct FromSchema {
    definition: Definition,
    effect: Effect,
    timeout: Option<Duration>,
    answer: Box<dyn Fn(Value, Context) -> ReplyFuture + Send + Sync>,
}

impl FromSchema {
    /// Creates a tool. `parameters` is the JSON Schema of an object.
    ///
    /// # Errors
    /// When the schema is invalid, too large or too deeply nested to be checked quickly.
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
        let answer =
            Box::new(move |arguments, cx| -> ReplyFuture { Box::pin(answer(arguments, cx)) });
        Ok(Self {
            definition,
            effect,
            timeout: Some(Duration::from_secs(120)),
            answer,
        })
    }

    /// Sets the time limit; `None` removes it.
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

    fn prepare(self: Arc<Self>, arguments: Arc<Value>) -> Result<Box<dyn PreparedCall>, Error> {
        Ok(prepared(Vec::new(), move |cx| {
            (self.answer)(Arc::unwrap_or_clone(arguments), cx)
        }))
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_definition_has_exactly_the_fields_that_providers_accept() {
        let parameters =
            json!({ "type": "object", "properties": { "city": { "type": "string" } } });
        let definition = Definition {
            name: "weather".to_owned(),
            description: "Tell the weather.".to_owned(),
            parameters: parameters.clone(),
            guidance: Some("Only for cities.".to_owned()),
        };
        // Providers reject any other field.
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
