//! A table of calls as text, which shows the calls and nothing else.
//!
//! `== TOOLSET TOOL` starts the calls of one tool. A call is a line as the model sent it
//! (`⏎` is a line break in it), a line `=> ` with the result, and a line `~ ` for each
//! listed repair. `#` names the agent that calls tools in this style.

pub(crate) struct Row {
    pub(crate) toolset: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) sent: String,
    pub(crate) result: &'static str,
    pub(crate) notes: Vec<&'static str>,
}

pub(crate) fn rows(text: &'static str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let (mut toolset, mut tool, mut sent) = ("", "", "");
    for line in text.lines().map(str::trim) {
        if let Some(heading) = line.strip_prefix("== ") {
            (toolset, tool) = heading.split_once(' ').unwrap();
        } else if let Some(result) = line.strip_prefix("=> ") {
            rows.push(Row {
                toolset,
                tool,
                sent: sent.replace('⏎', "\n"),
                result,
                notes: Vec::new(),
            });
        } else if let Some(note) = line.strip_prefix("~ ") {
            rows.last_mut().unwrap().notes.push(note);
        } else if !line.is_empty() && !line.starts_with('#') {
            sent = line;
        }
    }
    rows
}
