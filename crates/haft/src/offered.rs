//! The tools that a model has, for advice that names some of them.

/// The tools of a session. Advice that names a tool is given only where the model has it:
/// a preset, a sub-agent or the host may leave any of them out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offered(Vec<String>);

impl Offered {
    /// From the names of the tools that a model has.
    #[must_use]
    pub fn new(names: Vec<String>) -> Self {
        Self(names)
    }

    /// Whether a tool is there.
    #[must_use]
    pub fn has(&self, tool: &str) -> bool {
        self.0.iter().any(|name| name == tool)
    }

    /// Returns the first advice whose tools are all there, or an empty text. Advice that
    /// names no tool comes last, as it always fits.
    #[must_use]
    pub fn first<'a>(&self, advice: &[(&[&str], &'a str)]) -> &'a str {
        let mut fitting = advice
            .iter()
            .filter(|(tools, _)| tools.iter().all(|tool| self.has(tool)));
        fitting.next().map_or("", |(_, text)| *text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use haft_ops::Error as E;
    use haft_ops::scope::spelling::Misspelling;

    #[test]
    fn the_first_advice_that_fits_is_given() {
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
    fn no_advice_names_a_tool_that_is_not_there() {
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
            assert!(named > 0, "{name} has no advice that names a tool");
        }
    }
}
