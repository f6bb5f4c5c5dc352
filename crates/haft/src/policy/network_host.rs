//! The hosts that commands may reach, as users write them.

use super::pattern;
use std::fmt;
use std::net::IpAddr;

/// A host, or all hosts below a name, with or without a port: `example.com`,
/// `*.example.com`, `example.com:8443`, `[2001:db8::1]:443` or `localhost:5432`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkHost {
    name: String,
    is_wildcard: bool,
    port: Option<u16>,
}

/// Name that stands for the loopback interface, whatever its spelling.
const LOOPBACK: &str = "localhost";

/// Maximum length of a name.
const MAX_NAME: usize = 253;

/// Hosts that are named together, for the package registries and sites of a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostGroup {
    /// Name, with `@`.
    pub name: &'static str,
    /// The hosts.
    pub hosts: &'static [&'static str],
}

/// All groups, by name.
pub const HOST_GROUPS: &[HostGroup] = &[
    HostGroup {
        name: "@alpine",
        hosts: &["dl-cdn.alpinelinux.org"],
    },
    HostGroup {
        name: "@debian",
        hosts: &["deb.debian.org", "security.debian.org", "ftp.debian.org"],
    },
    HostGroup {
        name: "@dotnet",
        hosts: &["api.nuget.org", "www.nuget.org"],
    },
    HostGroup {
        name: "@github",
        hosts: &["github.com", "*.github.com", "*.githubusercontent.com"],
    },
    HostGroup {
        name: "@gitlab",
        hosts: &["gitlab.com", "registry.gitlab.com"],
    },
    HostGroup {
        name: "@go",
        hosts: &[
            "proxy.golang.org",
            "sum.golang.org",
            "go.dev",
            "golang.org",
            "*.golang.org",
        ],
    },
    HostGroup {
        name: "@java",
        hosts: &[
            "repo.maven.apache.org",
            "repo1.maven.org",
            "plugins.gradle.org",
            "services.gradle.org",
            "downloads.gradle.org",
        ],
    },
    HostGroup {
        name: "@node",
        hosts: &["registry.npmjs.org", "registry.yarnpkg.com", "nodejs.org"],
    },
    HostGroup {
        name: "@python",
        hosts: &["pypi.org", "files.pythonhosted.org"],
    },
    HostGroup {
        name: "@ruby",
        hosts: &["rubygems.org", "index.rubygems.org"],
    },
    HostGroup {
        name: "@rust",
        hosts: &[
            "crates.io",
            "index.crates.io",
            "static.crates.io",
            "static.rust-lang.org",
        ],
    },
    HostGroup {
        name: "@ubuntu",
        hosts: &[
            "archive.ubuntu.com",
            "security.ubuntu.com",
            "ports.ubuntu.com",
        ],
    },
];

impl HostGroup {
    /// Returns the group with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Self> {
        HOST_GROUPS.iter().find(|group| group.name == name)
    }
}

