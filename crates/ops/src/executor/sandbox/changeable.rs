//! Git configurations that a command may change although they are protected.

use super::known_paths;
use super::plan::{Plan, Request};
use std::collections::HashSet;
use std::path::PathBuf;

/// Returns those of the configurations that are protected for no other reason than being ones.
pub(super) fn configs(plan: &Plan, all: Vec<PathBuf>, request: &Request) -> Vec<PathBuf> {
    let listed = request.protect.iter();
    let listed = listed.map(|entry| known_paths::real(&plan.work_dir().join(entry)));
    let listed: HashSet<PathBuf> = listed.collect();
    let closed: HashSet<&PathBuf> = [&plan.hidden, &plan.denied]
        .into_iter()
        .flatten()
        .chain(&listed)
        .collect();
    let protected: HashSet<&PathBuf> = plan.protected.iter().collect();
    let mut all = all;
    all.retain(|config| {
        let mut above = config.ancestors().skip(1).map(PathBuf::from);
        protected.contains(config)
            && above.clone().any(|folder| plan.roots.contains(&folder))
            && !above.any(|folder| protected.contains(&folder))
            && !config
                .ancestors()
                .any(|path| closed.contains(&path.to_owned()))
    });
    all
}
