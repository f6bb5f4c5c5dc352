//! TLS: rustls with ring, the system's certificates and those of a file.

use super::SetupError;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_platform_verifier::Verifier;
use std::path::Path;
use std::sync::Arc;

/// The text of a file of certificates.
pub(super) fn read_authorities(path: &Path) -> Result<Vec<u8>, SetupError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the configuration names the file; no tool can"
    )]
    std::fs::read(path)
        .map_err(|error| SetupError(format!("cannot read {}: {error}", path.display())))
}

/// What a connection is held to. The provider is named here, so that nothing
/// depends on which one the process installed.
pub(super) fn configuration(authorities: &[u8]) -> Result<ClientConfig, SetupError> {
    let extra = CertificateDer::pem_slice_iter(authorities)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| SetupError("ca_file holds no certificates".to_owned()))?;
    if extra.is_empty() && !authorities.is_empty() {
        return Err(SetupError("ca_file holds no certificates".to_owned()));
    }
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
