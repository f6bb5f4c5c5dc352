//! Certificates of the tests' own, and what is trusted.

use crate::client::get;
use crate::http_server::{Server, answer, redirect};
use haft_web::Secret;
use haft_web::client::{Client, Header, HttpError, Origin, Redirects, Request, Settings};
use haft_web::fetch::Trouble;
use haft_web::guard::Entries;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A server's side of TLS, and the file that makes a client trust it.
pub(crate) struct Certified {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) authority: PathBuf,
    _folder: tempfile::TempDir,
}

pub(crate) fn certified(name: &str) -> Certified {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let authority = folder.path().join("authority.pem");
    #[expect(clippy::disallowed_methods, reason = "a file of the test's own")]
    std::fs::write(&authority, made.cert.pem()).expect("a file");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a configuration");
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let config = Arc::new(config);
    Certified {
        acceptor: TlsAcceptor::from(Arc::clone(&config)),
        config,
        authority,
        _folder: folder,
    }
}

async fn fetch(server: &Server, ca_file: Option<PathBuf>) -> Result<u16, HttpError> {
    let client = Client::new(Settings {
        ca_file,
        ..Settings::default()
    })
    .expect("a client");
    let request = Request {
        origin: Origin::Configuration,
        ..get(&format!("https://localhost:{}/", server.port))
    };
    client.send(request).await.map(|response| response.status)
}

#[tokio::test]
async fn a_certificate_is_trusted_when_the_person_says_so() {
    let certified = certified("localhost");
    let acceptor = Some(certified.acceptor.clone());
    let server = Server::on("127.0.0.1:0", acceptor, [answer("200 OK", &[], "")]).await;
    let refused = fetch(&server, None)
        .await
        .expect_err("nobody vouches for it");
    assert!(matches!(refused, HttpError::NotSecure { .. }), "{refused}");
    assert!(server.seen().is_empty());
    assert_eq!(
        fetch(&server, Some(certified.authority.clone())).await,
        Ok(200)
    );
}

#[tokio::test]
async fn a_redirect_does_not_lead_credentials_away_from_encryption() {
    let certified = certified("localhost");
    let plain = Server::new([]).await;
    let steps = [redirect("302 Found", &plain.base())];
    let server = Server::on("127.0.0.1:0", Some(certified.acceptor.clone()), steps).await;
    let client = Client::new(Settings {
        allow: Entries::parse(["127.0.0.1", "localhost"]).expect("entries"),
        ca_file: Some(certified.authority.clone()),
        ..Settings::default()
    })
    .expect("a client");
    let request = Request {
        headers: vec![Header::Credential("x-key", Secret::new("hunter2"))],
        redirects: Redirects::Follow,
        ..get(&format!("https://localhost:{}/", server.port))
    };
    let refused = client.send(request).await.err().expect("a redirect");
    assert_eq!(
        refused.to_string(),
        "a redirect of localhost is not followed: it leads away from encryption"
    );
    assert_eq!(plain.connections(), 0);
}

#[tokio::test]
async fn a_certificate_of_an_authority_is_none_of_a_server() {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut asked = rcgen::CertificateParams::new(["localhost".to_owned()]).expect("a name");
    asked.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = asked.self_signed(&key).expect("a certificate");
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a configuration");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let server = Server::on("127.0.0.1:0", Some(acceptor), []).await;
    let refused = fetch(&server, None).await.expect_err("an authority");
    let text = refused.to_string();
    assert!(
        text.contains("that of an authority, not of a server"),
        "{text}"
    );
}

#[tokio::test]
async fn another_host_s_certificate_is_not() {
    let certified = certified("example.org");
    let server = Server::on("127.0.0.1:0", Some(certified.acceptor.clone()), []).await;
    let refused = fetch(&server, Some(certified.authority.clone()))
        .await
        .expect_err("another name");
    assert!(matches!(refused, HttpError::NotSecure { .. }), "{refused}");
}

#[tokio::test]
async fn there_is_no_way_back_to_plain_text() {
    let server = Server::new([]).await;
    let refused = fetch(&server, None).await.expect_err("no TLS there");
    assert!(!refused.may_have_arrived(), "{refused:?}");
    assert!(server.seen().iter().all(|seen| !seen.line.contains("HTTP")));
}

#[tokio::test]
async fn what_speaks_no_tls_is_told_from_what_is_not_trusted() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    let plain = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let words = b"HTTP/1.1 400 Bad Request\r\n\r\n";
        stream.write_all(words).await.expect("an answer");
        // Until the other side has had enough.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let client = Client::new(Settings::default()).expect("a client");
    let request = Request {
        origin: Origin::Configuration,
        ..get(&format!("https://127.0.0.1:{port}/"))
    };
    let refused = client.send(request).await.err().expect("no TLS there");
    assert!(matches!(refused, HttpError::NotTls { .. }), "{refused}");
    let advice = Trouble::from(refused).advice(&haft::Offered::default());
    assert!(
        advice.contains("http://") && !advice.contains("trusted"),
        "{advice}"
    );
    plain.await.expect("a server");
}

#[test]
fn a_file_without_certificates_is_an_error() {
    for (file, words) in [
        ("Cargo.toml", "Cargo.toml holds no certificates"),
        ("absent", "cannot read"),
    ] {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file);
        let error = Client::new(Settings {
            ca_file: Some(path),
            ..Settings::default()
        })
        .err()
        .expect("no client");
        assert!(error.to_string().contains(words), "{error}");
    }
}
