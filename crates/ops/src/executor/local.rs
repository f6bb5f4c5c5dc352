//! Commands on this machine.

use super::capture::Capture;
use super::drive::{Drive, Orders};
use super::job::{Binary, Held, Job};
use super::running::{Pulse, Running};
use super::{Executor, Finished, Launch, Stream, Streams, Watch};
use crate::Result;
use async_trait::async_trait;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Runs commands here, each below a supervisor of its own. Dropping it ends what
/// it started, and so does the end of this process, whatever ended it.
#[derive(Debug)]
pub struct Local {
    binary: Binary,
    held: Held,
}

impl Local {
    /// Starts supervisors as `supervisor` with `arguments`: a program that then
    /// calls [`supervise`](super::supervise) and does nothing else.
    #[must_use]
    pub fn new(supervisor: PathBuf, arguments: Vec<OsString>) -> Self {
        Self {
            binary: Binary {
                path: supervisor,
                arguments,
            },
            held: Held::new(),
        }
    }

    /// Ends what commands left running, and returns when it is gone.
    pub async fn close(&self) {
        self.held.over().cancel();
        self.held.gone().await;
    }

    async fn begin(&self, launch: &Launch) -> Result<Drive> {
        let begun = Instant::now();
        let job = Job::begin(&self.binary, launch).await?;
        let output = Capture::new(&launch.keep, Stream::Output);
        let error = match launch.streams {
            Streams::Merged => Capture::nothing(),
            Streams::Apart => Capture::new(&launch.keep, Stream::Error),
        };
        Ok(Drive::new(job, output, error, launch.streams, begun))
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.held.over().cancel();
    }
}

#[async_trait]
impl Executor for Local {
    async fn run(
        &self,
        launch: Launch,
        watch: &Watch<'_>,
        cancel: &CancellationToken,
    ) -> Result<Finished> {
        let drive = self.begin(&launch).await?;
        // Held, so that nobody asks by having gone.
        let (_stop, stop) = mpsc::unbounded_channel();
        let orders = Orders {
            limit: launch.limit,
            prompts: launch.prompts,
            watch,
            cancel,
            stop,
            held: self.held.clone(),
        };
        drive.follow(orders).await
    }

    async fn start(&self, launch: Launch) -> Result<Running> {
        let mut drive = self.begin(&launch).await?;
        let pid = drive.started().await?;
        let (output, error) = drive.logs();
        let pulse = watch::Sender::new(Pulse {
            bytes: 0,
            at: std::time::Instant::now(),
        });
        let finished = watch::Sender::new(None);
        let (stop, stopped) = mpsc::unbounded_channel();
        let held = self.held.part();
        let running = Running {
            pid,
            held: held.clone(),
            output,
            error,
            pulse: pulse.subscribe(),
            finished: finished.subscribe(),
            stop,
        };
        tokio::spawn(async move {
            let beat = |_: Stream, bytes: &[u8]| {
                pulse.send_modify(|pulse| {
                    pulse.bytes += bytes.len() as u64;
                    pulse.at = std::time::Instant::now();
                });
            };
            let orders = Orders {
                limit: launch.limit,
                prompts: launch.prompts,
                watch: &beat,
                cancel: held.over(),
                stop: stopped,
                held: held.clone(),
            };
            let ended = drive.follow(orders).await;
            finished.send_replace(Some(Arc::new(ended)));
        });
        Ok(running)
    }
}
