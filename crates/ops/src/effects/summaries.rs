//! Short descriptions of sets, and which of them are undone.

use super::change::{SetState, SetSummary};
use super::compare;
use super::library::Head;
use super::recorder::End;
use super::session::Session;
use super::state::Time;
use super::undo;
use std::collections::HashMap;
use std::time::{Duration, SystemTime};

/// Undos in force: for every set, the paths that each of them took back. An
/// empty list of paths stands for all of the set.
pub(super) fn undone(heads: &[Head]) -> HashMap<u64, Vec<Vec<Box<[u8]>>>> {
    type Mark = (u64, Vec<Box<[u8]>>, bool);
    let mut marks: HashMap<u64, Vec<Mark>> = HashMap::new();
    let mut in_force: HashMap<u64, Vec<Vec<Box<[u8]>>>> = HashMap::new();
    for head in heads {
        let mut own: Vec<Mark> = Vec::new();
        for target in &head.header.undoes {
            own.push((target.number, target.paths.clone(), true));
            let flipped = marks.get(&target.number).into_iter().flatten();
            own.extend(flipped.map(|(number, paths, sets)| (*number, paths.clone(), !sets)));
        }
        for (number, paths, sets) in &own {
            let list = in_force.entry(*number).or_default();
            if *sets {
                list.push(paths.clone());
            } else if let Some(at) = list.iter().position(|known| known == paths) {
                list.remove(at);
            }
        }
        if !own.is_empty() {
            marks.insert(head.number, own);
        }
    }
    in_force
}

pub(super) fn summaries(session: &Session, heads: &[Head]) -> Vec<SetSummary> {
    let undone = undone(heads);
    let is_undone = |head: &Head| {
        let undone = undone.get(&head.number);
        undone.is_some_and(|undone| {
            undone.iter().any(Vec::is_empty) || undo::is_settled(session, head, undone)
        })
    };
    heads
        .iter()
        .map(|head| {
            let finished = head.finished.clone();
            let state = match &finished {
                None => SetState::Running,
                Some(_) if is_undone(head) => SetState::Undone,
                Some(finished) if finished.evicted => SetState::NoLongerKept,
                Some(finished) if finished.end == End::Interrupted => SetState::Interrupted,
                Some(_) => SetState::Done,
            };
            let (counts, why) =
                finished.map_or(([0; 5], None), |finished| (finished.counts, finished.why));
            SetSummary {
                session: session.id().to_owned(),
                number: head.number,
                call_id: head.header.call_id.clone(),
                tool: head.header.tool.clone(),
                time: system_time(head.header.time),
                state,
                counts: compare::counts(counts, why),
                group: head.header.group.clone(),
                undoes: head
                    .header
                    .undoes
                    .iter()
                    .map(|target| target.call_id.clone())
                    .collect(),
            }
        })
        .collect()
}

fn system_time(time: Time) -> SystemTime {
    let since = Duration::new(u64::try_from(time.seconds).unwrap_or_default(), time.nanos);
    SystemTime::UNIX_EPOCH
        .checked_add(since)
        .unwrap_or(SystemTime::UNIX_EPOCH)
}
