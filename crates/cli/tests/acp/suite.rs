//! The table of cases that any agent has to pass, and the help.

use crate::bed::{Bed, says};
use haft_testing::acp::conformance;
use serde_json::Value;

#[test]
fn the_agent_passes_every_case() {
    let bed = Bed::new(|_: &Value, _: usize| says("Hello"));
    let failures = conformance(&|| bed.agent(), &bed.folder());
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn the_help_says_what_it_is() {
    let bed = Bed::new(vec![]);
    let help = bed.says(&["acp", "--help"]);
    assert!(help.contains("Agent Client Protocol"), "{help}");
}