impl NetworkHost {
    /// Parses a host.
    ///
    /// # Errors
    /// A sentence that names the nearest valid form.
    pub fn parse(given: &str) -> Result<Self, String> {
        let text = given.trim();
        let problem = |why: String| format!("host \"{}\" {why}", shown(given));
        if let Some((scheme, rest)) = text.split_once("://") {
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let host = host.rsplit('@').next().unwrap_or_default();
            let port = match (scheme, host.contains(':')) {
                ("http", false) => ":80",
                _ => "",
            };
            return Err(problem(format!(
                "must not be a URL; write \"{}{port}\"",
                shown(host)
            )));
        }
        if text == "*" {
            return Err(problem(
                "would be every host; `network: on` opens the whole network".to_owned(),
            ));
        }
        if let Some((front, rest)) = text.split_once('/') {
            return Err(problem(match rest.parse::<u8>() {
                Ok(_) => "must not be a range of addresses; list each address".to_owned(),
                Err(_) => format!("must not have a path; write \"{}\"", shown(front)),
            }));
        }
        if let Some((_, host)) = text.split_once('@') {
            return Err(problem(format!(
                "must not have a user name; write \"{}\"",
                shown(host)
            )));
        }
        let (host, port) = split_port(text).map_err(problem)?;
        let (name, is_wildcard) = match host.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (host, false),
        };
        if name.contains('*') {
            let after = name.rsplit('*').next().unwrap_or_default();
            let after = after.trim_start_matches(['.', '-']);
            let hint = match after.is_empty() {
                true => String::new(),
                false => format!(", such as \"*.{}\"", shown(after)),
            };
            return Err(problem(format!(
                "can have a star only in front, for all names below a domain{hint}"
            )));
        }
        let name = Self::canonical(name).ok_or_else(|| {
            problem("must be a host name or an address, such as \"example.com\" or \"*.example.com:8443\"".to_owned())
        })?;
        let is_address = name.parse::<IpAddr>().is_ok();
        if is_wildcard && (is_address || name == LOOPBACK) {
            return Err(problem(format!("has no names below it; write \"{name}\"")));
        }
        if name == LOOPBACK && port.is_none() {
            return Err(problem(
                "needs a port, which then appears on the session's own loopback: \"localhost:5432\""
                    .to_owned(),
            ));
        }
        Ok(Self {
            name,
            is_wildcard,
            port,
        })
    }

    /// Returns the spelling that is compared: as in a URL, without a final dot, an address
    /// in its usual form, and every name of the loopback interface as `localhost`.
    fn canonical(name: &str) -> Option<String> {
        if name.is_empty() || name.starts_with('.') || name.len() > 4 * MAX_NAME {
            return None;
        }
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let name = match bare.parse::<IpAddr>() {
            Ok(_) => pattern::host(bare),
            Err(_) => {
                let host = url::Host::parse(name.strip_suffix('.').unwrap_or(name)).ok()?;
                pattern::host(&host.to_string())
            }
        };
        let is_label = |label: &str| !label.is_empty() && label.len() <= 63;
        let is_name = name.parse::<IpAddr>().is_ok() || name.split('.').all(is_label);
        if name.len() > MAX_NAME || !is_name {
            return None;
        }
        Some(match is_loopback(&name) {
            true => LOOPBACK.to_owned(),
            false => name,
        })
    }

    /// Whether this covers a connection. `host` is spelled as in a URL.
    #[must_use]
    pub fn covers(&self, host: &str, port: u16) -> bool {
        self.port.is_none_or(|own| own == port) && self.is_named(host)
    }

    fn is_named(&self, host: &str) -> bool {
        let Some(host) = Self::canonical(host) else {
            return false;
        };
        match self.is_wildcard {
            false => host == self.name,
            true => host
                .strip_suffix(&self.name)
                .and_then(|front| front.strip_suffix('.'))
                .is_some_and(|front| !front.is_empty()),
        }
    }

    /// Whether this covers an example in a rule: a host, with or without a port.
    pub(super) fn covers_example(&self, example: &str) -> bool {
        match split_port(example.trim()) {
            Ok((host, Some(port))) => self.covers(host, port),
            Ok((host, None)) => self.is_named(host),
            Err(_) => false,
        }
    }

    /// Whether this names one host, and not all hosts below a name.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.is_wildcard
    }

    /// Returns the name or address, for a wildcard without the star.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the port, unless it covers every port.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Returns the port of this machine's loopback that this names.
    #[must_use]
    pub fn loopback_port(&self) -> Option<u16> {
        self.port.filter(|_| self.name == LOOPBACK)
    }
}

/// Whether a host is this machine's loopback interface. The unspecified address leads there
/// too.
pub(super) fn is_loopback(host: &str) -> bool {
    let name = pattern::host(host);
    name == LOOPBACK
        || name.ends_with(".localhost")
        || matches!(name.as_str(), "127.0.0.1" | "::1" | "0.0.0.0" | "::")
}

/// Separates the port from a host.
fn split_port(text: &str) -> Result<(&str, Option<u16>), String> {
    // An address of IPv6 has colons of its own.
    if text.parse::<IpAddr>().is_ok() || (text.starts_with('[') && text.ends_with(']')) {
        return Ok((text, None));
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return Ok((text, None));
    };
    if host.contains(':') && !host.ends_with(']') {
        return Err("must be an address in brackets before a port: \"[2001:db8::1]:443\"".into());
    }
    match port.parse::<u16>() {
        Ok(port) if port != 0 && !host.is_empty() => Ok((host, Some(port))),
        _ => Err(format!(
            "must have a port from 1 to 65535 after the colon, or none: \"{}\"",
            shown(host)
        )),
    }
}

