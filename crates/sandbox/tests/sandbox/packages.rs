//! `install_packages`, with an index on loopback.

use crate::bed::{Bed, Server};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// An index with pages and files, which records requests.
pub(crate) struct Index {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Index {
    pub(crate) fn serve(pages: BTreeMap<String, Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/simple", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let noting = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok() && !line.ends_with("\r\n\r\n") {}
                let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
                noting.lock().unwrap().push(path.clone());
                let (status, body) = match pages.get(&path) {
                    Some(body) => ("200 OK", body.as_slice()),
                    None => ("404 Not Found", &b""[..]),
                };
                let kind = match body.first() {
                    Some(b'{') => "application/vnd.pypi.simple.v1+json",
                    Some(b'<') => "text/html",
                    _ => "application/octet-stream",
                };
                let head = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                let mut stream = stream;
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(body);
            }
        });
        Self { address, asked }
    }
}

/// Builds a zip file without compression.
pub(crate) fn zip(files: &[(&str, &str)]) -> Vec<u8> {
    let (mut bytes, mut list) = (Vec::new(), Vec::new());
    for (name, content) in files {
        let mut sum = flate2::Crc::new();
        sum.update(content.as_bytes());
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        common.extend(sum.sum().to_le_bytes());
        let length = u32::try_from(content.len()).unwrap().to_le_bytes();
        common.extend(length);
        common.extend(length);
        common.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        common.extend([0, 0]);
        let at = u32::try_from(bytes.len()).unwrap();
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&common);
        bytes.extend(name.as_bytes());
        bytes.extend(content.as_bytes());
        list.extend(b"PK\x01\x02\x14\x00");
        list.extend(&common);
        list.extend([0; 10]);
        list.extend(at.to_le_bytes());
        list.extend(name.as_bytes());
    }
    let count = u16::try_from(files.len()).unwrap().to_le_bytes();
    let (start, length) = (bytes.len(), list.len());
    bytes.extend(list);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend(count);
    bytes.extend(count);
    bytes.extend(u32::try_from(length).unwrap().to_le_bytes());
    bytes.extend(u32::try_from(start).unwrap().to_le_bytes());
    bytes.extend([0, 0]);
    bytes
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Format of an index's pages.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    Json,
    Html,
}

impl Form {
    pub(crate) fn page(self, files: &[(&str, &str)]) -> Vec<u8> {
        match self {
            Form::Json => {
                let files: Vec<Value> = files
                    .iter()
                    .map(|(name, hash)| {
                        json!({
                            "filename": name, "url": format!("../../files/{name}"),
                            "hashes": { "sha256": hash },
                            "requires-python": name.starts_with("greet-2.8").then_some(">=4"),
                            "yanked": name.starts_with("greet-2.9"),
                        })
                    })
                    .collect();
                json!({ "meta": { "api-version": "1.0" }, "files": files }).to_string()
            }
            Form::Html => {
                let links: String = files
                    .iter()
                    .map(|(name, hash)| {
                        let more = match *name {
                            name if name.starts_with("greet-2.8") => {
                                " data-requires-python=\"&gt;=4\""
                            }
                            name if name.starts_with("greet-2.9") => " data-yanked=\"\"",
                            _ => "",
                        };
                        format!(
                            "<a href=\"../../files/{name}#sha256={hash}\"{more}>{name}</a><br />\n"
                        )
                    })
                    .collect();
                format!("<!DOCTYPE html>\n<html><body><h1>Links</h1>\n{links}</body></html>\n")
            }
        }
        .into_bytes()
    }
}

