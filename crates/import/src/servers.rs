//! Converts MCP servers from the formats of other programs.

use crate::draft::Draft;
use crate::references::{WorkFolder, references};
use crate::secrets;
use crate::texts;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The program whose format a file uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `.mcp.json` and Claude Code.
    Claude,
    Codex,
    Gemini,
    Opencode,
}

/// Adds the servers of a map.
pub(crate) fn add_all(draft: &mut Draft, at: &str, servers: &Value, dialect: Dialect) {
    let Value::Object(servers) = servers else {
        return draft.skip(at, "not a map of servers");
    };
    for (name, server) in servers {
        let what = format!("{at}.{name}");
        match server {
            Value::Object(server) if !name.trim().is_empty() => {
                let reader = Reader {
                    what: &what,
                    name,
                    dialect,
                    given: server,
                };
                reader.add(draft);
            }
            _ => draft.skip(&what, "not a server: expected a name and a map"),
        }
    }
}

/// Returns haft's name for a tool of a server.
pub(crate) fn tool_name(server: &str, tool: &str) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() || c == '_' || c == '-' {
        true => c,
        false => '_',
    };
    format!("{server}_{tool}")
        .chars()
        .map(plain)
        .take(64)
        .collect()
}

struct Reader<'a> {
    what: &'a str,
    name: &'a str,
    dialect: Dialect,
    given: &'a Map<String, Value>,
}