/// Returns a text as a message may repeat it.
fn shown(text: &str) -> String {
    haft_ops::text::decode::visible(&haft_ops::text::brief(text, 100))
}

/// Formats it as in a configuration file.
impl fmt::Display for NetworkHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_wildcard {
            f.write_str("*.")?;
        }
        match self.port {
            None => f.write_str(&self.name),
            Some(port) if self.name.contains(':') => write!(f, "[{}]:{port}", self.name),
            Some(port) => write!(f, "{}:{port}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_compared_in_one_spelling() {
        for (written, host, port, covers) in [
            ("example.com", "example.com", 443, true),
            ("Example.COM.", "example.com", 443, true),
            ("example.com", "a.example.com", 443, false),
            ("example.com", "evilexample.com", 443, false),
            ("example.com", "example.com.evil.org", 443, false),
            ("*.example.com", "a.example.com", 443, true),
            ("*.example.com", "a.b.example.com", 80, true),
            ("*.example.com", "example.com", 443, false),
            ("*.example.com", "evilexample.com", 443, false),
            ("example.com:8443", "example.com", 443, false),
            ("example.com:8443", "example.com", 8443, true),
            ("bücher.example", "xn--bcher-kva.example", 443, true),
            ("10.1.2.3", "10.1.2.3", 22, true),
            ("10.1.2.3", "::ffff:10.1.2.3", 22, true),
            ("[2001:db8::1]:443", "2001:db8::1", 443, true),
            ("2001:db8::1", "2001:db8:0::1", 80, true),
            ("localhost:5432", "127.0.0.1", 5432, true),
            ("127.0.0.1:5432", "localhost", 5432, true),
            ("[::1]:5432", "a.localhost", 5432, true),
            ("localhost:5432", "127.0.0.1", 5433, false),
        ] {
            let parsed = NetworkHost::parse(written).unwrap();
            assert_eq!(parsed.covers(host, port), covers, "{written} {host}:{port}");
            let again = NetworkHost::parse(&parsed.to_string()).unwrap();
            assert_eq!(again, parsed, "{written}");
        }
    }

    #[test]
    fn a_wrong_host_is_explained_with_the_nearest_right_one() {
        for (written, hint) in [
            ("https://example.com/x", "write \"example.com\""),
            ("http://example.com", "write \"example.com:80\""),
            ("example.com/x", "write \"example.com\""),
            ("10.0.0.0/8", "list each address"),
            ("me@example.com", "write \"example.com\""),
            ("*", "`network: on`"),
            ("api.*.example.com", "\"*.example.com\""),
            ("*example.com", "\"*.example.com\""),
            ("example.com:0", "a port from 1 to 65535"),
            ("example.com:http", "a port from 1 to 65535"),
            ("example.com:70000", "a port from 1 to 65535"),
            (":443", "a port from 1 to 65535"),
            ("2001:db8::zz:443", "in brackets"),
            ("localhost", "\"localhost:5432\""),
            ("127.0.0.1", "\"localhost:5432\""),
            ("*.localhost:1", "write \"localhost\""),
            ("", "a host name or an address"),
            ("a b", "a host name or an address"),
            (".example.com", "a host name or an address"),
            ("a..b", "a host name or an address"),
            ("*.10.0.0.1", "write \"10.0.0.1\""),
        ] {
            let problem = NetworkHost::parse(written).unwrap_err();
            assert!(problem.contains(hint), "{written}: {problem}");
        }
        assert!(NetworkHost::parse(&"a.".repeat(200)).is_err());
    }

    #[test]
    fn the_hosts_of_groups_are_valid() {
        let mut names: Vec<&str> = HOST_GROUPS.iter().map(|group| group.name).collect();
        for group in HOST_GROUPS {
            assert!(group.name.starts_with('@'));
            for host in group.hosts {
                assert_eq!(NetworkHost::parse(host).unwrap().to_string(), *host);
            }
        }
        names.dedup();
        assert!(names.is_sorted() && names.len() == HOST_GROUPS.len());
    }
}
