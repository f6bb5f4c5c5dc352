//! A Lua state with its limits, in which a module runs.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use mlua::chunk::ChunkMode;
use mlua::{Function, HookTriggers, Lua, LuaOptions, MultiValue, StdLib, Table, Value, VmState};

use crate::load::{Limits, Load, Rights};
use crate::meter::{Meter, STRIDE};
use crate::natives;
use crate::shared::Shared;

const OUT_OF_MEMORY: &str = "not enough memory";

/// The reason why a module failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It raised an error, or was stopped.
    Raised(String),
    /// It exceeded its memory limit.
    Memory(String),
}

impl Failure {
    pub(crate) fn message(self) -> String {
        match self {
            Self::Raised(message) | Self::Memory(message) => message,
        }
    }
}

pub(crate) struct Machine {
    pub(crate) lua: Lua,
    /// The metatable of tables that are lists.
    pub(crate) list: Table,
    run: Function,
    meter: Rc<Meter>,
    limits: Limits,
    /// The path as Lua shows it.
    source: String,
}

/// Makes `require` search next to the module, never in the current folder: that is the work
/// folder, whose files must not be loaded as modules.
fn required_beside(lua: &Lua, module: &str) -> mlua::Result<()> {
    let package: Table = lua.globals().get("package")?;
    let usual: String = package.get("path")?;
    let folder = Path::new(module)
        .parent()
        .filter(|folder| folder.is_absolute());
    let beside = folder.into_iter().flat_map(|folder| {
        let folder = folder.to_string_lossy().into_owned();
        ["?.lua", "?/init.lua"].map(|name| format!("{folder}/{name}"))
    });
    let elsewhere = usual.split(';').filter(|place| place.starts_with('/'));
    let all: Vec<String> = beside.chain(elsewhere.map(str::to_owned)).collect();
    package.set("path", all.join(";"))
}

impl Machine {
    pub(crate) fn new(load: &Load, shared: &Arc<Shared>) -> mlua::Result<Self> {
        let pure = StdLib::TABLE
            | StdLib::STRING
            | StdLib::MATH
            | StdLib::UTF8
            | StdLib::COROUTINE
            | StdLib::OS;
        let (libraries, rights) = match load.rights {
            Rights::Pure => (pure, "pure"),
            Rights::Full => (StdLib::ALL_SAFE, "full"),
        };
        let lua = Lua::new_with(libraries, LuaOptions::default())?;
        if load.rights == Rights::Full {
            required_beside(&lua, &load.path)?;
        }
        let meter = Rc::new(Meter::new(load.limits, Arc::clone(shared)));
        let list = lua.create_table()?;
        list.set("__metatable", "list")?;
        let native = natives::table(&lua, &load.path, &list, &meter, shared)?;
        let prelude = lua
            .load(include_str!("prelude.lua"))
            .set_name("=haft")
            .set_mode(ChunkMode::Text);
        let run = prelude.call::<Function>((native, rights))?;

        // Coroutines inherit the hook of their creator, so it is set once, before the
        // module can create any.
        let stepping = Rc::clone(&meter);
        let source = natives::short(&load.path);
        let named = source.clone();
        lua.set_global_hook(
            HookTriggers::new().every_nth_instruction(STRIDE),
            move |lua, _| {
                if stepping.step(|| natives::place(lua, &named).unwrap_or_default()) {
                    return Err(mlua::Error::runtime("stopped"));
                }
                Ok(VmState::Continue)
            },
        )?;
        lua.set_memory_limit(load.limits.bytes())?;
        Ok(Self {
            lua,
            list,
            run,
            meter,
            limits: load.limits,
            source,
        })
    }

    /// Starts the clock and returns when the task is due.
    pub(crate) fn start(&self, allowed: Duration) -> std::time::Instant {
        self.meter.start(allowed)
    }

    /// Runs a function of the module until it returns or reaches a limit.
    pub(crate) fn run(&self, body: &Function, input: Option<Value>) -> Result<MultiValue, Failure> {
        let arguments = [Some(Value::Function(body.clone())), input];
        let arguments = MultiValue::from_vec(arguments.into_iter().flatten().collect());
        let returned = self.run.call::<MultiValue>(arguments);
        if let Some(stop) = self.meter.stopped() {
            return Err(Failure::Raised(self.meter.message(stop)));
        }
        let mut values = returned.map_err(|error| self.failure(&error))?;
        match values.pop_front() {
            Some(Value::Boolean(true)) => Ok(values),
            _ => Err(self.raised(values.pop_front().as_ref())),
        }
    }

    fn raised(&self, message: Option<&Value>) -> Failure {
        let text = match message {
            Some(Value::String(text)) => text.to_string_lossy(),
            Some(Value::Error(error)) => return self.failure(error),
            _ => "an error without a message".to_owned(),
        };
        self.failure_from(text)
    }

    /// Converts an error from Rust into a message for the author of the module.
    pub(crate) fn failure(&self, error: &mlua::Error) -> Failure {
        if let Some(stop) = self.meter.stopped() {
            return Failure::Raised(self.meter.message(stop));
        }
        self.failure_from(match error {
            mlua::Error::RuntimeError(message) => {
                let message = message.split("\nstack traceback:").next();
                message.unwrap_or_default().to_owned()
            }
            mlua::Error::SyntaxError { message, .. } => message.clone(),
            mlua::Error::CallbackError { cause, .. } => return self.failure(cause),
            other => other.to_string(),
        })
    }

    /// Creates a failure from a message.
    pub(crate) fn failure_from(&self, text: String) -> Failure {
        if text.ends_with(OUT_OF_MEMORY) || text.contains(&format!("memory error: {OUT_OF_MEMORY}"))
        {
            return Failure::Memory(format!(
                "{}: out of memory: a module may use {} MiB (a function that calls itself without end takes it, \
                 and so does too much text)",
                self.source,
                self.limits.bytes() >> 20
            ));
        }
        Failure::Raised(self.once(&text))
    }

    /// Removes repeated locations: each coroutine that an error passes through adds it once
    /// more.
    fn once(&self, text: &str) -> String {
        let mut rest = text;
        while let Some((place, after)) = rest.split_once(": ")
            && place.starts_with(&self.source)
            && after.starts_with(place)
        {
            rest = after;
        }
        rest.to_owned()
    }

    /// Whether the module keeps so much memory that further calls are likely to fail.
    pub(crate) fn is_full(&self) -> bool {
        // Two rounds, because objects with finalizers are freed in the second.
        let collected = self.lua.gc_collect().and_then(|()| self.lua.gc_collect());
        collected.is_err() || self.lua.used_memory() > self.limits.bytes() / 4 * 3
    }
}
