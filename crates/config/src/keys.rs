//! Facts about each key, from the declaration in `file`: the published
//! schema, its flag and variable, its default, and who may set it.

use super::file::File;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// The only key that contains other keys.
pub(crate) const SECTION: &str = "tools";

/// A key of `haft.yaml`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    /// `None` at the top level.
    pub(crate) section: Option<&'static str>,
    pub(crate) name: &'static str,
    pub(crate) schema: &'static Value,
}

/// Treatment of a setting in a project's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProjectRight {
    Used,
    Tightens,
    /// Used in part, and without variables.
    Limited,
    Ignored,
    /// Used without looking for variables.
    Literal,
}

/// The schema with its marks, `x-…`.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let settings = SchemaSettings::draft2020_12().with(|all| all.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<File>();
    let mut schema = schema.to_value();
    let (tools, web, caches, effects, chat) = (
        "/properties/tools/type",
        "/properties/tools/properties/web/type",
        "/properties/tools/properties/caches/type",
        "/properties/effects/type",
        "/properties/chat/type",
    );
    for section in ["/type", tools, web, caches, effects, chat] {
        if let Some(kind) = schema.pointer_mut(section) {
            *kind = json!(["object", "null"]);
        }
    }
    schema
});

/// Returns all keys, those of the section first.
pub(crate) fn keys() -> impl Iterator<Item = Key> {
    let of = |section: Option<&'static str>, schema: &'static Value| {
        let properties = schema["properties"].as_object().into_iter().flatten();
        properties.map(move |(name, schema)| Key {
            section,
            name,
            schema,
        })
    };
    of(Some(SECTION), &SCHEMA["properties"][SECTION])
        .chain(of(None, &SCHEMA).filter(|key| key.name != SECTION))
}

impl Key {
    pub(crate) fn flag(&self) -> Option<&'static str> {
        self.schema["x-flag"].as_str()
    }

    pub(crate) fn variable(&self) -> Option<&'static str> {
        self.schema["x-variable"].as_str()
    }

    /// Sets the key in a file.
    pub(crate) fn set(&self, file: &mut Value, value: Value) {
        match self.section {
            Some(section) => file[section][self.name] = value,
            None => file[self.name] = value,
        }
    }

    /// Returns the path of the key in a file.
    pub(crate) fn path(&self) -> String {
        let section = self.section.map(|section| format!("{section}."));
        format!("{}{}", section.unwrap_or_default(), self.name)
    }

    /// Parses the text of a flag or a variable.
    pub(crate) fn parse(&self, text: &str) -> Value {
        let is = |kind| {
            self.schema["type"]
                .as_array()
                .is_some_and(|all| all.contains(&json!(kind)))
        };
        match text.trim().to_ascii_lowercase().as_str() {
            _ if is("string") => text.into(),
            "1" | "true" | "yes" | "on" if is("boolean") => true.into(),
            "0" | "false" | "no" | "off" if is("boolean") => false.into(),
            _ => text.trim().into(),
        }
    }
}

/// Returns what happens to the setting at a path in a project's file. A mark holds for
/// everything below it.
pub(crate) fn project_right(path: &str) -> ProjectRight {
    let (mut schema, mut right) = (&*SCHEMA, ProjectRight::Used);
    for name in path.split(['.', '[']) {
        schema = &schema["properties"][name];
        right = match schema["x-project"].as_str() {
            Some("tightens") => ProjectRight::Tightens,
            Some("limited") => ProjectRight::Limited,
            Some("ignored") => ProjectRight::Ignored,
            Some("literal") => ProjectRight::Literal,
            _ => right,
        };
    }
    right
}

/// Returns the defaults, in the form of a file.
pub(crate) fn defaults() -> Value {
    let mut file = json!({ SECTION: {} });
    for key in keys().filter(|key| !key.schema["default"].is_null()) {
        key.set(&mut file, key.schema["default"].clone());
    }
    file
}

/// Explains where an unknown key belongs: the right name at the wrong level is as common
/// as a typo.
pub(crate) fn elsewhere(path: &str, name: &str) -> Option<String> {
    let here = match path {
        "" => None,
        SECTION => Some(SECTION),
        _ => return None,
    };
    let key = keys().find(|key| key.name == name && key.section != here)?;
    Some(match key.section {
        Some(section) => format!("; it belongs under {section}, as {section}.{name}"),
        None => format!("; it belongs at the top level, beside {SECTION}"),
    })
}

/// Returns the JSON Schema of `haft.yaml`, for editors that complete and check it.
pub fn schema() -> Value {
    fn without_marks(schema: &mut Value) {
        match schema {
            Value::Object(map) => {
                map.retain(|name, _| !name.starts_with("x-"));
                map.values_mut().for_each(without_marks);
            }
            Value::Array(all) => all.iter_mut().for_each(without_marks),
            _ => {}
        }
    }
    let mut schema = SCHEMA.clone();
    without_marks(&mut schema);
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_documented() {
        let page = include_str!("../../../docs/configuration.md");
        for key in keys() {
            let indent = if key.section.is_some() { "  " } else { "" };
            let line = format!("\n{indent}{}: ", key.name);
            let problem = format!("docs/configuration.md has no line for {}", key.name);
            assert!(page.contains(&line), "{problem}");
        }
    }

    #[test]
    fn rights_of_a_project_hold_for_everything_below() {
        use ProjectRight::*;
        for (path, right) in [
            ("model", Used),
            ("tools.mcp.a.b", Used),
            ("tools.protect", Tightens),
            ("tools.channels.x", Limited),
            ("tools.web.proxy", Ignored),
            ("tools.caches.max", Ignored),
            ("tools.web.engines[0]", Ignored),
            ("tools.web.deny_hosts", Tightens),
            ("tools.web.enabled", Limited),
            ("policy[0]", Literal),
            ("effects.record", Ignored),
            ("chat.theme", Ignored),
        ] {
            assert_eq!(project_right(path), right, "{path}");
        }
    }
}