impl Reader<'_> {
    fn add(&self, draft: &mut Draft) {
        let mut server = Map::new();
        self.program(draft, &mut server);
        self.address(draft, &mut server);
        if !["command", "url", "uri"]
            .iter()
            .any(|key| server.contains_key(*key))
        {
            return draft.skip(self.what, "command or url is missing");
        }
        let mut denied = Vec::new();
        for (key, value) in self.given {
            match (key.as_str(), value) {
                // Handled by `program` and `address`.
                ("command" | "args" | "env" | "environment" | "env_vars" | "cwd" | "url"
                | "httpUrl" | "headers" | "http_headers" | "env_http_headers"
                | "bearer_token_env_var" | "type" | "transport" | "envFile", _)
                // Comments for people.
                | ("description" | "note" | "comment" | "name" | "gallery" | "version" | "icon", _)
                // haft's own defaults.
                | ("enabled", Value::Bool(true))
                | ("disabled" | "trust" | "required", Value::Bool(false)) => {}
                ("enabled", Value::Bool(false)) | ("disabled", Value::Bool(true)) => {
                    server.insert("enabled".to_owned(), false.into());
                }
                ("timeout", Value::Number(number)) if self.dialect != Dialect::Opencode => {
                    let seconds = number.as_f64().unwrap_or_default() / 1000.0;
                    self.timeout(draft, &mut server, key, seconds);
                }
                ("tool_timeout_sec", Value::Number(number)) => {
                    let seconds = number.as_f64().unwrap_or_default();
                    self.timeout(draft, &mut server, key, seconds);
                }
                ("startup_timeout_sec", Value::Number(number)) => {
                    let seconds = number.as_f64().unwrap_or_default();
                    self.timeout(draft, &mut server, key, seconds);
                }
                ("startup_timeout_ms", Value::Number(number)) => {
                    let seconds = number.as_f64().unwrap_or_default() / 1000.0;
                    self.timeout(draft, &mut server, key, seconds);
                }
                ("includeTools" | "enabled_tools", Value::Array(names)) => {
                    server.insert("tools".to_owned(), texts(names).into());
                }
                ("excludeTools" | "disabled_tools", Value::Array(names)) => denied = texts(names),
                ("trust", Value::Bool(true)) => draft.skip(
                    &format!("{}.trust", self.what),
                    "haft has no rule for all tools of a server; its calls ask first. Allow them one by one: { allow: SERVER_TOOL }",
                ),
                ("timeout", Value::Number(number)) => {
                    // In opencode, for fetching the tools.
                    let seconds = number.as_f64().unwrap_or_default() / 1000.0;
                    self.timeout(draft, &mut server, "startup_timeout_ms", seconds);
                }
                ("autoApprove" | "alwaysAllow", _) => draft.skip(
                    &format!("{}.{key}", self.what),
                    "rules decide which calls ask; allow a tool with { allow: SERVER_TOOL }",
                ),
                (key, _) => draft.skip(
                    &format!("{}.{key}", self.what),
                    "haft has no such setting for a server",
                ),
            }
        }
        draft.server(self.what, self.name, server);
        for tool in denied {
            let rule = json!({ "deny": tool_name(self.name, &tool) });
            draft.rule(&format!("{} without the tool {tool}", self.what), rule);
        }
    }

    fn timeout(&self, draft: &mut Draft, server: &mut Map<String, Value>, key: &str, seconds: f64) {
        if (0.001..=86_400.0).contains(&seconds) {
            let whole = Duration::from_secs_f64(seconds);
            let value = match whole.subsec_nanos() {
                0 => json!(whole.as_secs()),
                _ => json!(seconds),
            };
            let name = match key.starts_with("startup") {
                true => "start_timeout",
                false => "timeout",
            };
            server.insert(name.to_owned(), value);
        } else {
            draft.skip(
                &format!("{}.{key}", self.what),
                "not between a millisecond and a day",
            );
        }
    }

    fn program(&self, draft: &mut Draft, server: &mut Map<String, Value>) {
        let mut words = match self.given.get("command") {
            Some(Value::String(line)) => split(draft, self.what, line),
            Some(Value::Array(words)) => texts(words),
            _ => return,
        };
        if let Some(Value::Array(more)) = self.given.get("args") {
            words.extend(texts(more));
        }
        if words
            .first()
            .is_none_or(|program| program.trim().is_empty())
        {
            return;
        }
        let line = CommandLine {
            what: self.what,
            owner: self.name,
            dialect: self.dialect,
            is_elsewhere: self.is_elsewhere(draft),
        };
        // Before the arguments, so that a variable keeps its name even if an argument
        // would get the same one.
        let environment = self.environment(draft);
        let words = line.words(draft, &words);
        server.insert("command".to_owned(), words.first().cloned().into());
        if words.len() > 1 {
            server.insert("args".to_owned(), words[1..].to_vec().into());
        }
        if !environment.is_empty() {
            server.insert("env".to_owned(), environment.into());
        }
        if let Some(Value::String(file)) = self.given.get("envFile") {
            let work = work_in_paths(draft);
            let file = references(draft, self.what, file, self.dialect, work);
            server.insert("envFile".to_owned(), draft.rooted(&file).into());
        }
        if let Some(Value::String(dir)) = self.given.get("cwd") {
            let work = work_in_paths(draft);
            let dir = references(draft, self.what, dir, self.dialect, work);
            server.insert("cwd".to_owned(), draft.rooted(&dir).into());
        }
    }

    /// Whether the server sets its own folder, from which relative paths in its arguments
    /// then start.
    fn is_elsewhere(&self, draft: &Draft) -> bool {
        let cwd = self.given.get("cwd").and_then(Value::as_str);
        // Notes about this text are made when it is converted.
        let mut unused = draft.empty_copy();
        cwd.is_some_and(|dir| {
            references(&mut unused, "", dir, self.dialect, WorkFolder::Dot) != "."
        })
    }

    fn environment(&self, draft: &mut Draft) -> Map<String, Value> {
        let mut out = Map::new();
        for key in ["env", "environment"] {
            let Some(Value::Object(given)) = self.given.get(key) else {
                continue;
            };
            for (name, value) in given {
                let text = match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let what = format!("{}.{key}", self.what);
                let carried = variable(draft, &what, name, &text, self.dialect);
                out.insert(name.clone(), carried.into());
            }
        }
        if let Some(Value::Array(names)) = self.given.get("env_vars") {
            for name in texts(names) {
                let reference = draft.needs(&name);
                out.insert(name, reference.into());
            }
        }
        out
    }

    fn address(&self, draft: &mut Draft, server: &mut Map<String, Value>) {
        let text = |key: &str| self.given.get(key).and_then(Value::as_str);
        let (key, url) = match (text("httpUrl"), text("url")) {
            (Some(url), _) => ("url", url),
            // In Gemini CLI `url` means the older SSE transport.
            (None, Some(url)) if self.dialect == Dialect::Gemini => ("uri", url),
            (None, Some(url)) => ("url", url),
            (None, None) => return,
        };
        if server.contains_key("command") {
            return draft.skip(
                &format!("{}.url", self.what),
                "a server can have a command or a url, not both",
            );
        }
        let url = self.url(draft, url);
        // A URL with a variable cannot be checked yet.
        if !url.contains("${") && !draft.accepts_server_url(url.trim()) {
            return draft.skip(&format!("{}.url", self.what), "not a valid server URL");
        }
        server.insert(key.to_owned(), url.into());
        if let Some("sse") = text("type").or(text("transport")) {
            server.insert("type".to_owned(), "sse".into());
        }
        let headers = self.headers(draft);
        if !headers.is_empty() {
            server.insert("headers".to_owned(), headers.into());
        }
    }

    fn url(&self, draft: &mut Draft, given: &str) -> String {
        let carried = self.references(draft, given);
        address(draft, &format!("{}.url", self.what), self.name, &carried)
    }

    fn headers(&self, draft: &mut Draft) -> Map<String, Value> {
        let mut out = Map::new();
        for key in ["headers", "http_headers"] {
            let Some(Value::Object(given)) = self.given.get(key) else {
                continue;
            };
            for (name, value) in given {
                let Value::String(text) = value else {
                    draft.skip(&format!("{}.{key}.{name}", self.what), "not text");
                    continue;
                };
                let carried = self.references(draft, text);
                let what = format!("{}.{key}.{name}", self.what);
                let carried = header(draft, &what, self.name, name, &carried);
                out.insert(name.clone(), carried.into());
            }
        }
        if let Some(Value::Object(given)) = self.given.get("env_http_headers") {
            for (name, variable) in given {
                let reference = draft.needs(variable.as_str().unwrap_or_default());
                out.insert(name.clone(), reference.into());
            }
        }
        if let Some(Value::String(variable)) = self.given.get("bearer_token_env_var") {
            let reference = draft.needs(variable);
            out.insert(
                "Authorization".to_owned(),
                format!("Bearer {reference}").into(),
            );
        }
        out
    }

    fn references(&self, draft: &mut Draft, text: &str) -> String {
        references(draft, self.what, text, self.dialect, WorkFolder::Variable)
    }
}

