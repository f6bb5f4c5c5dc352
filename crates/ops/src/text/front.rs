//! Front matter as people write it, where YAML would want quotes.

/// The same front matter with quotes around plain values that have a colon, which YAML
/// takes for another key: `description: Deploys: to prod`. Only keys that begin
/// a line are looked at. For text that is not valid YAML as it stands.
#[must_use]
pub fn quoted(front: &str) -> String {
    let mut out = String::with_capacity(front.len() + 16);
    let mut lines = front.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((key, value)) = plain(line) else {
            out.push_str(line);
            out.push('\n');
            continue;
        };
        let mut value = value.to_owned();
        // A plain value may go on in lines that are indented.
        while let Some(more) = lines.next_if(|next| next.starts_with([' ', '\t'])) {
            value.push(' ');
            value.push_str(more.trim());
        }
        let escaped = value.trim_end().replace('\\', "\\\\").replace('"', "\\\"");
        out.push_str(&format!("{key}: \"{escaped}\"\n"));
    }
    out
}

/// The key and the value of a line that has a plain value on it.
fn plain(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(": ")?;
    let is_key = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let value = value.trim();
    let is_plain = !value.starts_with(|c| "\"'[{|>&*!#".contains(c));
    let has_colon = value.contains(": ") || value.ends_with(':');
    (is_key && is_plain && has_colon).then_some((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_values_get_quotes_and_the_rest_stays() {
        assert_eq!(
            quoted("description: Deploys: to prod\nparameters:\n  type: object\n"),
            "description: \"Deploys: to prod\"\nparameters:\n  type: object\n"
        );
        assert_eq!(
            quoted("description: Say \"hi\": twice\n  and more\nname: x\n"),
            "description: \"Say \\\"hi\\\": twice and more\"\nname: x\n"
        );
        let kept = "list: [a, b]\ntext: |\n  a: b\nquoted: \"a: b\"\n";
        assert_eq!(quoted(kept), kept);
    }
}
