//! Metadata of many files at once. On disk they are read in one batch, because passing each
//! file to another thread takes longer than reading its metadata.

use crate::backend::{Stat, local};
use crate::blocking::{self, Weight};
use crate::{Backend, FilePath, Result};

/// Returns the metadata of each path, in order; `None` for files that no longer exist.
///
/// # Errors
/// If the work was cancelled.
pub async fn stats(backend: &dyn Backend, paths: Vec<FilePath>) -> Result<Vec<Option<Stat>>> {
    let mut stats = vec![None; paths.len()];
    let mut on_disk = Vec::new();
    for (slot, path) in paths.into_iter().enumerate() {
        if backend.on_disk(&path).is_some() {
            on_disk.push((slot, path));
        } else if let (Some(place), Ok(stat)) = (stats.get_mut(slot), backend.stat(&path).await) {
            *place = Some(stat);
        }
    }
    if on_disk.is_empty() {
        return Ok(stats);
    }
    blocking::run(Weight::Heavy, move || {
        for (slot, path) in on_disk {
            if let (Some(place), Ok(stat)) = (stats.get_mut(slot), local::stat(&path)) {
                *place = Some(stat);
            }
        }
        Ok(stats)
    })
    .await
}