/// Returns how to write the work folder at the start of a path.
fn work_in_paths(draft: &Draft) -> WorkFolder {
    match draft.is_in_work_folder() {
        true => WorkFolder::Dot,
        false => WorkFolder::Variable,
    }
}

/// Returns a variable's value, or a reference to the variable if the value is a secret.
pub(crate) fn variable(
    draft: &mut Draft,
    what: &str,
    name: &str,
    given: &str,
    dialect: Dialect,
) -> String {
    let carried = references(draft, what, given, dialect, WorkFolder::Variable);
    match secrets::is_literal(&carried) && secrets::is_secret(name, given) {
        true => draft.hide(&format!("{what}.{name}"), name, given),
        false => carried,
    }
}

/// Returns a URL with its secrets replaced by variables.
fn address(draft: &mut Draft, what: &str, owner: &str, given: &str) -> String {
    if !secrets::is_literal(given) {
        return given.to_owned();
    }
    let (place, query) = match given.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (given, None),
    };
    let has_user = url::Url::parse(place)
        .is_ok_and(|url| !url.username().is_empty() || url.password().is_some());
    if has_user || secrets::holds_secret(place) {
        return draft.hide(what, &secrets::variable(&[owner, "url"]), given);
    }
    let Some(query) = query else {
        return given.to_owned();
    };
    let pairs: Vec<String> = query
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some((name, value))
                if secrets::is_literal(value) && secrets::is_secret(name, value) =>
            {
                let variable = secrets::variable(&[owner, name]);
                format!("{name}={}", draft.hide(what, &variable, value))
            }
            None if secrets::holds_secret(pair) => {
                draft.hide(what, &secrets::variable(&[owner, "query"]), pair)
            }
            _ => pair.to_owned(),
        })
        .collect();
    format!("{place}?{}", pairs.join("&"))
}

/// Returns a header's value with the secret replaced. Most headers in configuration files
/// contain a key, whatever their name.
fn header(draft: &mut Draft, what: &str, owner: &str, name: &str, given: &str) -> String {
    let is_harmless = ["accept", "content-type", "user-agent"]
        .contains(&name.to_ascii_lowercase().as_str())
        && !secrets::holds_secret(given);
    if is_harmless || !secrets::is_literal(given) {
        return given.to_owned();
    }
    let is_scheme = |word: &str| secrets::SCHEMES.contains(&word.to_ascii_lowercase().as_str());
    let (scheme, secret) = match given.split_once(' ') {
        Some((scheme, secret)) if is_scheme(scheme) => (Some(scheme), secret),
        _ => (None, given),
    };
    let hidden = draft.hide(what, &secrets::variable(&[owner, name]), secret);
    match scheme {
        Some(scheme) => format!("{scheme} {hidden}"),
        None => hidden,
    }
}

/// Splits a command line that was written as one text. A path with a space stays whole if
/// such a file exists.
pub(crate) fn split(draft: &mut Draft, what: &str, line: &str) -> Vec<String> {
    let has_space = line.trim().contains(char::is_whitespace);
    if !has_space || draft.has_file(line.trim()) {
        return vec![line.to_owned()];
    }
    let words =
        shlex::split(line).unwrap_or_else(|| line.split_whitespace().map(str::to_owned).collect());
    if words.len() > 1 {
        draft.same(
            &format!("{what}, program and arguments in one text"),
            "the arguments are in args",
        );
    }
    words
}

/// Command line of a server or a plugin.
pub(crate) struct CommandLine<'a> {
    pub(crate) what: &'a str,
    pub(crate) owner: &'a str,
    pub(crate) dialect: Dialect,
    /// Whether paths in its arguments do not start at the work folder.
    pub(crate) is_elsewhere: bool,
}

