//! Parses the address to listen on.

use crate::exit::Failure;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};

/// Parses `HOST:PORT`, `:PORT` and `PORT`. Without a host it is loopback.
pub(super) fn parse(given: &str) -> Result<SocketAddr, Failure> {
    let wrong = |why: String| {
        Failure::usage(format!("--http {given}: {why}"))
            .hint("use a port (--http 8080), or an address with a port (--http 127.0.0.1:8080)")
    };
    let port = given.strip_prefix(':').unwrap_or(given);
    if port.bytes().all(|byte| byte.is_ascii_digit()) {
        let port = port
            .parse()
            .map_err(|_| wrong("a port must be a number up to 65535".to_owned()))?;
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    let mut found = given
        .to_socket_addrs()
        .map_err(|error| wrong(error.to_string()))?;
    found
        .next()
        .ok_or_else(|| wrong("address not found".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_on_loopback() {
        let parsed = |given: &str| parse(given).unwrap().to_string();
        assert_eq!(parsed("8080"), "127.0.0.1:8080");
        assert_eq!(parsed(":0"), "127.0.0.1:0");
        assert_eq!(parsed("0.0.0.0:80"), "0.0.0.0:80");
        assert_eq!(parsed("[::1]:80"), "[::1]:80");
        for wrong in ["", ":", "65536", "127.0.0.1", "::1", "127.0.0.1:", "a b:1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
