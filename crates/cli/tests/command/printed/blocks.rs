//! Reads the pages of other agents: their blocks, calls and results as they print them.

use serde_json::Value;

/// A block between fences.
pub(super) struct Block {
    /// The tool whose heading stands above it.
    pub(super) tool: String,
    pub(super) language: String,
    pub(super) text: String,
}

/// The blocks of a page, in order.
pub(super) fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut tool = String::new();
    let mut open: Option<Block> = None;
    for line in page.lines() {
        match &mut open {
            Some(_) if line == "```" => found.extend(open.take()),
            Some(block) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {
                if let Some(language) = line.strip_prefix("```") {
                    open = Some(Block {
                        tool: tool.clone(),
                        language: language.to_owned(),
                        text: String::new(),
                    });
                } else if line.starts_with("##") && !line.contains("`action=") {
                    tool = line.split('`').nth(1).unwrap_or_default().to_owned();
                }
            }
        }
    }
    assert!(open.is_none(), "a block is not closed");
    found
}

/// The calls of a block that prints them as `Tool call: name(key=value, …)`.
pub(super) fn calls(text: &str) -> Vec<(String, Value)> {
    let printed = text.split("Tool call: ").filter(|call| !call.is_empty());
    printed
        .map(|call| {
            let (name, rest) = call.split_once('(').unwrap();
            let arguments = rest.trim_end().strip_suffix(')').unwrap();
            (name.to_owned(), json(&format!("{{{arguments}}}")))
        })
        .collect()
}

/// The results of a block in Python: the comment above each, and its value.
pub(super) fn results(text: &str) -> Vec<(String, Value)> {
    let printed = text.trim_end().split("\n\n");
    printed
        .map(|part| match part.strip_prefix("# ") {
            // Only a comment: a text that is part of another result.
            Some(comment) if part.lines().all(|line| line.starts_with('#')) => {
                let (title, text) = comment.split_once("\n# ").unwrap();
                (title.to_owned(), json(text))
            }
            Some(comment) => {
                let (title, value) = comment.split_once('\n').unwrap();
                (title.to_owned(), json(value))
            }
            None => (String::new(), json(part)),
        })
        .collect()
}

/// The parameters of a function in Python, each with its default value.
pub(super) fn parameters(text: &str) -> Vec<(String, Option<Value>)> {
    let (_, rest) = text.split_once('(').unwrap();
    let (list, _) = rest.split_once(") -> dict:").unwrap();
    let all = list.split(',').map(str::trim);
    all.filter(|one| !one.is_empty() && !one.starts_with("tool_context:"))
        .map(|one| {
            let (name, rest) = one.split_once(": ").unwrap();
            let default = rest.split_once(" = ").map(|(_, value)| json(value));
            (name.to_owned(), default)
        })
        .collect()
}

/// A value in the notation of Python, or the arguments of a call in braces.
fn json(python: &str) -> Value {
    let mut out = String::new();
    let mut rest = python;
    let mut depth = 0;
    while let Some(first) = rest.chars().next() {
        let mut taken = first.len_utf8();
        match first {
            '"' => {
                let mut escaped = false;
                let end = rest.split_at(1).1.find(|c| {
                    let is_end = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    is_end
                });
                taken = end.unwrap() + 2;
                out.push_str(rest.split_at(taken).0);
            }
            '#' => taken = rest.find('\n').unwrap_or(rest.len()),
            '=' if depth == 1 => {
                let start = out.rfind([' ', '{', '\n']).unwrap() + 1;
                let name = out.split_off(start);
                out.push_str(&format!("\"{name}\":"));
            }
            _ => {
                for (word, value) in [("True", "true"), ("False", "false"), ("None", "null")] {
                    if rest.starts_with(word) {
                        out.push_str(value);
                        taken = word.len();
                    }
                }
                if taken == first.len_utf8() {
                    let next = rest.split_at(taken).1.trim_start().chars().next();
                    if !(first == ',' && matches!(next, Some(']' | '}'))) {
                        out.push(first);
                    }
                    match first {
                        '{' | '[' => depth += 1,
                        '}' | ']' => depth -= 1,
                        _ => {}
                    }
                }
            }
        }
        rest = rest.split_at(taken).1;
    }
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

#[test]
fn calls_and_results_are_read_as_they_are_printed() {
    use serde_json::json;
    assert_eq!(
        calls(
            "Tool call: a(x=\"p=q, (\\\"r\\\")\", y=2)\nTool call: b(\n    z=[{\"k\": \"v\"}]\n)\nTool call: c()\n"
        ),
        [
            ("a".to_owned(), json!({ "x": "p=q, (\"r\")", "y": 2 })),
            ("b".to_owned(), json!({ "z": [{ "k": "v" }] })),
            ("c".to_owned(), json!({})),
        ]
    );
    assert_eq!(
        results("# One\n{\"a\": True, \"b\": [1,\n]}  # b\n\n# Text (part)\n# \"...\"\n"),
        [
            ("One".to_owned(), json!({ "a": true, "b": [1] })),
            ("Text (part)".to_owned(), json!("...")),
        ]
    );
    assert_eq!(
        parameters("def f(a: str, tool_context: ToolContext, b: str | None = None) -> dict:\n"),
        [("a".to_owned(), None), ("b".to_owned(), Some(Value::Null))]
    );
}
