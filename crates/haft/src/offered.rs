//! The tools that a model has, for advice that mentions some of them.

/// The tools of a session. Advice that mentions a tool is given only if the model has it: a
/// preset, a sub-agent or the host may leave out any tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offered(Vec<String>);

impl Offered {
    /// Creates the list from the names of the tools.
    #[must_use]
    pub fn new(names: Vec<String>) -> Self {
        Self(names)
    }

    /// Whether the model has the tool.
    #[must_use]
    pub fn has(&self, tool: &str) -> bool {
        self.0.iter().any(|name| name == tool)
    }

    /// Returns the first advice whose tools all exist, or an empty text. Put advice that
    /// mentions no tool last, because it always applies.
    #[must_use]
    pub fn first<'a>(&self, advice: &[(&[&str], &'a str)]) -> &'a str {
        let mut fitting = advice
            .iter()
            .filter(|(tools, _)| tools.iter().all(|tool| self.has(tool)));
        fitting.next().map_or("", |(_, text)| *text)
    }
}

/// A part of a tool's description or guidance that mentions other tools. It is replaced for
/// a model that lacks one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mention {
    /// The part, word for word.
    pub text: &'static str,
    /// The tools that it mentions.
    pub tools: &'static [&'static str],
    /// Replacement if one of the tools is missing; may be empty.
    pub otherwise: &'static str,
}

impl Offered {
    /// Replaces the parts of a text that mention missing tools.
    #[must_use]
    pub fn reword(&self, text: &str, mentions: &[Mention]) -> String {
        let lacking = mentions
            .iter()
            .filter(|mention| !mention.tools.iter().all(|tool| self.has(tool)));
        lacking.fold(text.to_owned(), |text, mention| {
            text.replacen(mention.text, mention.otherwise, 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use haft_ops::Error as E;
    use haft_ops::scope::spelling::Misspelling;

    #[test]
    fn the_first_advice_whose_tools_exist_is_given() {
        let offered = Offered::new(vec!["ls".to_owned(), "bash".to_owned()]);
        let advice: &[(&[&str], &str)] = &[
            (&["find", "ls"], "both"),
            (&["bash"], "a command"),
            (&[], "neither"),
        ];
        assert_eq!(offered.first(advice), "a command");
        assert_eq!(Offered::default().first(advice), "neither");
        assert_eq!(Offered::default().first(&[]), "");
    }

    /// Whether a text tells the model to use a tool, or mentions it unmistakably (not as an
    /// ordinary word).
    fn names(text: &str, tool: &str) -> bool {
        let ways = ["Use ", "use ", "Prefer ", "prefer ", "that "];
        let quoted = format!("`{tool}`");
        let named = ways
            .iter()
            .any(|way| text.contains(&format!("{way}{tool}")));
        let is_a_word = tool.contains('_') && text.contains(tool);
        text.contains(&quoted) || named || is_a_word
    }

    #[test]
    fn no_description_mentions_a_missing_tool() {
        for name in crate::toolsets::NAMES {
            let toolset = crate::toolsets::by_name(name).unwrap();
            let tools = crate::Tools::default();
            for tool in &toolset.tools {
                tools.add_any(std::sync::Arc::clone(tool)).unwrap();
            }
            let texts = |definition: &crate::Definition| {
                let guidance = definition.guidance.clone().unwrap_or_default();
                [definition.description.clone(), guidance].join("\n")
            };
            // With all tools present, nothing is left out.
            for (seen, tool) in tools.definitions().iter().zip(&toolset.tools) {
                assert_eq!(seen, tool.definition());
                for mention in tool.mentions() {
                    let found = texts(seen).matches(mention.text).count();
                    assert_eq!(found, 1, "{}: {mention:?}", seen.name);
                    assert!(mention.tools.iter().all(|tool| names(mention.text, tool)
                        || mention.text.contains(&format!(" {tool}"))));
                }
            }
            for gone in &toolset.tools {
                let gone = &gone.definition().name;
                let others = crate::Tools::default();
                let rest = toolset.tools.iter();
                for tool in rest.filter(|tool| tool.definition().name != *gone) {
                    others.add_any(std::sync::Arc::clone(tool)).unwrap();
                }
                for seen in others.definitions() {
                    let texts = texts(&seen);
                    assert!(!names(&texts, gone), "{name}, {}: {texts}", seen.name);
                    assert!(!texts.contains("  ") && !texts.contains(" ."), "{texts}");
                }
            }
        }
    }

    #[test]
    fn a_text_is_reworded_where_a_tool_is_missing() {
        let mentions = [Mention {
            text: " Use `edit` for small changes.",
            tools: &["edit"],
            otherwise: "",
        }];
        let text = "Write a file. Use `edit` for small changes.";
        let has = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned());
            Offered::new(names.collect()).reword(text, &mentions)
        };
        assert_eq!(has(&["write", "edit"]), text);
        assert_eq!(has(&["write"]), "Write a file.");
    }

    /// Errors that have advice in some toolset.
    fn errors() -> Vec<E> {
        let path = || "/some/where".to_owned();
        vec![
            E::NotFound {
                path: path(),
                similar: Vec::new(),
            },
            E::IsDirectory { path: path() },
            E::AlreadyExists { path: path() },
            E::TooLarge {
                path: path(),
                size: 2,
                limit: 1,
            },
            E::Encoding {
                path: path(),
                encoding: "UTF-16",
            },
            E::EmptyOld,
            E::NoChange { path: path() },
            E::NoProcess { id: path() },
            E::Misspelt {
                path: path(),
                how: Misspelling::CommandsOnly,
            },
        ]
    }

    #[test]
    fn no_advice_mentions_a_missing_tool() {
        for name in crate::toolsets::NAMES {
            let toolset = crate::toolsets::by_name(name).unwrap();
            let tools: Vec<String> = toolset
                .tools
                .iter()
                .map(|tool| tool.definition().name.clone())
                .collect();
            let mut named = 0;
            for error in errors() {
                let error = Error::Operation(error);
                let all = (toolset.failure)(&error, &Offered::new(tools.clone())).text();
                let none = (toolset.failure)(&error, &Offered::default()).text();
                for tool in &tools {
                    for way in ["Use ", "use ", "with "] {
                        let words = format!("{way}{tool}");
                        named += usize::from(all.contains(&words));
                        assert!(!none.contains(&words), "{name}: {none}");
                    }
                }
            }
            assert!(named > 0, "{name} has no advice that mentions a tool");
        }
    }
}
