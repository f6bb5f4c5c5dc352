//! Load generator for a server over HTTP, with one connection and session per client: `load
//! ADDRESS TOKEN CLIENTS CALLS PAUSE_MS ARGUMENTS_OF_READ`.
//!
//! Prints one line of JSON: the number of calls and failures, the total time, and the
//! latency of calls.

use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

type Failed = Box<dyn std::error::Error + Send + Sync>;

struct Client {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Client {
    async fn connect(address: &str, token: &str) -> Result<Self, Failed> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"
        );
        let mut client = Self {
            stream: BufReader::new(stream),
            head,
        };
        let (headers, _) = client
            .post(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"load","version":"0"}}}"#)
            .await?;
        let session = headers
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "))
            .ok_or("no session")?;
        client
            .head
            .push_str(&format!("mcp-session-id: {session}\r\n"));
        client
            .post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await?;
        Ok(client)
    }

    /// Sends a request, and returns the head and the body of the response.
    async fn post(&mut self, body: &str) -> Result<(String, Vec<u8>), Failed> {
        let request = format!("{}content-length: {}\r\n\r\n{body}", self.head, body.len());
        self.stream.get_mut().write_all(request.as_bytes()).await?;
        let mut headers = String::new();
        loop {
            let begin = headers.len();
            if self.stream.read_line(&mut headers).await? == 0 {
                return Err("the server closed the connection".into());
            }
            if headers.get(begin..) == Some("\r\n") {
                break;
            }
        }
        let length = headers
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let mut answer = Vec::new();
        if let Some(length) = length {
            answer.resize(length.parse()?, 0);
            self.stream.read_exact(&mut answer).await?;
        } else if headers.contains("transfer-encoding: chunked") {
            loop {
                let mut line = String::new();
                self.stream.read_line(&mut line).await?;
                let length = usize::from_str_radix(line.trim(), 16)?;
                let mut chunk = vec![0; length + 2];
                self.stream.read_exact(&mut chunk).await?;
                if length == 0 {
                    break;
                }
                answer.extend_from_slice(&chunk);
            }
        }
        Ok((headers, answer))
    }
}

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "its figures")]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [address, token, clients, calls, pause, read] = arguments.as_slice() else {
        return Err("load ADDRESS TOKEN CLIENTS CALLS PAUSE_MS ARGUMENTS_OF_READ".into());
    };
    let (count, calls): (usize, u32) = (clients.parse()?, calls.parse()?);
    let pause = Duration::from_millis(pause.parse()?);
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(Client::connect(address, token).await?);
    }
    let begun = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for (at, mut client) in clients.into_iter().enumerate() {
        let read = read.clone();
        tasks.spawn(async move {
            let (mut took, mut failed) = (Vec::new(), 0u32);
            // Spread the clients over time.
            tokio::time::sleep(pause.mul_f64(at as f64 / count as f64)).await;
            for id in 1..=calls {
                let body = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"read","arguments":{read}}}}}"#
                );
                let asked = Instant::now();
                let answer = client.post(&body).await;
                took.push(asked.elapsed());
                let is_fine = answer.is_ok_and(|(headers, answer)| {
                    headers.starts_with("HTTP/1.1 200")
                        && String::from_utf8_lossy(&answer).contains("\"isError\":false")
                });
                failed += u32::from(!is_fine);
                tokio::time::sleep(pause.saturating_sub(asked.elapsed())).await;
            }
            (client, took, failed)
        });
    }
    // The connections stay open until all clients are done.
    let (mut all, mut failed, mut open) = (Vec::new(), 0, Vec::new());
    while let Some(ended) = tasks.join_next().await {
        let (client, took, wrong) = ended?;
        all.extend(took);
        failed += wrong;
        open.push(client);
    }
    let took = begun.elapsed();
    all.sort_unstable();
    let at = |part: f64| {
        let index = (all.len() as f64 * part) as usize;
        all.get(index.min(all.len().saturating_sub(1)))
            .map_or(0, Duration::as_micros)
    };
    println!(
        r#"{{"calls":{},"failed":{failed},"seconds":{:.3},"p50_us":{},"p99_us":{},"max_us":{}}}"#,
        all.len(),
        took.as_secs_f64(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    // Time to measure the server from outside.
    let mut line = String::new();
    BufReader::new(tokio::io::stdin())
        .read_line(&mut line)
        .await?;
    drop(open);
    Ok(())
}
