//! What a server says of its tools, and whether that is what it said before.

use super::remote::{Naming, Remote};
use haft::{Definition, Shape};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most tools that are taken of a server.
pub(super) const MOST: usize = 1_000;

/// How many bytes all of their definitions have at most.
pub(super) const MOST_BYTES: usize = 4 << 20;

/// The longest name that a server may have for a tool.
const LONGEST: usize = 256;

/// How long the name of a tool is at most for a model.
const NAME: usize = 64;

/// The definitions of a server's tools that were seen before, and may be offered.
pub trait Pins: Send + Sync {
    /// Which they are, by the server's own names; nothing if it was never met.
    fn load(&self) -> Option<BTreeMap<String, Seen>>;
    /// Keeps them.
    fn store(&self, seen: &BTreeMap<String, Seen>);
}

/// What a model is told of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// What it is for.
    pub description: String,
    /// The schema of its arguments.
    pub parameters: Value,
}

/// A tool of a server that can be offered.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    /// The server's own name for it.
    pub(super) own: String,
    pub(super) definition: Definition,
    /// What its structured results look like, where the server says so.
    pub(super) output: Option<Arc<Shape>>,
}

/// What a model sees of it makes it the tool it is.
impl PartialEq for Listed {
    fn eq(&self, other: &Self) -> bool {
        self.own == other.own && self.definition == other.definition
    }
}

/// What there is of a server's list.
#[derive(Debug, Clone, Default)]
pub(super) struct Taken {
    pub(super) tools: Vec<Listed>,
    /// What is wrong with the others.
    pub(super) problems: Vec<String>,
    /// Tools that are not what they were, with what they were and what they are.
    pub(super) changed: Vec<(String, Seen, Seen)>,
}

/// The tools of a list, by name, so that their order is the same every time.
pub(super) fn take(remote: &Remote, raw: &[Value]) -> Taken {
    let mut taken = Taken::default();
    let mut bytes = 0;
    for tool in raw {
        let Some(own) = tool["name"].as_str() else {
            taken.problems.push("has a tool without a name".to_owned());
            continue;
        };
        if remote
            .only
            .as_ref()
            .is_some_and(|only| !only.iter().any(|one| one == own))
        {
            continue;
        }
        let defined = definition(remote, own, tool);
        let output = &tool["outputSchema"];
        bytes += defined.as_ref().map_or(0, size);
        if !output.is_null() {
            bytes += output.to_string().len();
        }
        if taken.tools.len() >= MOST || bytes > MOST_BYTES {
            taken.problems.push(format!(
                "has {} tools; those after the first {} are left out, as they are more than {MOST} or larger than {} MB together",
                raw.len(),
                taken.tools.len(),
                MOST_BYTES >> 20
            ));
            break;
        }
        match defined {
            Ok(_) if taken.tools.iter().any(|other| other.own == own) => {
                let shown = shown(own);
                taken.problems.push(format!("has two tools named {shown}"));
            }
            Ok(definition) => {
                let output = match shape(own, output) {
                    Ok(output) => output,
                    Err(reason) => {
                        taken.problems.push(format!(
                            "has a tool {} whose results are not checked: {reason}",
                            shown(own)
                        ));
                        None
                    }
                };
                taken.tools.push(Listed {
                    own: own.to_owned(),
                    definition,
                    output,
                });
            }
            Err(reason) => taken.problems.push(format!(
                "has a tool {} that cannot be used: {reason}",
                shown(own)
            )),
        }
    }
    if let Some(only) = &remote.only {
        let is_there = |name: &&String| !raw.iter().any(|tool| tool["name"] == **name);
        for missing in only.iter().filter(is_there) {
            let missing = shown(missing);
            taken.problems.push(format!("has no tool {missing}"));
        }
    }
    taken.tools.sort_by(|one, other| one.own.cmp(&other.own));
    taken
}

/// What its structured results look like. A schema that cannot be used costs the check
/// of the results, not the tool.
fn shape(own: &str, schema: &Value) -> Result<Option<Arc<Shape>>, String> {
    if schema.is_null() {
        return Ok(None);
    }
    let shape = Shape::new(own, schema).map_err(|error| {
        let reason: String = haft::ops::text::decode::visible(&error.to_string())
            .chars()
            .take(300)
            .collect();
        format!("the output schema cannot be used: {reason}")
    });
    shape.map(|shape| Some(Arc::new(shape)))
}

fn size(definition: &Definition) -> usize {
    definition.description.len() + definition.parameters.to_string().len()
}

fn definition(remote: &Remote, own: &str, tool: &Value) -> Result<Definition, String> {
    if own.trim().is_empty() || own.len() > LONGEST {
        return Err(format!("its name is empty, or longer than {LONGEST} bytes"));
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
        &called(remote, own),
        description.unwrap_or_default(),
        &schema,
    )
    .map_err(|error| error.to_string())
}

/// What a tool is called here.
fn called(remote: &Remote, own: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '_'
        }
    };
    let whole = match remote.naming {
        Naming::Prefixed => format!("{}_{own}", remote.name),
        Naming::Bare => own.to_owned(),
    };
    whole.chars().map(plain).take(NAME).collect()
}