impl CommandLine<'_> {
    /// Returns the words with secrets replaced by variables.
    pub(crate) fn words(&self, draft: &mut Draft, words: &[String]) -> Vec<String> {
        let program = words.first().map_or("", String::as_str);
        let program = program.rsplit('/').next().unwrap_or_default();
        let fetches = ["npx", "npm", "pnpm", "bunx", "uvx", "uv"].contains(&program);
        let takes = secrets::password_flags(words);
        let mut flag: Option<&str> = None;
        let mut out: Vec<String> = Vec::new();
        // Number of words after the program that are not flags; the first is a package or
        // a command.
        let mut plain = 0;
        for word in words {
            let is_program = out.is_empty();
            let work = match self.is_elsewhere && !is_program {
                true => WorkFolder::Variable,
                false => work_in_paths(draft),
            };
            let given = references(draft, self.what, word, self.dialect, work);
            let given = match is_program || !self.is_elsewhere {
                true => draft.rooted(&given),
                false => given,
            };
            let is_flag = word.starts_with('-');
            let about = Word {
                what: self.what,
                owner: self.owner,
                name: flag.filter(|_| !is_flag),
                is_package: fetches && plain == 0,
                takes: &takes,
            };
            plain += usize::from(!is_flag && !is_program);
            out.push(about.without_secrets(draft, &given));
            // A flag with an attached value does not apply to the next word.
            flag = (is_flag && !word.contains('=')).then_some(word.as_str());
        }
        out
    }
}

/// A word of a command line, or part of one.
#[derive(Clone, Copy)]
struct Word<'a> {
    what: &'a str,
    owner: &'a str,
    /// The flag, variable or key before it.
    name: Option<&'a str>,
    /// Whether `-p` before it means a package.
    is_package: bool,
    /// Flags known to be followed by a password.
    takes: &'a [&'static str],
}

impl Word<'_> {
    /// Returns the word with secrets replaced. Text before a secret is kept if it can be
    /// separated: `--env=TOKEN=${NAME}`, `Authorization: Bearer ${NAME}`.
    fn without_secrets(self, draft: &mut Draft, given: &str) -> String {
        let is_name = |name: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            !name.is_empty() && name.chars().all(plain) && !secrets::looks_secret(name)
        };
        if let Some((name, value)) = given.split_once('=').filter(|(name, _)| is_name(name)) {
            let value = Word {
                name: Some(name),
                ..self
            }
            .without_secrets(draft, value);
            return format!("{name}={value}");
        }
        let place = match self.name {
            Some(name) => format!("{}.args, the value of {name}", self.what),
            None => format!("{}.args, a word", self.what),
        };
        let is_header = matches!(self.name, Some("-H" | "--header" | "--headers"));
        if let Some((name, value)) = given.split_once(':').filter(|(name, _)| is_name(name))
            && (is_header || (value.starts_with(' ') && secrets::is_secret(name, "")))
        {
            let value = header(draft, &place, self.owner, name, value.trim());
            return format!("{name}: {value}");
        }
        if let Some((before, password)) = secrets::glued(given, self.takes) {
            let place = format!("{}.args, the password after `{before}`", self.what);
            let user = before.get(2..).unwrap_or_default();
            let variable = secrets::variable(&[self.owner, user, "password"]);
            return format!("{before}{}", draft.hide(&place, &variable, password));
        }
        if !secrets::is_literal(given) || !self.is_secret(given) {
            return given.to_owned();
        }
        if let Some((before, after)) = secrets::around_password(given)
            && self.name.is_none_or(|name| !secrets::is_secret(name, ""))
        {
            let place = format!("{}.args, the password after `{before}`", self.what);
            let variable = secrets::variable(&[self.owner, before, "password"]);
            let password = given.strip_prefix(before).unwrap_or_default();
            let password = password.strip_suffix(after).unwrap_or_default();
            return format!("{before}{}{after}", draft.hide(&place, &variable, password));
        }
        if given.contains("://") && self.name.is_none_or(|name| !secrets::is_secret(name, "")) {
            return address(draft, &place, self.owner, given);
        }
        let variable = secrets::variable(&[self.owner, self.name.unwrap_or("secret")]);
        draft.hide(&place, &variable, given)
    }

    fn is_secret(self, given: &str) -> bool {
        let is_number = given
            .chars()
            .all(|c| c.is_ascii_digit() || ":.".contains(c));
        let by_flag = match self.name {
            Some(flag) if self.takes.contains(&flag) => true,
            // A port or a package, otherwise a password.
            Some("-p") => !self.is_package,
            // A user name, possibly with a password.
            Some("-u" | "--user") => given.contains(':'),
            Some(flag) if secrets::OFTEN.contains(&flag) => secrets::is_like_password(given),
            _ => false,
        };
        (by_flag && !is_number && !given.is_empty())
            || secrets::is_secret(self.name.unwrap_or_default(), given)
    }
}
