//! Files that changed in the work folder, to report what an interrupted call may have done.

use super::Runtime;
use crate::Access;
use haft_ops::executor::orphans_ended;
use haft_ops::glob::{self, Dots, Glob, Kinds, Matching};
use haft_ops::search::IgnoreFiles;
use std::time::{Duration, Instant, SystemTime};
use tokio_util::sync::CancellationToken;

/// Maximum time to search, and maximum number of files to check.
const TIME: Duration = Duration::from_secs(2);
const MOST: usize = 200_000;

/// Files that changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// The first changed files, as file tools name them.
    pub files: Vec<String>,
    /// Number of changed files.
    pub total: usize,
    /// Whether the search covered all files. Ignored files are never covered.
    pub is_complete: bool,
}

impl Runtime {
    /// Returns the files of the work folder that changed since `since`, and the names of at
    /// most `most` of them. Waits a moment first, because processes started by a killed
    /// process may still be writing.
    pub async fn changed_since(&self, since: SystemTime, most: usize) -> Changes {
        let have_ended = orphans_ended(TIME).await;
        let session = &self.session;
        let whole = match session.shared.toolset.paths {
            crate::Paths::Virtual => "/",
            _ => ".",
        };
        let Ok(root) = session
            .shared
            .toolset
            .paths
            .resolve(&session.scope, whole, Access::Read)
        else {
            return Changes::default();
        };
        let root = self.shown_from(root);
        let request = Glob {
            path: root.clone(),
            matching: Matching::Everything,
            dots: Dots::Match,
            kinds: Kinds::Files,
            ignored: IgnoreFiles::Honour,
            max: MOST,
            deadline: Some(Instant::now() + TIME),
            cancel: CancellationToken::new(),
        };
        let Ok(found) = glob::entries(&*session.backend, request, &|_| ()).await else {
            return Changes::default();
        };
        let below = found.entries.iter().map(|entry| entry.below.clone());
        let named: Vec<_> = below
            .filter_map(|below| Some((root.descendant(&below)?, below)))
            .collect();
        let paths = named.iter().map(|(path, _)| path.clone()).collect();
        let Ok(stats) = glob::stats(&*session.backend, paths).await else {
            return Changes::default();
        };
        let mut changes = Changes {
            is_complete: have_ended
                && found.stopped.is_none()
                && found.total == found.entries.len() as u64,
            ..Changes::default()
        };
        for ((_, below), stat) in named.iter().zip(stats) {
            let modified = stat.and_then(|stat| stat.modified);
            if modified.is_some_and(|modified| modified >= since) {
                changes.total += 1;
                if changes.files.len() < most {
                    let name = below.to_string_lossy();
                    changes.files.push(haft_ops::text::decode::visible(&name));
                }
            }
        }
        changes
    }
}
