//! Parses a server's list of tools, and detects definitions that have changed since they
//! were first seen.

use super::remote::{Naming, Remote};
use super::stdio::EXECUTION;
use haft::{Definition, ForeignParts, ResultSchema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of tools accepted from a server.
pub(super) const MAX_TOOLS: usize = 1_000;

/// Maximum size of all definitions together in bytes.
pub(super) const MAX_BYTES: usize = 4 << 20;

/// Maximum length of a server's own name for a tool in bytes.
const MAX_OWN_NAME: usize = 256;

/// Maximum length of a tool name for models.
const MAX_NAME: usize = 64;

/// Storage for the definitions under which a server's tools were first seen or accepted.
pub trait Pins: Send + Sync {
    /// Returns the definitions by the server's own names, or `None` if the server is new.
    fn load(&self) -> Option<BTreeMap<String, SeenTool>>;
    /// Stores all definitions.
    fn store(&self, seen: &BTreeMap<String, SeenTool>);
}

/// The part of a tool's definition that a model sees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeenTool {
    /// Purpose of the tool.
    pub description: String,
    /// JSON schema of the arguments.
    pub parameters: Value,
}

/// A valid tool of a server.
#[derive(Debug, Clone)]
pub(super) struct ListedTool {
    /// The server's own name for the tool.
    pub(super) own_name: String,
    pub(super) definition: Definition,
    /// Schema of structured results, if the server declares one.
    pub(super) output: Option<Arc<ResultSchema>>,
    /// The parts of the server's definition that only front ends use.
    pub(super) extra: ForeignParts,
}

/// Two tools are equal if the model sees the same definition.
impl PartialEq for ListedTool {
    fn eq(&self, other: &Self) -> bool {
        self.own_name == other.own_name && self.definition == other.definition
    }
}

/// The usable part of a server's list.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolList {
    pub(super) tools: Vec<ListedTool>,
    /// Problems with the other tools.
    pub(super) problems: Vec<String>,
    /// Tools that have changed: name, definition when first seen, definition now.
    pub(super) changed: Vec<(String, SeenTool, SeenTool)>,
}

/// Parses a list. Sorts the tools by name, so that their order is stable.
pub(super) fn parse(remote: &Remote, raw: &[Value]) -> ToolList {
    let mut list = ToolList::default();
    let mut bytes = 0;
    for tool in raw {
        let Some(own_name) = tool["name"].as_str() else {
            list.problems.push("has a tool without a name".to_owned());
            continue;
        };
        if remote
            .only
            .as_ref()
            .is_some_and(|only| !only.iter().any(|one| one == own_name))
        {
            continue;
        }
        if tool["_meta"][EXECUTION]["taskSupport"] == "required" {
            list.problems.push(format!(
                "has a tool {} that only runs as a task, which haft does not support",
                shown(own_name)
            ));
            continue;
        }
        let defined = definition(remote, own_name, tool);
        let output = &tool["outputSchema"];
        bytes += defined.as_ref().map_or(0, size);
        if !output.is_null() {
            bytes += output.to_string().len();
        }
        if list.tools.len() >= MAX_TOOLS || bytes > MAX_BYTES {
            list.problems.push(format!(
                "has {} tools; only the first {} are used (limits: {MAX_TOOLS} tools, {} MB)",
                raw.len(),
                list.tools.len(),
                MAX_BYTES >> 20
            ));
            break;
        }
        match defined {
            Ok(_) if list.tools.iter().any(|other| other.own_name == own_name) => {
                let shown = shown(own_name);
                list.problems.push(format!("has two tools named {shown}"));
            }
            Ok(definition) => {
                let output = match shape(own_name, output) {
                    Ok(output) => output,
                    Err(reason) => {
                        list.problems.push(format!(
                            "has a tool {} whose results are not checked: {reason}",
                            shown(own_name)
                        ));
                        None
                    }
                };
                let is_object = tool["outputSchema"]["type"] == "object";
                list.tools.push(ListedTool {
                    own_name: own_name.to_owned(),
                    definition,
                    extra: ForeignParts {
                        title: tool["title"].as_str().map(haft::ops::text::decode::visible),
                        output_schema: output
                            .as_ref()
                            .filter(|_| is_object)
                            .map(|_| tool["outputSchema"].clone()),
                        annotations: Some(tool["annotations"].clone()).filter(Value::is_object),
                    },
                    output,
                });
            }
            Err(reason) => list
                .problems
                .push(format!("has an invalid tool {}: {reason}", shown(own_name))),
        }
    }
    if let Some(only) = &remote.only {
        let is_missing = |name: &&String| !raw.iter().any(|tool| tool["name"] == **name);
        for missing in only.iter().filter(is_missing) {
            let missing = shown(missing);
            list.problems.push(format!("has no tool {missing}"));
        }
    }
    list.tools
        .sort_by(|one, other| one.own_name.cmp(&other.own_name));
    list
}

