//! Commands that replace builtins with wrong results, and a check for `seq`, whose note
//! about its limit may be redirected.

mod isolated;
mod tee;

pub(crate) use isolated::{COMMANDS, Isolated};
pub(crate) use tee::Tee;

use async_trait::async_trait;
use bashkit::{Command, CommandContext, CommandStatus, Error, Result};
use std::io::ErrorKind;

/// Number of lines written at a time.
const LINES_AT_ONCE: usize = 512;

/// Endless `yes`: ended by its reader or by the time limit.
pub(crate) struct Yes;

#[async_trait]
impl Command for Yes {
    async fn execute(&self, ctx: CommandContext<'_>) -> Result<CommandStatus> {
        let word = if ctx.args.is_empty() {
            "y".to_owned()
        } else {
            ctx.args.join(" ")
        };
        let lines = format!("{word}\n").repeat(LINES_AT_ONCE);
        loop {
            match ctx.stdout.write_all(lines.as_bytes()).await {
                Ok(()) => tokio::task::yield_now().await,
                // Like a program ended by SIGPIPE.
                Err(Error::Io(error)) if error.kind() == ErrorKind::BrokenPipe => {
                    return Ok(CommandStatus::with_code(141));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Limits of the builtin `seq` in lines and bytes.
const LINES: f64 = 100_000.0;
const BYTES: f64 = 1_048_576.0;

/// Whether `seq` with these arguments stops at a limit.
pub(crate) fn exceeds_seq_limit(args: &[String]) -> bool {
    let mut numbers = Vec::new();
    let mut width = 1.0;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match (arg.as_str(), arg.parse::<f64>()) {
            (_, Ok(number)) => numbers.push(number),
            ("-s" | "-f" | "--separator" | "--format", _) => {
                width = args.next().map_or(1.0, |text| text.len() as f64);
            }
            _ => width = width.max(arg.len() as f64),
        }
    }
    let (first, step, last) = match numbers.as_slice() {
        [last] => (1.0, 1.0, *last),
        [first, last] => (*first, 1.0, *last),
        [first, step, last] => (*first, *step, *last),
        _ => return false,
    };
    let lines = (last - first) / step + 1.0;
    let digits = first.abs().max(last.abs()).max(1.0).log10().floor() + 1.0;
    lines > LINES || lines * (digits + width) > BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seq_calls_beyond_the_limits_are_detected() {
        let far = |line: &str| {
            let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
            exceeds_seq_limit(&args)
        };
        assert!(!far("10"));
        assert!(!far("100000"));
        assert!(far("100001"));
        assert!(far("1 0.5 60000"));
        assert!(!far("5 -1 1"));
        assert!(!far("nothing"));
        assert!(far("-s, 1 1 200000"));
        assert!(far("inf"));
    }
}
