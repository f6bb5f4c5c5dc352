//! TLS settings: rustls with ring, the system's certificates and those in a file.

use super::SetupError;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_platform_verifier::Verifier;
use std::path::Path;
use std::sync::Arc;

/// Certificates from a file, trusted in addition to the system's.
#[derive(Default)]
pub(crate) struct Authorities {
    /// Contents of the file.
    pub(crate) pem: Vec<u8>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Authorities {
    /// Reads and parses a PEM file.
    pub(super) fn read(path: &Path) -> Result<Self, SetupError> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the path comes from the configuration, never from a tool"
        )]
        let pem = std::fs::read(path)
            .map_err(|error| SetupError(format!("cannot read {}: {error}", path.display())))?;
        let certificates = CertificateDer::pem_slice_iter(&pem)
            .collect::<Result<Vec<_>, _>>()
            .ok()
            .filter(|certificates| !certificates.is_empty())
            .ok_or_else(|| SetupError(format!("no certificates found in {}", path.display())))?;
        Ok(Self { pem, certificates })
    }
}

/// Builds the TLS configuration. Names the crypto provider explicitly, so that the result does
/// not depend on the one installed in the process.
pub(super) fn configuration(authorities: &Authorities) -> Result<ClientConfig, SetupError> {
    let extra = authorities.certificates.iter().cloned();
    let provider = Arc::new(ring::default_provider());
    let failed = |error: rustls::Error| SetupError(format!("cannot set up TLS: {error}"));
    let verifier = Verifier::new_with_extra_roots(extra, Arc::clone(&provider)).map_err(failed)?;
    let mut configuration = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    configuration.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(configuration)
}
