//! The threads of a worker: one reads, one runs Lua, one is the watchdog.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, atomic::AtomicBool, atomic::Ordering};

use serde_json::Value;

use crate::content;
use crate::exit;
use crate::load::Load;
use crate::machine::Machine;
use crate::meter::Meter;
use crate::module::{Module, Outcome};
use crate::protocol::{self, HostMessage, InputLine, MAX_LINE, WorkerMessage};
use crate::shared::{Reply, Shared, note};

/// Stack size in bytes. Lua limits its own nesting well below this, even in a debug build.
const STACK: usize = 64 << 20;

/// Requests to the Lua thread, in order.
enum Order {
    Describe,
    Call {
        name: String,
        call_id: Value,
        params: Value,
    },
}

/// Serves one module until the input ends. The first line is a [`Load`]; the crate
/// documentation lists the others.
///
/// When this returns, a thread that a module keeps busy may still be running, so the
/// process must exit now. The codes are in [`exit`].
pub fn worker(
    mut input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
) -> ExitCode {
    let shared = Shared::new(output);
    let load = match first(&mut input) {
        Ok(Some(load)) => load,
        Ok(None) => return ExitCode::from(exit::DONE),
        Err(problem) => {
            let message = format!("the first line must be a load message: {problem}");
            shared.write(WorkerMessage::Invalid { message: &message }.line());
            return ExitCode::from(exit::NOT_LOADED);
        }
    };
    let (orders, ordered) = mpsc::channel();
    let described = Arc::new(AtomicBool::new(false));
    let for_lua = (Arc::clone(&shared), Arc::clone(&described));
    let started = std::thread::Builder::new()
        .name("lua".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            let (shared, described) = for_lua;
            let leaving = Leaving(Arc::clone(&shared));
            let code = serve(&load, &shared, &ordered, &described);
            shared.finish(code);
            drop(leaving);
        });
    if let Err(error) = started {
        note(&format!("no thread for Lua: {error}"));
        return ExitCode::from(exit::FAULT);
    }
    let for_reading = Arc::clone(&shared);
    std::thread::spawn(move || {
        read(&mut input, &for_reading, &orders, &described);
        for_reading.end();
    });
    ExitCode::from(shared.watch())
}

/// Tells the watchdog that the Lua thread has ended, however it ended.
struct Leaving(Arc<Shared>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.finish(exit::FAULT);
    }
}

fn first(input: &mut impl BufRead) -> Result<Option<Load>, String> {
    match protocol::read_line(input) {
        Ok(InputLine::End) => Ok(None),
        Ok(InputLine::Text(line)) => serde_json::from_slice(&line)
            .map(Some)
            .map_err(|error| error.to_string()),
        Ok(InputLine::TooLong) => Err(too_long()),
        Err(error) => Err(error.to_string()),
    }
}

fn too_long() -> String {
    format!("a line is longer than {} MiB", MAX_LINE >> 20)
}

fn read(input: &mut impl BufRead, shared: &Shared, orders: &Sender<Order>, described: &AtomicBool) {
    let garbled = |problem: &str| {
        if described.load(Ordering::SeqCst) {
            note(problem);
        } else {
            shared.write(WorkerMessage::Invalid { message: problem }.line());
        }
    };
    loop {
        let line = match protocol::read_line(input) {
            Ok(InputLine::Text(line)) => line,
            Ok(InputLine::TooLong) => {
                garbled(&too_long());
                continue;
            }
            Ok(InputLine::End) => return,
            Err(error) => return note(&format!("the input cannot be read: {error}")),
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        let order = match serde_json::from_slice(&line) {
            Ok(HostMessage::Describe) => Order::Describe,
            Ok(HostMessage::Call {
                name,
                call_id,
                params,
            }) => {
                shared.queue(call_id.clone());
                Order::Call {
                    name,
                    call_id,
                    params,
                }
            }
            Ok(HostMessage::Cancel { call_id }) => {
                shared.cancel(&call_id);
                continue;
            }
            Ok(HostMessage::HostResult { id, content, error }) => {
                shared.reply(
                    id,
                    Reply {
                        text: content::joined(&content),
                        error,
                    },
                );
                continue;
            }
            Err(error) => {
                garbled(&format!("not a valid message: {error}"));
                continue;
            }
        };
        if orders.send(order).is_err() {
            return;
        }
    }
}

/// Runs the Lua thread until there are no more requests.
fn serve(
    load: &Load,
    shared: &Arc<Shared>,
    ordered: &Receiver<Order>,
    described: &AtomicBool,
) -> u8 {
    let machine = match Machine::new(load, shared) {
        Ok(machine) => machine,
        Err(error) => {
            note(&format!("Lua cannot be started: {error}"));
            return exit::FAULT;
        }
    };
    // Never dropped, because a finalizer of the module could keep the process from ending.
    let machine = std::mem::ManuallyDrop::new(machine);
    let allowed = load.limits.loading();
    shared.begin_loading(machine.start(allowed), Meter::late(&load.path, allowed));
    let module = std::mem::ManuallyDrop::new(Module::load(&machine, load));
    if !shared.complete() {
        return exit::OVERDUE;
    }
    while let Ok(order) = ordered.recv() {
        match order {
            Order::Describe => {
                // Set first, so that a reader of the answer is in the next phase.
                described.store(true, Ordering::SeqCst);
                shared.write(match &*module {
                    Ok(module) => {
                        protocol::described(module.as_ref().map(|module| &module.definition))
                    }
                    Err(message) => WorkerMessage::Invalid { message }.line(),
                });
            }
            Order::Call {
                name,
                call_id,
                params,
            } => {
                let own = module.as_ref().ok();
                let own = own.and_then(Option::as_ref).and_then(Module::time);
                let allowed = load.limits.calling().max(own.unwrap_or_default());
                let due = machine.start(allowed);
                let begun =
                    shared.begin_call(call_id.clone(), due, Meter::late(&load.path, allowed));
                let outcome = match &*module {
                    _ if !begun => Outcome::failed("cancelled".to_owned()),
                    Err(message) => Outcome::failed(message.clone()),
                    Ok(None) => {
                        Outcome::failed(format!("{}: this is a library, not a tool", load.path))
                    }
                    Ok(Some(module)) if module.definition.name != name => Outcome::failed(format!(
                        "{}: there is no tool {name:?}, only {:?}",
                        load.path, module.definition.name
                    )),
                    Ok(Some(module)) => module.call(&machine, params),
                };
                let line = result(&call_id, &outcome);
                if begun && !shared.complete() {
                    return exit::OVERDUE;
                }
                shared.write(line);
                if outcome.full {
                    return exit::FULL;
                }
            }
        }
    }
    exit::DONE
}

fn result(call_id: &Value, outcome: &Outcome) -> String {
    let line = WorkerMessage::Result {
        call_id,
        content: &outcome.content,
        error: outcome.error,
        last: outcome.full,
    }
    .line();
    if line.len() <= MAX_LINE {
        return line;
    }
    let failed = Outcome::failed(content::too_large(line.len()));
    WorkerMessage::Result {
        call_id,
        content: &failed.content,
        error: true,
        last: outcome.full,
    }
    .line()
}