/// Compiles the schema of structured results. An invalid schema only disables the check,
/// not the tool.
fn shape(own_name: &str, schema: &Value) -> Result<Option<Arc<ResultSchema>>, String> {
    if schema.is_null() {
        return Ok(None);
    }
    let shape = ResultSchema::new(own_name, schema).map_err(|error| {
        let reason: String = haft::ops::text::decode::visible(&error.to_string())
            .chars()
            .take(300)
            .collect();
        format!("invalid output schema: {reason}")
    });
    shape.map(|shape| Some(Arc::new(shape)))
}

fn size(definition: &Definition) -> usize {
    definition.description.len() + definition.parameters.to_string().len()
}

fn definition(remote: &Remote, own_name: &str, tool: &Value) -> Result<Definition, String> {
    if own_name.trim().is_empty() || own_name.len() > MAX_OWN_NAME {
        return Err(format!(
            "its name is empty or longer than {MAX_OWN_NAME} bytes"
        ));
    }
    let schema = match &tool["inputSchema"] {
        Value::Null => json!({ "type": "object", "properties": {} }),
        schema => schema.clone(),
    };
    let text = |name: &str| tool[name].as_str().filter(|text| !text.trim().is_empty());
    let description = text("description")
        .or_else(|| text("title"))
        .or_else(|| tool["annotations"]["title"].as_str());
    haft::foreign(
        &session_name(remote, own_name),
        description.unwrap_or_default(),
        &schema,
    )
    .map_err(|error| error.to_string())
}

/// Returns the name of a tool in this session.
fn session_name(remote: &Remote, own_name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '_'
        }
    };
    let full = match remote.naming {
        Naming::Prefixed => format!("{}_{own_name}", remote.name),
        Naming::Bare => own_name.to_owned(),
    };
    full.chars().map(plain).take(MAX_NAME).collect()
}

/// Escapes and quotes a name for messages.
pub(super) fn shown(name: &str) -> String {
    let visible = haft::ops::text::decode::visible(name).replace('\n', "\\n");
    let short: String = visible.chars().take(80).collect();
    format!("\"{short}\"")
}

impl ListedTool {
    pub(super) fn seen(&self) -> SeenTool {
        SeenTool {
            description: self.definition.description.clone(),
            parameters: self.definition.parameters.clone(),
        }
    }
}

