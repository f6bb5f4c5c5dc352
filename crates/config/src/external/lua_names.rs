//! Finds the names that a Lua module declares for its tool, without running it.

/// A token of Lua source.
#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Sign(char),
}

/// Returns the names declared as `name = "…"` in the module's table or outside of tables.
/// Deeper tables, such as the schema, are ignored.
pub(super) fn declared_names(source: &str) -> Vec<String> {
    let tokens = tokens(source);
    let mut names: Vec<String> = Vec::new();
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        let after = match token {
            Token::Sign('{') => {
                depth += 1;
                continue;
            }
            Token::Sign('}') => {
                depth = depth.saturating_sub(1);
                continue;
            }
            Token::Word(word) if word == "name" => at + 1,
            // `["name"] = …`
            Token::Text(text)
                if text == "name" && tokens.get(at + 1) == Some(&Token::Sign(']')) =>
            {
                at + 2
            }
            _ => continue,
        };
        let Some(name) = value(tokens.get(after..).unwrap_or_default()).filter(|_| depth < 2)
        else {
            continue;
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let is_name = !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain);
        if is_name && !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Returns the text in `= "…"`, possibly in parentheses, unless it is part of an
/// expression.
fn value(tokens: &[Token]) -> Option<&String> {
    let mut rest = tokens.strip_prefix(&[Token::Sign('=')])?;
    let mut open = 0;
    while let Some(inside) = rest.strip_prefix(&[Token::Sign('(')]) {
        rest = inside;
        open += 1;
    }
    let (Token::Text(text), mut rest) = rest.split_first()? else {
        return None;
    };
    for _ in 0..open {
        rest = rest.strip_prefix(&[Token::Sign(')')])?;
    }
    // `"a" .. b` and `("a"):upper()` are expressions.
    let is_whole = !matches!(rest.first(), Some(Token::Sign('.' | ':')));
    is_whole.then_some(text)
}

fn tokens(source: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let tail = rest.strip_prefix(c).unwrap_or_default();
        if let Some(comment) = rest.strip_prefix("--") {
            rest = match long(comment) {
                Some((_, after)) => after,
                None => comment.split_once('\n').map_or("", |(_, after)| after),
            };
        } else if let Some((text, after)) = long(rest) {
            tokens.push(Token::Text(text.to_owned()));
            rest = after;
        } else if c == '"' || c == '\'' {
            let (text, after) = short(tail, c);
            tokens.push(Token::Text(text));
            rest = after;
        } else if c.is_ascii_alphanumeric() || c == '_' {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let after = rest.trim_start_matches(is_word);
            let word = rest.strip_suffix(after).unwrap_or_default();
            tokens.push(Token::Word(word.to_owned()));
            rest = after;
        } else if let Some(after) = rest.strip_prefix("==") {
            // Must not be mistaken for two assignments.
            tokens.push(Token::Sign('≡'));
            rest = after;
        } else {
            if !c.is_whitespace() {
                tokens.push(Token::Sign(c));
            }
            rest = tail;
        }
    }
    tokens
}

/// Returns the content of `[[…]]` or `[=[…]=]` at the start of a text, and what follows
/// it.
fn long(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('[')?;
    let body = inner.trim_start_matches('=');
    let level = inner.strip_suffix(body).unwrap_or_default();
    let body = body.strip_prefix('[')?;
    let end = format!("]{level}]");
    // Without an end it extends to the end of the file, which Lua rejects.
    let (inside, after) = body.split_once(&end).unwrap_or((body, ""));
    Some((inside.strip_prefix('\n').unwrap_or(inside), after))
}

/// Returns the text between quotes, and what follows it. Escapes are not decoded, because
/// no name contains one.
fn short(text: &str, quote: char) -> (String, &str) {
    let mut inside = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == quote || c == '\n' {
            break;
        }
        inside.push(c);
        if c == '\\' {
            inside.extend(chars.next());
        }
    }
    (inside, chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::declared_names;

    #[test]
    fn declared_names_are_found_in_every_notation() {
        for source in [
            "return { name = \"read\", execute = f }",
            "return {name='read'}",
            "local t = {}\nt.name =\n  \"read\"\nreturn t",
            "return { [\"name\"] = \"read\" }",
            "return { name=[[read]] }",
            "return { name = [==[read]==] }",
            "return { name=('read') }",
            "return { name --[[ of it ]] = 'read' }",
        ] {
            assert_eq!(declared_names(source), ["read"], "{source}");
        }
        for source in [
            "return { filename = \"read\" }",
            "local names = \"read\"",
            "if name == \"read\" then end",
            "name = read",
            "name = \"a b\"",
            "name = 'read' .. suffix",
            "-- name = \"read\"",
            "--[[ name = \"read\" ]]",
            "return { description = 'name = \"read\"' }",
            "return { description = [[name = \"read\"]] }",
            "return { input_schema = { properties = { name = 'read' } } }",
            "return { input_schema = { name = 'read' } }",
        ] {
            assert_eq!(declared_names(source), Vec::<String>::new(), "{source}");
        }
    }
}
