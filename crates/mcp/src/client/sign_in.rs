//! Signing in to a server that wants it (OAuth), through haft's own guarded client.
//!
//! Where a server sends us to sign in is its word, not the person's: only the host that
//! was configured may be anywhere, all others must be on the open internet. [`offered`]
//! says which addresses a person is shown at all.

use super::offered;
use async_trait::async_trait;
use haft_web::client::{Header, Method, Origin, Redirects, Url};
use haft_web::{Client, Request, Secret};
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession, CredentialStore,
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest,
    StoredCredentials,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// How long one request may take.
const TIME: Duration = Duration::from_secs(30);

/// How much is read of an answer.
const LARGEST: usize = 1 << 20;

/// Where what a person signed in with is kept.
pub trait Tokens: Send + Sync {
    /// What is kept.
    fn load(&self) -> Option<Value>;
    /// Keeps it, for nobody else to see.
    ///
    /// # Errors
    /// When it could not be kept.
    fn store(&self, tokens: &Value) -> Result<(), String>;
    /// Forgets it.
    fn clear(&self);
}

/// Why a sign-in failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SignInError(pub(super) String);

impl From<AuthError> for SignInError {
    fn from(error: AuthError) -> Self {
        let text = haft::ops::text::decode::visible(&error.to_string());
        Self(text.chars().take(500).collect())
    }
}

/// As what haft signs in, where the server does not let it register itself.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Identity {
    /// The id that the server's operator gave out.
    pub client_id: Option<String>,
    /// The secret that goes with it.
    pub client_secret: Option<Secret>,
    /// The address of a document that says who the client is, for servers that take
    /// that instead of an id.
    pub metadata_url: Option<String>,
}

/// Beside the credentials: what the server said when they were not enough.
const WANTED: &str = "haft_wanted";

/// What a person signed in with, for one server.
pub(super) struct SignIn {
    url: Url,
    client: Client,
    identity: Identity,
    tokens: Arc<dyn Tokens>,
    manager: Mutex<Option<AuthorizationManager>>,
}

impl SignIn {
    pub(super) fn new(
        url: Url,
        client: Client,
        identity: Identity,
        tokens: Arc<dyn Tokens>,
    ) -> Self {
        Self {
            url,
            client,
            identity,
            tokens,
            manager: Mutex::new(None),
        }
    }

    async fn made(&self) -> Result<AuthorizationManager, SignInError> {
        let http = Arc::new(Guarded {
            client: self.client.clone(),
            own: self.url.clone(),
        });
        let mut manager =
            AuthorizationManager::new_with_oauth_http_client(self.url.as_str(), http).await?;
        manager.set_credential_store(Kept(Arc::clone(&self.tokens)));
        Ok(manager)
    }

    /// What to show to the server; nothing if nobody signed in. It is renewed when it
    /// is old.
    pub(super) async fn token(&self) -> Result<Option<Secret>, SignInError> {
        if self.tokens.load().is_none() {
            return Ok(None);
        }
        let mut manager = self.manager.lock().await;
        if manager.is_none() {
            let mut made = self.made().await?;
            if !made.initialize_from_store().await? {
                return Ok(None);
            }
            *manager = Some(made);
        }
        match &*manager {
            Some(manager) => Ok(Some(Secret::new(manager.get_access_token().await?))),
            None => Ok(None),
        }
    }

    /// Remembers that a call needs more than the person allowed.
    pub(super) fn want(&self, challenge: &str) {
        let mut kept = self.tokens.load().unwrap_or_else(|| json!({}));
        if let Some(kept) = kept.as_object_mut() {
            kept.insert(WANTED.to_owned(), challenge.into());
        }
        if let Err(error) = self.tokens.store(&kept) {
            tracing::warn!(error, "what a server wants could not be kept");
        }
    }

    /// What a call needed that the person has not allowed yet. A sign-in ends it.
    pub(super) fn wanted(&self) -> Option<String> {
        Some(self.tokens.load()?.get(WANTED)?.as_str()?.to_owned())
    }

