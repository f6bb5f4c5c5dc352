//! Conditions that `process` can wait for.

use super::{command, exec, reply};
use crate::prelude::*;
use haft_ops::processes::{self, WaitOutcome, Waited};
use serde_json::Value;

#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "snake_case")]
pub(super) enum Until {
    Exit,
    Port,
    Log,
    Idle,
}

/// Hint if commands cannot open sockets.
const NO_NETWORK: &str = "it does not listen on that port: commands have no network here, because this machine has no namespaces (`haft doctor`); `--network on` gives them the machine's";

/// Hint if another program has the port.
const TAKEN: &str = "something else listens on that port: neither this process nor one that it started; use another port, or end what uses it";

impl Until {
    /// Adds the parameter that it requires.
    pub(super) fn with(
        self,
        port: Option<i64>,
        pattern: Option<&str>,
        idle: Option<f64>,
    ) -> Result<processes::Until, Error> {
        Ok(match self {
            Self::Exit => processes::Until::Exit,
            Self::Port => {
                processes::Until::Port(number(port.ok_or_else(|| reply::missing("port"))?)?)
            }
            Self::Log => {
                let pattern = pattern.ok_or_else(|| reply::missing("pattern"))?;
                processes::Until::Log(pattern.to_owned())
            }
            Self::Idle => {
                let idle = idle.ok_or_else(|| reply::missing("idle"))?;
                let shortest = std::time::Duration::from_millis(100);
                processes::Until::Idle(command::limit(Some(idle), shortest, exec::MAX_TIME))
            }
        })
    }
}

/// Adds how a wait ended, and what to do if it failed.
pub(super) fn add(answer: &mut Value, until: &processes::Until, waited: &Waited, cx: &Context) {
    let waits_for_port = matches!(until, processes::Until::Port(_));
    if waits_for_port && waited.outcome != WaitOutcome::Met {
        // Without sockets no command can listen, whatever else does.
        if !cx.commands_have_sockets() {
            reply::add_hint(answer, NO_NETWORK);
        } else if waited.port_taken {
            reply::add_hint(answer, TAKEN);
        }
    }
    let millis = u64::try_from(waited.waited.as_millis()).unwrap_or(u64::MAX);
    reply::add(answer, "met", waited.outcome == WaitOutcome::Met);
    reply::add(answer, "waited_ms", millis);
}

/// Not clamped: another number would be another port.
fn number(port: i64) -> Result<u16, Error> {
    let number = u16::try_from(port).ok().filter(|port| *port > 0);
    number
        .ok_or_else(|| Error::invalid(format!("parameter \"port\" must be 1 to 65535, got {port}")))
}