impl ToolList {
    /// Removes tools that have changed since they were first seen, and remembers new ones.
    pub(super) fn check_pins(&mut self, pins: &dyn Pins) {
        let known = pins.load();
        let is_new = known.is_none();
        let mut known = known.unwrap_or_default();
        let before = known.len();
        let changed = &mut self.changed;
        self.tools.retain(|tool| {
            let now = tool.seen();
            match known.get(&tool.own_name) {
                Some(was) if *was == now => true,
                Some(was) => {
                    changed.push((tool.own_name.clone(), was.clone(), now));
                    false
                }
                None => {
                    known.insert(tool.own_name.clone(), now);
                    true
                }
            }
        });
        if is_new || known.len() > before {
            pins.store(&known);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn remote() -> Remote {
        Remote::program("my server", "true", Vec::<String>::new())
    }

    fn tool(name: &str, description: &str) -> Value {
        json!({ "name": name, "description": description, "inputSchema": { "type": "object" } })
    }

    fn names(list: &ToolList) -> Vec<&str> {
        let names = list.tools.iter().map(|tool| &*tool.definition.name);
        names.collect()
    }

    #[test]
    fn names_are_made_plain_and_short_and_sorted() {
        let long = "x".repeat(100);
        let raw = [
            tool("z", "Z"),
            tool("a/b\u{1b}[2J\u{202e}c", "A"),
            tool(&long, "long"),
            tool("", "none"),
            json!({ "description": "nameless" }),
            tool("z", "again"),
        ];
        let list = parse(&remote(), &raw);
        let long = format!("my_server_{}", "x".repeat(54));
        assert_eq!(
            names(&list),
            ["my_server_a_b__2J_c", long.as_str(), "my_server_z"]
        );
        assert_eq!(list.problems.len(), 3, "{:?}", list.problems);
    }

    #[test]
    fn a_list_that_is_too_long_is_truncated_and_schema_bombs_are_dropped() {
        let mut raw: Vec<Value> = (0..1_200).map(|n| tool(&format!("t{n}"), "")).collect();
        let list = parse(&remote(), &raw);
        assert_eq!(list.tools.len(), MAX_TOOLS);
        assert!(list.problems[0].contains("has 1200 tools"));
        raw.truncate(1);
        let mut deep = json!({ "type": "object" });
        for _ in 0..500 {
            deep = json!({ "type": "object", "properties": { "a": deep } });
        }
        raw.push(json!({ "name": "deep", "inputSchema": deep }));
        raw.push(json!({ "name": "text", "inputSchema": "none" }));
        let list = parse(&remote(), &raw);
        assert_eq!(names(&list), ["my_server_t0"]);
        assert_eq!(list.problems.len(), 2);
    }

    #[test]
    fn a_tool_that_only_runs_as_a_task_is_left_out() {
        let result = json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [
            { "name": "a", "inputSchema": { "type": "object" }, "execution": { "taskSupport": "required" } },
            { "name": "b", "inputSchema": { "type": "object" }, "execution": { "taskSupport": "optional" } },
        ] } });
        let text = result.to_string();
        let messages = super::super::stdio::messages(text.as_bytes());
        let message = serde_json::to_value(messages.last().unwrap()).unwrap();
        let list = parse(&remote(), message["result"]["tools"].as_array().unwrap());
        assert_eq!(names(&list), ["my_server_b"]);
        assert!(list.problems[0].contains("only runs as a task"));
    }

    #[test]
    fn an_invalid_output_schema_does_not_disable_its_tool() {
        let with = |name: &str, schema: Value| json!({ "name": name, "inputSchema": { "type": "object" }, "outputSchema": schema });
        let mut deep = json!({ "type": "object" });
        for _ in 0..500 {
            deep = json!({ "type": "object", "properties": { "a": deep } });
        }
        let list = parse(
            &remote(),
            &[
                with("bad", json!({ "type": 5 })),
                with("deep", deep),
                with("good", json!({ "type": "object" })),
                with("text", json!("none")),
                with("void", Value::Null),
            ],
        );
        let checked: Vec<bool> = list.tools.iter().map(|t| t.output.is_some()).collect();
        assert_eq!(checked, [false, false, true, false, false]);
        assert_eq!(list.problems.len(), 3, "{:?}", list.problems);
        for problem in &list.problems {
            assert!(problem.contains("results are not checked"), "{problem}");
            assert!(problem.len() < 600, "{problem}");
        }
    }

    #[derive(Default)]
    struct MemoryPins(Mutex<Option<BTreeMap<String, SeenTool>>>);

    impl Pins for MemoryPins {
        fn load(&self) -> Option<BTreeMap<String, SeenTool>> {
            self.0.lock().unwrap().clone()
        }
        fn store(&self, seen: &BTreeMap<String, SeenTool>) {
            *self.0.lock().unwrap() = Some(seen.clone());
        }
    }

    #[test]
    fn a_changed_definition_is_not_offered_until_it_is_accepted() {
        let pins = MemoryPins::default();
        let listed = |raw: &[Value]| {
            let mut list = parse(&remote(), raw);
            let full = list.clone();
            list.check_pins(&pins);
            (list, full)
        };
        let (first, _) = listed(&[tool("a", "reads"), tool("b", "writes")]);
        assert_eq!(first.tools.len(), 2);
        let (second, full) = listed(&[tool("a", "reads, and sends"), tool("c", "new")]);
        assert_eq!(names(&second), ["my_server_c"]);
        assert_eq!(second.changed[0].0, "a");
        assert_eq!(second.changed[0].1.description, "reads");
        let all = full
            .tools
            .iter()
            .map(|tool| (tool.own_name.clone(), tool.seen()));
        pins.store(
            &all.chain([("b".to_owned(), first.tools[1].seen())])
                .collect(),
        );
        let (third, _) = listed(&[tool("a", "reads, and sends"), tool("b", "other")]);
        assert_eq!(names(&third), ["my_server_a"]);
        assert_eq!(third.changed[0].0, "b");
    }
}