/// A name that may be shown.
pub(super) fn shown(name: &str) -> String {
    let visible = haft::ops::text::decode::visible(name).replace('\n', "\\n");
    let short: String = visible.chars().take(80).collect();
    format!("\"{short}\"")
}

impl Listed {
    pub(super) fn seen(&self) -> Seen {
        Seen {
            description: self.definition.description.clone(),
            parameters: self.definition.parameters.clone(),
        }
    }
}

impl Taken {
    /// Leaves out what is not what it was when it was first seen. What is seen for the
    /// first time is remembered.
    pub(super) fn hold_to(&mut self, pins: &dyn Pins) {
        let known = pins.load();
        let is_new = known.is_none();
        let mut known = known.unwrap_or_default();
        let before = known.len();
        let changed = &mut self.changed;
        self.tools.retain(|tool| {
            let now = tool.seen();
            match known.get(&tool.own) {
                Some(was) if *was == now => true,
                Some(was) => {
                    changed.push((tool.own.clone(), was.clone(), now));
                    false
                }
                None => {
                    known.insert(tool.own.clone(), now);
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

    fn names(taken: &Taken) -> Vec<&str> {
        let names = taken.tools.iter().map(|tool| &*tool.definition.name);
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
        let taken = take(&remote(), &raw);
        let long = format!("my_server_{}", "x".repeat(54));
        assert_eq!(
            names(&taken),
            ["my_server_a_b__2J_c", long.as_str(), "my_server_z"]
        );
        assert_eq!(taken.problems.len(), 3, "{:?}", taken.problems);
    }

    #[test]
    fn a_list_that_is_too_long_is_cut_and_bombs_are_left_out() {
        let mut raw: Vec<Value> = (0..1_200).map(|n| tool(&format!("t{n}"), "")).collect();
        let taken = take(&remote(), &raw);
        assert_eq!(taken.tools.len(), MOST);
        assert!(taken.problems[0].contains("has 1200 tools"));
        raw.truncate(1);
        let mut deep = json!({ "type": "object" });
        for _ in 0..500 {
            deep = json!({ "type": "object", "properties": { "a": deep } });
        }
        raw.push(json!({ "name": "deep", "inputSchema": deep }));
        raw.push(json!({ "name": "text", "inputSchema": "none" }));
        let taken = take(&remote(), &raw);
        assert_eq!(names(&taken), ["my_server_t0"]);
        assert_eq!(taken.problems.len(), 2);
    }

    #[test]
    fn an_output_schema_that_cannot_be_used_costs_no_tool() {
        let with = |name: &str, schema: Value| json!({ "name": name, "inputSchema": { "type": "object" }, "outputSchema": schema });
        let mut deep = json!({ "type": "object" });
        for _ in 0..500 {
            deep = json!({ "type": "object", "properties": { "a": deep } });
        }
        let taken = take(
            &remote(),
            &[
                with("bad", json!({ "type": 5 })),
                with("deep", deep),
                with("good", json!({ "type": "object" })),
                with("text", json!("none")),
                with("void", Value::Null),
            ],
        );
        let checked: Vec<bool> = taken.tools.iter().map(|t| t.output.is_some()).collect();
        assert_eq!(checked, [false, false, true, false, false]);
        assert_eq!(taken.problems.len(), 3, "{:?}", taken.problems);
        for problem in &taken.problems {
            assert!(problem.contains("results are not checked"), "{problem}");
            assert!(problem.len() < 600, "{problem}");
        }
    }

    #[derive(Default)]
    struct Kept(Mutex<Option<BTreeMap<String, Seen>>>);

    impl Pins for Kept {
        fn load(&self) -> Option<BTreeMap<String, Seen>> {
            self.0.lock().unwrap().clone()
        }
        fn store(&self, seen: &BTreeMap<String, Seen>) {
            *self.0.lock().unwrap() = Some(seen.clone());
        }
    }

    #[test]
    fn a_definition_that_changed_is_held_back_until_it_is_accepted() {
        let kept = Kept::default();
        let listed = |raw: &[Value]| {
            let mut taken = take(&remote(), raw);
            let whole = taken.clone();
            taken.hold_to(&kept);
            (taken, whole)
        };
        let (first, _) = listed(&[tool("a", "reads"), tool("b", "writes")]);
        assert_eq!(first.tools.len(), 2);
        let (second, whole) = listed(&[tool("a", "reads, and sends"), tool("c", "new")]);
        assert_eq!(names(&second), ["my_server_c"]);
        assert_eq!(second.changed[0].0, "a");
        assert_eq!(second.changed[0].1.description, "reads");
        let all = whole
            .tools
            .iter()
            .map(|tool| (tool.own.clone(), tool.seen()));
        kept.store(
            &all.chain([("b".to_owned(), first.tools[1].seen())])
                .collect(),
        );
        let (third, _) = listed(&[tool("a", "reads, and sends"), tool("b", "other")]);
        assert_eq!(names(&third), ["my_server_a"]);
        assert_eq!(third.changed[0].0, "b");
    }
}
