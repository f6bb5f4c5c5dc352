//! Client for Python's package index (simple API). Pages come as JSON (PEP 691) or HTML (PEP
//! 503); the caller always gets JSON with absolute addresses.

use crate::client::{Client, Header, Method, Origin, Redirects, Request, Url};
use crate::html::{Attribute, Page, Tag};
use async_trait::async_trait;
use haft::guest::Fetch;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Time limit for one page or file.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Size limit for one page or file.
const MAX_BYTES: usize = 32 << 20;

/// Prefers JSON, accepts HTML.
const ACCEPT: &str = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1, */*;q=0.05";

/// A package index that the user chose. Serves the pages of the index and the files they link to,
/// and nothing else.
pub struct PackageIndex {
    client: Client,
    index: Url,
    linked_files: Mutex<HashSet<String>>,
}

impl PackageIndex {
    /// Creates a client for the index at this address.
    #[must_use]
    pub fn new(client: Client, index: Url) -> Self {
        Self {
            client,
            index,
            linked_files: Mutex::default(),
        }
    }

    fn is_page(&self, url: &Url) -> bool {
        let below = format!("{}/", self.index.path().trim_end_matches('/'));
        url.origin() == self.index.origin()
            && url.path().starts_with(&below)
            && url.path().ends_with('/')
    }

    fn is_linked_file(&self, url: &Url) -> bool {
        let files = self.linked_files.lock();
        let files = files.unwrap_or_else(PoisonError::into_inner);
        files.contains(url.as_str())
    }
}

#[async_trait]
impl Fetch for PackageIndex {
    async fn fetch(&self, url: &str) -> Result<Vec<u8>, String> {
        let url = Url::parse(url).map_err(|error| error.to_string())?;
        let is_page = self.is_page(&url);
        let request = Request {
            method: Method::Get,
            // The user chose the index, but not the other hosts it links to.
            origin: if url.origin() == self.index.origin() {
                Origin::Configuration
            } else {
                Origin::Untrusted
            },
            url,
            headers: vec![Header::Plain("accept", ACCEPT.to_owned())],
            body: None,
            timeout: TIMEOUT,
            limit: MAX_BYTES,
            redirects: Redirects::Follow,
        };
        let response = self.client.send(request).await;
        let response = response.map_err(|error| error.to_string())?;
        if response.status != 200 {
            return Err(format!("the index answered {}", response.status_line()));
        }
        let from = response.url.clone();
        let body = response.body().await.map_err(|error| error.to_string())?;
        if body.is_truncated {
            return Err(format!("larger than {} MiB", MAX_BYTES >> 20));
        }
        if !is_page {
            return Ok(body.bytes);
        }
        let files = parse_page(&body.bytes, &from)?;
        let urls = files.iter().filter_map(|file| file.get("url")?.as_str());
        let linked = self.linked_files.lock();
        let mut linked = linked.unwrap_or_else(PoisonError::into_inner);
        linked.extend(urls.map(str::to_owned));
        Ok(json!({ "files": files }).to_string().into_bytes())
    }

    fn host(&self, url: &str) -> Option<String> {
        let url = Url::parse(url).ok()?;
        (self.is_page(&url) || self.is_linked_file(&url)).then_some(())?;
        url.host_str().map(str::to_owned)
    }
}

/// Returns the files that a page lists, each as PEP 691 describes it.
fn parse_page(page: &[u8], address: &Url) -> Result<Vec<Value>, String> {
    if page.trim_ascii_start().starts_with(b"{") {
        return from_json(page, address);
    }
    from_html(&String::from_utf8_lossy(page), address)
}

fn from_json(page: &[u8], address: &Url) -> Result<Vec<Value>, String> {
    let mut page: Value = serde_json::from_slice(page)
        .map_err(|error| format!("the page is not valid JSON: {error}"))?;
    let Some(Value::Array(files)) = page.get_mut("files").map(Value::take) else {
        return Err("the page has no list of files".to_owned());
    };
    let absolute = |mut file: Value| {
        let url = address.join(file.get("url")?.as_str()?).ok()?;
        *file.get_mut("url")? = url.to_string().into();
        Some(file)
    };
    Ok(files.into_iter().filter_map(absolute).collect())
}

fn from_html(page: &str, address: &Url) -> Result<Vec<Value>, String> {
    let page = Page::parse(page, address);
    let tree = page.tree();
    if tree.is_truncated() {
        return Err("the page has too many elements to be read completely".to_owned());
    }
    let link = |node: usize| {
        let href = tree.attribute(node, Attribute::Href)?;
        let mut url = page.base().join(href.trim()).ok()?;
        // The hash is in the fragment: `#sha256=…`.
        let hash = url.fragment().and_then(|hash| hash.split_once('='));
        let hashes: Map<String, Value> = hash
            .map(|(name, value)| (name.to_owned(), value.into()))
            .into_iter()
            .collect();
        url.set_fragment(None);
        let mut file = json!({
            "filename": tree.plain_text(node), "url": url.as_str(), "hashes": hashes,
        });
        let fields = file.as_object_mut()?;
        if let Some(python) = tree.attribute(node, Attribute::DataRequiresPython) {
            fields.insert("requires-python".to_owned(), python.into());
        }
        if let Some(reason) = tree.attribute(node, Attribute::DataYanked) {
            fields.insert("yanked".to_owned(), reason.into());
        }
        Some(file)
    };
    Ok(tree.elements(Tag::A).filter_map(link).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(page: &str, address: &str) -> Vec<Value> {
        parse_page(page.as_bytes(), &Url::parse(address).unwrap()).unwrap()
    }

    #[test]
    fn html_and_json_pages_list_the_same_files() {
        let html = r#"<!DOCTYPE html>
<html><head><title>Links for six</title><meta name="pypi:repository-version" content="1.3"></head>
<body><h1>Links for six</h1>
<a href="../../files/six-1.0-py3-none-any.whl#sha256=00ff" data-requires-python="&gt;=3.8">six-1.0-py3-none-any.whl</a><br/>
<A HREF='https://files.example/six-0.9.tar.gz#sha256=11' data-yanked="broken">
  six-0.9.tar.gz </A>
<a href="six-0.8.tar.gz" data-yanked>six-0.8.tar.gz</a>
<a>not a file</a></body></html>"#;
        let json = r#"{ "meta": { "api-version": "1.0" }, "files": [
            { "filename": "six-1.0-py3-none-any.whl", "url": "../../files/six-1.0-py3-none-any.whl",
              "hashes": { "sha256": "00ff" }, "requires-python": ">=3.8" },
            { "filename": "six-0.9.tar.gz", "url": "https://files.example/six-0.9.tar.gz",
              "hashes": { "sha256": "11" }, "yanked": "broken" },
            { "filename": "six-0.8.tar.gz", "url": "six-0.8.tar.gz", "hashes": {}, "yanked": "" } ] }"#;
        let address = "https://index.example/simple/six/";
        let from_html = listed(html, address);
        assert_eq!(from_html, listed(json, address));
        let urls: Vec<&str> = from_html
            .iter()
            .map(|file| file["url"].as_str().unwrap())
            .collect();
        assert_eq!(
            urls,
            [
                "https://index.example/files/six-1.0-py3-none-any.whl",
                "https://files.example/six-0.9.tar.gz",
                "https://index.example/simple/six/six-0.8.tar.gz",
            ]
        );
    }

    #[test]
    fn a_page_may_name_its_base() {
        let html = r#"<base href="https://files.example/p/"><a href="x-1.0.whl">x-1.0.whl</a>"#;
        let files = listed(html, "https://index.example/simple/x/");
        assert_eq!(files[0]["url"], "https://files.example/p/x-1.0.whl");
    }

    #[test]
    fn a_page_without_links_lists_nothing() {
        assert!(listed("<!DOCTYPE html>", "https://index.example/simple/x/").is_empty());
        assert!(listed("", "https://index.example/simple/x/").is_empty());
        let address = Url::parse("https://index.example/simple/x/").unwrap();
        assert!(parse_page(b"{", &address).is_err());
        assert!(parse_page(b"{}", &address).is_err());
    }

    #[test]
    fn only_pages_of_the_index_and_files_they_name_are_served() {
        let client = Client::new(crate::Settings::default()).unwrap();
        let index = Url::parse("https://index.example/simple").unwrap();
        let index = PackageIndex::new(client, index);
        let host = |url: &str| index.host(url);
        assert_eq!(
            host("https://index.example/simple/six/").as_deref(),
            Some("index.example")
        );
        assert_eq!(host("https://index.example/other/six/"), None);
        assert_eq!(host("https://index.example/simple/six/six-1.0.whl"), None);
        assert_eq!(host("https://files.example/six-1.0.whl"), None);
        assert_eq!(host("http://index.example/simple/six/"), None);
    }
}
