//! The todo list of the model, as its tools write it.

use crate::styled_text::{Line, Style};
use serde_json::Value;

/// Maximum number of items to show: the done ones before them are counted only.
const MAX_ROWS: usize = 6;

#[derive(Debug, Default)]
pub(super) struct Todos(Vec<(String, Status)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Pending,
    InProgress,
    Completed,
}

impl Todos {
    /// Takes over the list in a call's arguments, if they have one.
    pub(super) fn update(&mut self, arguments: &Value) {
        let Some(Value::Array(items)) = arguments.get("todos") else {
            return;
        };
        let item = |item: &Value| {
            let text = item.get("content")?.as_str()?;
            let status = match item.get("status")?.as_str()? {
                "completed" => Status::Completed,
                "in_progress" => Status::InProgress,
                _ => Status::Pending,
            };
            Some((text.to_owned(), status))
        };
        self.0 = items.iter().filter_map(item).collect();
    }

    fn done(&self) -> usize {
        let items = self.0.iter();
        items
            .filter(|(_, status)| *status == Status::Completed)
            .count()
    }

    /// The list, from the last completed item on; nothing if everything is done.
    pub(super) fn rows(&self, columns: usize) -> Vec<Line> {
        let done = self.done();
        if done == self.0.len() {
            return Vec::new();
        }
        let open = self
            .0
            .iter()
            .position(|(_, status)| *status != Status::Completed);
        let first = open.unwrap_or(0).saturating_sub(1);
        let mut rows = vec![
            Line::new("  todo ", Style::DIM)
                .and(&format!("{done}/{}", self.0.len()), Style::BOLD)
                .truncated(columns),
        ];
        for (text, status) in self.0.iter().skip(first).take(MAX_ROWS) {
            let (mark, style, of_mark) = match status {
                Status::Completed => ("☑", Style::DIM.and(Style::STRUCK), Style::GREEN),
                Status::InProgress => ("▸", Style::BOLD, Style::YELLOW),
                Status::Pending => ("☐", Style::PLAIN, Style::DIM),
            };
            let line = Line::new(&format!("  {mark} "), of_mark).and(text, style);
            rows.push(line.truncated(columns));
        }
        let more = self.0.len().saturating_sub(first + MAX_ROWS);
        if more > 0 {
            rows.push(Line::new(&format!("    and {more} more"), Style::DIM));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::Todos;
    use crate::styled_text::Line;
    use serde_json::json;

    #[test]
    fn the_list_stays_until_everything_is_done() {
        let mut todos = Todos::default();
        let item = |text: &str, status: &str| json!({ "content": text, "status": status });
        todos.update(&json!({ "path": "x" }));
        assert!(todos.rows(40).is_empty());
        let list = [
            ("a", "completed"),
            ("b", "completed"),
            ("c", "in_progress"),
            ("d", "pending"),
        ];
        let list: Vec<_> = list
            .iter()
            .map(|(text, status)| item(text, status))
            .collect();
        todos.update(&json!({ "todos": list }));
        let rows: Vec<String> = todos.rows(40).iter().map(Line::text).collect();
        assert_eq!(rows, ["  todo 2/4", "  ☑ b", "  ▸ c", "  ☐ d"]);
        todos.update(&json!({ "todos": [item("a", "completed")] }));
        assert!(todos.rows(40).is_empty());
    }
}