    /// Begins to sign in: the address to open, and what takes its answer.
    pub(super) async fn begin(
        &self,
        challenge: Option<String>,
        redirect: &str,
    ) -> Result<AuthorizationSession, SignInError> {
        let mut manager = self.made().await?;
        let resolved = match challenge.as_deref() {
            Some("") | None => manager.resolve_metadata().await?,
            words => manager.resolve_metadata_from_challenge(words).await?,
        };
        offered::check(&resolved.metadata, &self.url)?;
        manager.set_metadata(resolved.metadata);
        let mut request = AuthorizationRequest::new(redirect)
            .with_client_name("haft")
            .with_application_type("native")
            .with_initial_scope_selection();
        if let Some(id) = &self.identity.client_id {
            request = request.with_preregistered_client(id);
        }
        if let Some(secret) = &self.identity.client_secret {
            request = request.with_client_secret(secret.expose());
        }
        if let Some(url) = &self.identity.metadata_url {
            request = request.with_client_metadata_url(url);
        }
        let session = AuthorizationSession::new(manager, request)
            .await
            .map_err(|(_, error)| SignInError::from(error))?;
        // The library builds on the address that was checked; what is shown is looked at too.
        let shown = session.get_authorization_url();
        offered::page(shown, &self.url)?;
        Ok(session)
    }

    /// Takes the answer: from now on it is shown to the server.
    pub(super) async fn finish(
        &self,
        session: AuthorizationSession,
        answer: &str,
    ) -> Result<(), SignInError> {
        session.handle_callback_url(answer).await?;
        *self.manager.lock().await = Some(session.auth_manager);
        Ok(())
    }
}

/// A sign-in that waits for the person.
pub struct Pending {
    session: AuthorizationSession,
}

impl Pending {
    /// What the person has to open.
    #[must_use]
    pub fn address(&self) -> &str {
        self.session.get_authorization_url()
    }
}

impl super::RemoteServer {
    /// Begins to sign in. The answer comes to `redirect`, an address on this machine.
    ///
    /// # Errors
    /// When the server has no way to sign in that we know.
    pub async fn begin_sign_in(
        &self,
        challenge: Option<String>,
        redirect: &str,
    ) -> Result<Pending, SignInError> {
        let sign_in = self
            .sign_in
            .as_ref()
            .ok_or_else(|| SignInError("there is no place to keep a sign-in".to_owned()))?;
        let session = sign_in.begin(challenge, redirect).await?;
        Ok(Pending { session })
    }

    /// Ends to sign in, with the whole address that the person was sent back to.
    ///
    /// # Errors
    /// When the answer is not what was asked for, or no token came of it.
    pub async fn finish_sign_in(&self, pending: Pending, answer: &str) -> Result<(), SignInError> {
        match &self.sign_in {
            Some(sign_in) => sign_in.finish(pending.session, answer).await,
            None => Err(SignInError("nothing was begun".to_owned())),
        }
    }
}

struct Kept(Arc<dyn Tokens>);

#[async_trait]
impl CredentialStore for Kept {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let kept = self.0.load();
        Ok(kept.and_then(|kept| serde_json::from_value(kept).ok()))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let value = serde_json::to_value(credentials)
            .map_err(|error| AuthError::CredentialStoreError(error.to_string()))?;
        self.0
            .store(&value)
            .map_err(AuthError::CredentialStoreError)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.0.clear();
        Ok(())
    }
}

/// The guarded client, as the sign-in wants one.
struct Guarded {
    client: Client,
    /// The server that the person configured.
    own: Url,
}

impl OAuthHttpClient for Guarded {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let failed = |words: &str| -> OAuthHttpClientError { words.to_owned().into() };
            let (parts, body) = request.request.into_parts();
            let url = Url::parse(&parts.uri.to_string())?;
            let method = match parts.method.as_str() {
                "GET" => Method::Get,
                "POST" => Method::Post,
                _ => return Err(failed("a method that no sign-in needs")),
            };
            // What the server itself says of signing in is read wherever the person named it.
            let is_read = method == Method::Get && url.origin() == self.own.origin();
            if !is_read {
                offered::allowed(&url, &self.own).map_err(failed)?;
            }
            let mut headers = Vec::new();
            for (name, value) in &parts.headers {
                let value = Secret::new(value.to_str()?);
                headers.push(Header::Named(name.as_str().to_owned(), value));
            }
            let response = self
                .client
                .send(Request {
                    method,
                    // Who signs people in for a server on this machine is often beside
                    // it, at another port of the host that the person named.
                    origin: if url.host() == self.own.host() {
                        Origin::Configuration
                    } else {
                        Origin::Untrusted
                    },
                    url,
                    headers,
                    body: (method == Method::Post).then_some(body),
                    timeout: request.timeout.unwrap_or(TIME).min(TIME),
                    limit: LARGEST,
                    // Where a sign-in leads is looked at, never followed.
                    redirects: Redirects::Refuse,
                })
                .await?;
            let mut answer = http::Response::builder().status(response.status);
            for name in ["content-type", "www-authenticate", "location"] {
                if let Some(value) = response.header(name) {
                    answer = answer.header(name, value);
                }
            }
            let body = response.body().await?;
            Ok(answer.body(body.bytes)?)
        })
    }
}