/// An index with a package and its dependency, one with native code, and invalid ones.
fn index(form: Form) -> Index {
    let page = |files: &[(&str, &str)]| form.page(files);
    let metadata = "Name: greet\nRequires-Dist: loud>=1\nRequires-Dist: missing; extra == 'more'\nRequires-Dist: missing; sys_platform == 'win32'\n\nRequires-Dist: in-the-description\n";
    let greet = zip(&[
        (
            "greet/__init__.py",
            "import loud\ndef hello(name):\n    return loud.up('hello ' + name)\n",
        ),
        ("greet-2.0.dist-info/METADATA", metadata),
    ]);
    let loud = zip(&[("loud.py", "def up(text):\n    return text.upper()\n")]);
    let escape = zip(&[("../../etc/x.py", "")]);
    let mut pages = BTreeMap::new();
    let mut put = |path: &str, bytes: Vec<u8>| pages.insert(path.to_owned(), bytes);
    put(
        "/simple/greet/",
        page(&[
            ("greet-1.0-py3-none-any.whl", "00"),
            ("greet-2.0-py3-none-any.whl", &sha256(&greet)),
            ("greet-2.8-py3-none-any.whl", "00"),
            ("greet-2.9-py3-none-any.whl", "00"),
            ("greet-3.0rc1-py3-none-any.whl", "00"),
            ("greet-3.0.tar.gz", "00"),
        ]),
    );
    put(
        "/simple/loud/",
        page(&[("loud-1.5-py2.py3-none-any.whl", &sha256(&loud))]),
    );
    put(
        "/simple/numpy/",
        page(&[("numpy-2.3.0-cp314-cp314-manylinux_2_17_x86_64.whl", "00")]),
    );
    put(
        "/simple/pandas/",
        page(&[("pandas-3.0.0-cp314-cp314-manylinux_2_17_x86_64.whl", "00")]),
    );
    put(
        "/simple/forged/",
        page(&[("forged-1.0-py3-none-any.whl", &sha256(b"another"))]),
    );
    put(
        "/simple/escape/",
        page(&[("escape-1.0-py3-none-any.whl", &sha256(&escape))]),
    );
    put("/simple/empty/", b"<!DOCTYPE html>".to_vec());
    put("/simple/broken/", b"{".to_vec());
    let requests = zip(&[
        (
            "requests/__init__.py",
            "__version__ = '9.0'\nfrom . import api\n",
        ),
        ("requests/api.py", "import json\n"),
    ]);
    put(
        "/simple/requests/",
        page(&[("requests-9.0-py3-none-any.whl", &sha256(&requests))]),
    );
    put("/files/requests-9.0-py3-none-any.whl", requests);
    put("/files/greet-2.0-py3-none-any.whl", greet);
    put("/files/loud-1.5-py2.py3-none-any.whl", loud.clone());
    put("/files/forged-1.0-py3-none-any.whl", loud);
    put("/files/escape-1.0-py3-none-any.whl", escape);
    Index::serve(pages)
}

fn check(server: &mut Server, index: &Index) {
    let mut install =
        |packages: &[&str]| server.call("install_packages", json!({ "packages": packages }));
    for (packages, why) in [
        (&["numpy"][..], "numpy has native code"),
        (&["forged"], "does not match the index"),
        (&["escape"], "it contains a file outside of its folder"),
        (&["empty"], "the page of empty on the index lists no files"),
        (
            &["broken"],
            "cannot look up broken: the page is not valid JSON",
        ),
        (&["unittest"], "unittest is part of the standard library"),
        (&["loud", "SSL"], "ssl is part of the standard library"),
        (
            &["nothing"],
            "cannot look up nothing: the index answered 404 Not Found",
        ),
        (&["greet>=3"], "no matching version of greet"),
        (&["../x"], "invalid package name"),
        (&["x @ http://127.0.0.1/x.whl"], "contains an address"),
        (&[], "no packages given"),
    ] {
        let answer = install(packages);
        assert!(answer.is_error, "{packages:?}: {}", answer.json);
        assert!(
            answer.text("message").contains(why),
            "{packages:?}: {}",
            answer.json
        );
    }
    let native = install(&["numpy"]);
    assert!(
        native.text("hint").contains(".venv/bin/pip install numpy"),
        "{}",
        native.json
    );
    let answer = install(&["greet"]);
    assert_eq!(
        answer.json["installed"],
        json!([
            { "name": "greet", "version": "2.0", "files": 2 },
            { "name": "loud", "version": "1.5", "files": 1 },
        ]),
        "{}",
        answer.json
    );
    let answer = server.python("import greet\ngreet.hello('you')");
    assert_eq!(answer.text("result"), "'HELLO YOU'", "{}", answer.json);
    // It is installed now, so the index is not asked again.
    let before = index.asked.lock().unwrap().len();
    let answer = server.call("install_packages", json!({ "packages": ["greet"] }));
    assert!(!answer.is_error, "{}", answer.json);
    assert_eq!(index.asked.lock().unwrap().len(), before);
    let asked = index.asked.lock().unwrap().join(" ");
    assert!(
        !asked.contains("missing") && !asked.contains("description"),
        "{asked}"
    );
}

