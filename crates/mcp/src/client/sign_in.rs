//! Signs in to a server with OAuth, through haft's own guarded client.
//!
//! The addresses for signing in come from the server, so they are not trusted: only the
//! configured host may be in a private network, all others must be on the public internet.
//! [`sign_in_urls`] decides which addresses may be used at all.

use super::sign_in_urls;
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

/// Time limit of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of a response in bytes.
const MAX_RESPONSE: usize = 1 << 20;

/// Storage for the credentials of a sign-in.
pub trait Tokens: Send + Sync {
    /// Returns the stored credentials.
    fn load(&self) -> Option<Value>;
    /// Stores the credentials, readable by the user only.
    ///
    /// # Errors
    /// When they could not be stored.
    fn store(&self, tokens: &Value) -> Result<(), String>;
    /// Deletes the credentials.
    fn clear(&self);
}

/// Reason why a sign-in failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SignInError(pub(super) String);

impl From<AuthError> for SignInError {
    fn from(error: AuthError) -> Self {
        let text = haft::ops::text::decode::visible(&error.to_string());
        Self(text.chars().take(500).collect())
    }
}

/// Identity of the client, for servers that do not let haft register itself.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Identity {
    /// Client id issued by the server's operator.
    pub client_id: Option<String>,
    /// Client secret that belongs to the id.
    pub client_secret: Option<Secret>,
    /// Address of a document that describes the client, for servers that accept this
    /// instead of an id.
    pub metadata_url: Option<String>,
}

/// Key beside the credentials that holds the server's last challenge for more access.
const CHALLENGE_KEY: &str = "haft_wanted";

/// The sign-in to one server.
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

    async fn create_manager(&self) -> Result<AuthorizationManager, SignInError> {
        let http = Arc::new(GuardedHttp {
            client: self.client.clone(),
            configured: self.url.clone(),
        });
        let mut manager =
            AuthorizationManager::new_with_oauth_http_client(self.url.as_str(), http).await?;
        manager.set_credential_store(TokenCredentialStore(Arc::clone(&self.tokens)));
        Ok(manager)
    }

    /// Returns the access token, refreshed if it has expired; `None` if the user has not
    /// signed in.
    pub(super) async fn token(&self) -> Result<Option<Secret>, SignInError> {
        if self.tokens.load().is_none() {
            return Ok(None);
        }
        let mut manager = self.manager.lock().await;
        if manager.is_none() {
            let mut created = self.create_manager().await?;
            if !created.initialize_from_store().await? {
                return Ok(None);
            }
            *manager = Some(created);
        }
        match &*manager {
            Some(manager) => Ok(Some(Secret::new(manager.get_access_token().await?))),
            None => Ok(None),
        }
    }

    /// Remembers that a call needs more access than the user has granted.
    pub(super) fn store_challenge(&self, challenge: &str) {
        let mut stored = self.tokens.load().unwrap_or_else(|| json!({}));
        if let Some(stored) = stored.as_object_mut() {
            stored.insert(CHALLENGE_KEY.to_owned(), challenge.into());
        }
        if let Err(error) = self.tokens.store(&stored) {
            tracing::warn!(error, "cannot store a server's challenge");
        }
    }

    /// Returns the challenge of a call that needs more access. A sign-in clears it.
    pub(super) fn stored_challenge(&self) -> Option<String> {
        Some(self.tokens.load()?.get(CHALLENGE_KEY)?.as_str()?.to_owned())
    }

    /// Starts a sign-in: returns the session with the address to open.
    pub(super) async fn start(
        &self,
        challenge: Option<String>,
        redirect: &str,
    ) -> Result<AuthorizationSession, SignInError> {
        let mut manager = self.create_manager().await?;
        let resolved = match challenge.as_deref() {
            Some("") | None => manager.resolve_metadata().await?,
            words => manager.resolve_metadata_from_challenge(words).await?,
        };
        sign_in_urls::check(&resolved.metadata, &self.url)?;
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
        // rmcp builds this address from the checked one; it is checked again because the
        // user sees it.
        let shown = session.get_authorization_url();
        sign_in_urls::check_page(shown, &self.url)?;
        Ok(session)
    }

    /// Completes a sign-in with the address that the user was redirected to.
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

/// A sign-in that waits for the user.
pub struct PendingSignIn {
    session: AuthorizationSession,
}

impl PendingSignIn {
    /// Returns the address that the user has to open.
    #[must_use]
    pub fn address(&self) -> &str {
        self.session.get_authorization_url()
    }
}

impl super::RemoteServer {
    /// Starts a sign-in. The browser is redirected to `redirect`, an address on this
    /// machine.
    ///
    /// # Errors
    /// When the server offers no supported way to sign in.
    pub async fn begin_sign_in(
        &self,
        challenge: Option<String>,
        redirect: &str,
    ) -> Result<PendingSignIn, SignInError> {
        let sign_in = self
            .sign_in
            .as_ref()
            .ok_or_else(|| SignInError("no storage for credentials is configured".to_owned()))?;
        let session = sign_in.start(challenge, redirect).await?;
        Ok(PendingSignIn { session })
    }

    /// Completes a sign-in with the full address that the browser was redirected to.
    ///
    /// # Errors
    /// When the response does not match the request, or the server issues no token.
    pub async fn finish_sign_in(
        &self,
        pending: PendingSignIn,
        answer: &str,
    ) -> Result<(), SignInError> {
        match &self.sign_in {
            Some(sign_in) => sign_in.finish(pending.session, answer).await,
            None => Err(SignInError("no sign-in was started".to_owned())),
        }
    }
}

struct TokenCredentialStore(Arc<dyn Tokens>);

#[async_trait]
impl CredentialStore for TokenCredentialStore {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let stored = self.0.load();
        Ok(stored.and_then(|stored| serde_json::from_value(stored).ok()))
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

/// The guarded client as rmcp's OAuth needs it.
struct GuardedHttp {
    client: Client,
    /// The address that the user configured.
    configured: Url,
}

impl OAuthHttpClient for GuardedHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let failed = |words: &str| -> OAuthHttpClientError { words.to_owned().into() };
            let (parts, body) = request.request.into_parts();
            let url = Url::parse(&parts.uri.to_string())?;
            let method = match parts.method.as_str() {
                "GET" => Method::Get,
                "POST" => Method::Post,
                _ => return Err(failed("unexpected method in a sign-in")),
            };
            // The server's own description of its sign-in may be read wherever the user
            // configured it.
            let is_own_metadata = method == Method::Get && url.origin() == self.configured.origin();
            if !is_own_metadata {
                sign_in_urls::check_url(&url, &self.configured).map_err(failed)?;
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
                    // The sign-in service of a server on this machine is often on another
                    // port of the same host.
                    origin: if url.host() == self.configured.host() {
                        Origin::Configuration
                    } else {
                        Origin::Untrusted
                    },
                    url,
                    headers,
                    body: (method == Method::Post).then_some(body),
                    timeout: request
                        .timeout
                        .unwrap_or(REQUEST_TIMEOUT)
                        .min(REQUEST_TIMEOUT),
                    limit: MAX_RESPONSE,
                    // Redirects are returned, never followed.
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
