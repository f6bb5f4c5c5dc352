//! The process of a module, as haft starts it: `printf '%s
//! n' LOAD DESCRIBE CALL | worker`.

use std::process::ExitCode;

fn main() -> ExitCode {
    haft_script::serve()
}