#[test]
fn packages_come_from_the_index() {
    for form in [Form::Json, Form::Html] {
        let index = index(form);
        let mut server = Server::alone(&["--index", &index.address]);
        check(&mut server, &index);
    }
}

#[test]
fn the_session_fetches_packages_for_the_interpreter() {
    for form in [Form::Json, Form::Html] {
        let index = index(form);
        let bed = Bed::new();
        let config = format!(
            "execution: {{ kind: sandbox, index: \"{}\" }}\n",
            index.address
        );
        let mut session = bed.session(&config);
        check(&mut session, &index);
        // None of it is in the workspace.
        assert_eq!(std::fs::read_dir(bed.work()).unwrap().count(), 0);
    }
}

#[test]
fn an_installed_package_replaces_the_bundled_stand_in() {
    let index = index(Form::Html);
    let mut server = Server::alone(&["--index", &index.address]);
    let code = "import requests, requests.api\nrequests.__version__";
    let bundled = server.python(code);
    assert!(
        bundled.text("result").contains("bashkit"),
        "{}",
        bundled.json
    );
    let answer = server.call("install_packages", json!({ "packages": ["requests"] }));
    assert_eq!(
        answer.json["installed"][0]["version"], "9.0",
        "{}",
        answer.json
    );
    let installed = server.python(code);
    assert_eq!(installed.text("result"), "'9.0'", "{}", installed.json);
    // The others stay, and so does the standard library.
    let answer = server.python("import httpx, json\n'bashkit' in httpx.__version__");
    assert_eq!(answer.text("result"), "True", "{}", answer.json);
}

/// The three calls from the tools page of adk-deepagents, in a session.
#[test]
fn the_documented_calls_work() {
    let index = index(Form::Json);
    let bed = Bed::new();
    bed.file("notes.txt", "hello");
    let config = format!(
        "execution: {{ kind: heimdall, index: \"{}\" }}\n",
        index.address
    );
    let mut session = bed.session(&config);
    let answer = session.call("execute_python", json!({ "code": "print(2 + 2)" }));
    assert_eq!(answer.text("stdout"), "4\n", "{}", answer.json);
    assert!(!answer.is_error);
    let answer = session.call("execute_bash", json!({ "command": "ls -la" }));
    assert!(!answer.is_error, "{}", answer.json);
    assert!(
        answer.text("stdout").contains("notes.txt"),
        "{}",
        answer.json
    );
    // pandas has native code, which this Python cannot load. The reply contains a hint, and
    // the other package can be installed alone.
    let packages = json!({ "packages": ["requests", "pandas"] });
    let answer = session.call("install_packages", packages);
    assert!(answer.is_error, "{}", answer.json);
    assert!(
        answer.text("message").contains("pandas has native code"),
        "{}",
        answer.json
    );
    assert!(
        answer.text("hint").contains(".venv/bin/pip install"),
        "{}",
        answer.json
    );
    let answer = session.call("install_packages", json!({ "packages": ["requests"] }));
    assert_eq!(
        answer.json["installed"][0]["name"], "requests",
        "{}",
        answer.json
    );
}
