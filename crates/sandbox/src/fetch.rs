//! Fetching from the package index, where no session does it for us.

use async_trait::async_trait;
use haft::guest::Fetch;
use haft_web::client::{Client, Header, Method, Origin, Redirects, Request, Url};
use std::time::Duration;

/// How long one file may take, and how large it may be.
const TIME: Duration = Duration::from_secs(60);
const LARGEST: usize = 32 << 20;

/// The form of the index that is understood.
const JSON: &str = "application/vnd.pypi.simple.v1+json, */*;q=0.1";

/// The index that the person chose; whatever it names elsewhere is anybody's word.
pub(crate) struct Direct {
    pub(crate) client: Client,
    pub(crate) index: Url,
}

#[async_trait]
impl Fetch for Direct {
    async fn fetch(&self, url: &str) -> Result<Vec<u8>, String> {
        let url = Url::parse(url).map_err(|error| error.to_string())?;
        let is_index = url.origin() == self.index.origin();
        let request = Request {
            method: Method::Get,
            origin: if is_index {
                Origin::Configuration
            } else {
                Origin::Anybody
            },
            url,
            headers: vec![Header::Plain("accept", JSON.to_owned())],
            body: None,
            timeout: TIME,
            limit: LARGEST,
            redirects: Redirects::Follow,
        };
        let answer = self.client.send(request).await;
        let answer = answer.map_err(|error| error.to_string())?;
        if answer.status != 200 {
            return Err(format!("the answer is {}", answer.status_line()));
        }
        let body = answer.body().await.map_err(|error| error.to_string())?;
        if body.cut {
            return Err(format!("it is larger than {} MiB", LARGEST >> 20));
        }
        Ok(body.bytes)
    }

    fn host(&self, url: &str) -> Option<String> {
        Url::parse(url).ok()?.host_str().map(str::to_owned)
    }
}
