//! Checks addresses that a server names for signing in: which of them the user is asked to
//! open, and which may receive credentials. They are not trusted.

use super::sign_in::SignInError;
use haft_web::client::Url;
use haft_web::guard;
use rmcp::transport::auth::AuthorizationMetadata;
use std::net::IpAddr;
use url::Host;

/// Number of characters of a refused address that an error repeats.
const MAX_SHOWN: usize = 200;

/// Checks every address that a sign-in would open or send something to.
pub(super) fn check(metadata: &AuthorizationMetadata, configured: &Url) -> Result<(), SignInError> {
    let register = metadata.registration_endpoint.as_deref();
    for (what, address) in [
        ("page to sign in", Some(&*metadata.authorization_endpoint)),
        ("token endpoint", Some(&*metadata.token_endpoint)),
        ("registration endpoint", register),
    ] {
        if let Some(address) = address {
            check_address(what, address, configured)?;
        }
    }
    Ok(())
}

/// Checks the address that the user is asked to open.
pub(super) fn check_page(address: &str, configured: &Url) -> Result<(), SignInError> {
    check_address("page to sign in", address, configured)
}

fn check_address(what: &str, address: &str, configured: &Url) -> Result<(), SignInError> {
    let why = match parse_exact(address).and_then(|url| check_url(&url, configured)) {
        Ok(()) => return Ok(()),
        Err(why) => why,
    };
    let shown: String = address.escape_default().take(MAX_SHOWN).collect();
    Err(SignInError(format!(
        "refused the {what} that the server names: {why}: \"{shown}\"; \
         if you trust this server, ask its operator for an https address"
    )))
}

/// Parses an address exactly as written. URL parsers drop white space and rewrite
/// unexpected characters, so the checked address would differ from the text.
fn parse_exact(address: &str) -> Result<Url, &'static str> {
    if !address.bytes().all(|byte| byte.is_ascii_graphic()) || address.contains('\\') {
        return Err("it contains invalid characters");
    }
    Url::parse(address).map_err(|_| "it is not an address")
}

/// Whether a sign-in may use an address: https on the public internet or on the host that
/// the user configured, and plain http if both are on this machine.
pub(super) fn check_url(url: &Url, configured: &Url) -> Result<(), &'static str> {
    let Some(host) = url.host() else {
        return Err("it is not a web address");
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it contains a user name or a password");
    }
    let is_here = |url: &Url| url.host().is_some_and(|host| is_loopback(&host));
    match url.scheme() {
        "https" => {}
        "http" if is_here(url) && is_here(configured) => {}
        "http" => return Err("it is not encrypted"),
        _ => return Err("it is not an https address"),
    }
    let is_private = match &host {
        Host::Domain(name) => {
            guard::refusal_of_name(name).is_some()
                || guard::is_private_name(name) && !is_same_private_domain(name, configured)
        }
        Host::Ipv4(address) => guard::refusal(IpAddr::from(*address)).is_some(),
        Host::Ipv6(address) => guard::refusal(IpAddr::from(*address)).is_some(),
    };
    if is_private && configured.host() != Some(host) {
        return Err("it is on another host in a private network");
    }
    Ok(())
}

