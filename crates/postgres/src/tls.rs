//! TLS for connections, by rustls with the same provider as everything else in tenure.
//!
//! As in libpq, `require` encrypts and checks no certificate, `verify-ca` checks who signed it, and
//! `verify-full` also checks the host's name. Signatures of the handshake are checked in every
//! mode.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use tenure_store::server::SslMode;

/// The TLS configuration for a mode; `roots` is the content of the file with the trusted
/// certificates.
pub(super) fn config(mode: SslMode, roots: Option<&[u8]>) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let checks = match mode {
        SslMode::Disable | SslMode::Require => None,
        SslMode::VerifyCa | SslMode::VerifyFull => {
            let roots = trusted(roots.unwrap_or_default())?;
            let builder =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
            Some(builder.build().map_err(|error| error.to_string())?)
        }
    };
    let verifier = Verifier {
        provider: Arc::clone(&provider),
        checks,
        checks_name: mode == SslMode::VerifyFull,
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

fn trusted(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("it contains no certificate".to_owned());
    }
    Ok(roots)
}

/// Checks as much of a certificate as the mode requires.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    checks: Option<Arc<WebPkiServerVerifier>>,
    checks_name: bool,
}

fn is_about_name(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
        )
    )
}

/// Why a server's certificate was refused, or TLS failed.
pub(super) fn explain(error: &Error) -> String {
    let why = match error {
        Error::InvalidCertificate(why) => why,
        Error::InvalidMessage(_) => return failed(&"the server does not answer with it"),
        _ => return failed(error),
    };
    match why {
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let names: Vec<&str> = presented.iter().map(|name| plain(name)).collect();
            let asked = expected.to_str();
            format!("its certificate is for {}, not for {asked}", names.join(", "))
        }
        CertificateError::UnknownIssuer => {
            "its certificate is signed by an authority that the file of sslrootcert does not contain"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired".to_owned()
        }
        // Its own words, without those of the layers around it.
        CertificateError::Other(why) => not_valid(why),
        why => not_valid(why),
    }
}

fn failed(why: &dyn std::fmt::Display) -> String {
    format!("TLS failed ({why})")
}

fn not_valid(why: &impl std::fmt::Display) -> String {
    format!("its certificate is not valid ({why})")
}

/// The name in `DnsName("localhost")`.
fn plain(name: &str) -> &str {
    name.split('"').nth(1).unwrap_or(name)
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(checks) = &self.checks else {
            return Ok(ServerCertVerified::assertion());
        };
        let checked =
            checks.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match checked {
            Err(error) if !self.checks_name && is_about_name(&error) => {
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
