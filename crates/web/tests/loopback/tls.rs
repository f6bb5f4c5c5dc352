//! TLS with self-signed certificates.

use crate::client::get;
use crate::http_server::{Server, answer, redirect};
use haft_web::Secret;
use haft_web::client::{Client, Header, HttpError, Origin, Redirects, Request, Settings};
use haft_web::fetch::FetchError;
use haft_web::guard::HostPatterns;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// The server's TLS settings, and the file that makes a client trust it.
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
async fn a_certificate_in_ca_file_is_trusted() {
    let certified = certified("localhost");
    let acceptor = Some(certified.acceptor.clone());
    let server = Server::on("127.0.0.1:0", acceptor, [answer("200 OK", &[], "")]).await;
    let refused = fetch(&server, None)
        .await
        .expect_err("an untrusted certificate");
    assert!(matches!(refused, HttpError::NotSecure { .. }), "{refused}");
    assert!(server.seen().is_empty());
    assert_eq!(
        fetch(&server, Some(certified.authority.clone())).await,
        Ok(200)
    );
}

#[tokio::test]
async fn a_redirect_cannot_downgrade_credentials_to_plain_http() {
    let certified = certified("localhost");
    let plain = Server::new([]).await;
    let steps = [redirect("302 Found", &plain.base())];
    let server = Server::on("127.0.0.1:0", Some(certified.acceptor.clone()), steps).await;
    let client = Client::new(Settings {
        allow: HostPatterns::parse(["127.0.0.1", "localhost"]).expect("entries"),
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
        "redirect from localhost not followed: it would send credentials without encryption"
    );
    assert_eq!(plain.connections(), 0);
}

#[tokio::test]
async fn a_ca_certificate_is_not_a_server_certificate() {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).expect("a name");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).expect("a certificate");
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
    assert!(text.contains("a CA certificate, not a server's"), "{text}");
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused() {
    let certified = certified("example.org");
    let server = Server::on("127.0.0.1:0", Some(certified.acceptor.clone()), []).await;
    let refused = fetch(&server, Some(certified.authority.clone()))
        .await
        .expect_err("another name");
    assert!(matches!(refused, HttpError::NotSecure { .. }), "{refused}");
}

#[tokio::test]
async fn https_does_not_fall_back_to_http() {
    let server = Server::new([]).await;
    let refused = fetch(&server, None).await.expect_err("no TLS there");
    assert!(!refused.may_have_arrived(), "{refused:?}");
    assert!(server.seen().iter().all(|seen| !seen.line.contains("HTTP")));
}

#[tokio::test]
async fn a_server_without_tls_is_distinguished_from_an_untrusted_one() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    let plain = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let words = b"HTTP/1.1 400 Bad Request\r\n\r\n";
        stream.write_all(words).await.expect("an answer");
        // Wait until the client disconnects.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let client = Client::new(Settings::default()).expect("a client");
    let request = Request {
        origin: Origin::Configuration,
        ..get(&format!("https://127.0.0.1:{port}/"))
    };
    let refused = client.send(request).await.err().expect("no TLS there");
    assert!(matches!(refused, HttpError::NotTls { .. }), "{refused}");
    let advice = FetchError::from(refused).advice(&haft::Offered::default());
    assert!(
        advice.contains("http://") && !advice.contains("trusted"),
        "{advice}"
    );
    plain.await.expect("a server");
}

#[test]
fn a_file_without_certificates_is_an_error() {
    for (file, words) in [
        ("Cargo.toml", "no certificates found in"),
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