/// Whether a name is in the same private domain as the configured server, such as
/// `login.team.internal` and `mcp.team.internal`.
fn is_same_private_domain(name: &str, configured: &Url) -> bool {
    let Some(Host::Domain(configured)) = configured.host() else {
        return false;
    };
    let domain = |name: &str| name.split_once('.').map(|(_, domain)| domain.to_owned());
    let (configured, name) = (domain(configured), domain(name));
    configured == name
        && configured.is_some_and(|domain| domain.contains('.') && domain != "home.arpa")
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_everywhere(address: &str, configured: &str) -> Result<(), String> {
        let configured = Url::parse(configured).expect("an address");
        let good = "https://auth.example.org/x".to_owned();
        let with_addresses = |authorize: &str, token: &str, register: &str| {
            let mut metadata = AuthorizationMetadata::default();
            authorize.clone_into(&mut metadata.authorization_endpoint);
            token.clone_into(&mut metadata.token_endpoint);
            metadata.registration_endpoint = Some(register.to_owned());
            metadata
        };
        let all = [
            with_addresses(address, &good, &good),
            with_addresses(&good, address, &good),
            with_addresses(&good, &good, address),
        ];
        let each =
            all.map(|metadata| check(&metadata, &configured).map_err(|error| error.to_string()));
        assert!(
            each.iter().all(Result::is_ok) || each.iter().all(Result::is_err),
            "{address}: all three fields are checked: {each:?}"
        );
        let [first, ..] = each;
        first
    }

    const OUTSIDE: &str = "https://mcp.example.org/mcp";

    #[test]
    fn https_and_this_machine_are_allowed() {
        for (address, configured) in [
            ("https://auth.example.org/authorize?a=b", OUTSIDE),
            ("https://mcp.example.org:8443/authorize", OUTSIDE),
            ("https://xn--bcher-kva.example/", OUTSIDE),
            ("https://8.8.8.8/authorize", OUTSIDE),
            (
                "https://auth.example.org/authorize",
                "http://127.0.0.1:1/mcp",
            ),
            ("http://127.0.0.1:2/authorize", "http://127.0.0.1:1/mcp"),
            ("http://localhost:2/authorize", "http://localhost:1/mcp"),
            ("http://[::1]:2/authorize", "http://[::1]:1/mcp"),
            ("https://10.1.2.3:2/authorize", "https://10.1.2.3/mcp"),
            ("https://intranet/authorize", "https://intranet/mcp"),
            ("https://x.internal:2/authorize", "https://x.internal/mcp"),
            (
                "https://login.team.internal/",
                "https://mcp.team.internal/mcp",
            ),
        ] {
            assert_eq!(
                check_everywhere(address, configured),
                Ok(()),
                "{address} of {configured}"
            );
        }
    }

    #[test]
    fn all_other_addresses_are_refused() {
        for (address, configured) in [
            ("javascript:alert(1)", OUTSIDE),
            ("javascript://auth.example.org/%0aalert(1)", OUTSIDE),
            ("JavaScript:alert(1)", OUTSIDE),
            ("data:text/html,<script>x</script>", OUTSIDE),
            ("file:///etc/passwd", OUTSIDE),
            ("file://auth.example.org/x", OUTSIDE),
            ("vscode://x/y", OUTSIDE),
            ("ms-settings:", OUTSIDE),
            ("about:blank", OUTSIDE),
            ("blob:https://auth.example.org/x", OUTSIDE),
            ("view-source:https://auth.example.org/", OUTSIDE),
            ("ftp://auth.example.org/", OUTSIDE),
            ("wss://auth.example.org/", OUTSIDE),
            ("x-https://auth.example.org/", OUTSIDE),
            ("//auth.example.org/", OUTSIDE),
            ("/authorize", OUTSIDE),
            ("", OUTSIDE),
            ("https:", OUTSIDE),
            ("http://auth.example.org/", OUTSIDE),
            ("http://mcp.example.org/", OUTSIDE),
            ("http://auth.example.org/", "http://127.0.0.1:1/mcp"),
            ("http://10.1.2.3/", "http://10.1.2.3/mcp"),
            ("http://127.0.0.1:2/", OUTSIDE),
            ("http://localhost:2/", OUTSIDE),
            ("http://[::1]:2/", OUTSIDE),
            ("https://127.0.0.1:2/", OUTSIDE),
            ("https://127.1:2/", OUTSIDE),
            ("https://0x7f000001/", OUTSIDE),
            ("https://localhost/", OUTSIDE),
            ("https://localhost./", OUTSIDE),
            ("https://a.localhost/", OUTSIDE),
            ("https://[::ffff:127.0.0.1]/", OUTSIDE),
            ("https://192.168.1.1/reboot", OUTSIDE),
            ("https://169.254.169.254/latest", OUTSIDE),
            ("https://metadata.google.internal/", OUTSIDE),
            ("https://intranet/", OUTSIDE),
            ("https://x.internal/", OUTSIDE),
            ("https://printer.local/", OUTSIDE),
            ("https://PRINTER.local./", OUTSIDE),
            ("https://login.team.internal/", OUTSIDE),
            ("https://y.internal/", "https://x.internal/mcp"),
            ("https://other/", "https://intranet/mcp"),
            ("https://printer.home.arpa/", "https://nas.home.arpa/mcp"),
            ("http://localhost.:2/", "http://localhost:1/mcp"),
            ("http://localhost.evil.example/", "http://localhost:1/mcp"),
            ("http://127.0.0.1.evil.example/", "http://127.0.0.1:1/mcp"),
            ("http://localhost:2/", "http://127.0.0.1:1/mcp"),
            ("https://me@auth.example.org/", OUTSIDE),
            ("https://me:pw@auth.example.org/", OUTSIDE),
            ("https://:pw@auth.example.org/", OUTSIDE),
            ("https://good.example@evil.example/", OUTSIDE),
            ("https://auth.example.org\\@evil.example/", OUTSIDE),
            ("https:\\\\auth.example.org/", OUTSIDE),
            (" https://auth.example.org/", OUTSIDE),
            ("https://auth.example.org/\n", OUTSIDE),
            ("https://auth.exa\tmple.org/", OUTSIDE),
            ("https://auth.example.org/\u{1b}[2J", OUTSIDE),
            ("https://auth.example.org/\u{202e}gro.live", OUTSIDE),
            ("https://auth\u{200b}.example.org/", OUTSIDE),
            ("https://аuth.example.org/", OUTSIDE),
            ("https://auth.example.org。evil.example/", OUTSIDE),
            ("java\nscript:alert(1)", OUTSIDE),
        ] {
            let refused = check_everywhere(address, configured).expect_err(address);
            let is_harmless = |c: char| c.is_ascii_graphic() || c == ' ';
            assert!(refused.chars().all(is_harmless), "{refused:?}");
        }
    }
}
