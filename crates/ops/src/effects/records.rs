//! Reading the records of a set.

use super::codec::Decoder;
use super::record::{Finished, Header, Order, Record};

/// Iterates over the records of a file; ends at the first that is cut or damaged.
pub(super) struct Records<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> Records<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            length: 0,
        }
    }

    /// Number of bytes of the records read so far.
    pub(super) fn length(&self) -> usize {
        self.length
    }
}

impl Iterator for Records<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        let (length, rest) = self.rest.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length) as usize;
        if length == 0 {
            return None;
        }
        let (payload, rest) = rest.split_at_checked(length)?;
        let record = Record::decode(Decoder(payload))?;
        self.rest = rest;
        self.length += 4 + length;
        Some(record)
    }
}

/// A set as it was read.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) number: u64,
    pub(super) header: Option<Header>,
    pub(super) records: Vec<Record>,
    /// Reason why something is missing.
    pub(super) why: Option<String>,
    pub(super) finished: Option<Finished>,
}

impl Loaded {
    pub(super) fn new(number: u64, records: impl Iterator<Item = Record>) -> Self {
        let mut set = Self {
            number,
            ..Self::default()
        };
        for record in records {
            match record {
                Record::Header(header) => set.header = Some(header),
                Record::Finished(finished) => set.finished = Some(finished),
                Record::Incomplete(why) => {
                    set.why.get_or_insert(why);
                }
                Record::Trailer => {}
                record => set.records.push(record),
            }
        }
        set
    }
}

/// Records of several sets in the order in which they were written, each part with the position
/// of its set. Calls may overlap.
pub(super) fn in_order(sets: &[Loaded]) -> Vec<(usize, &Loaded, &[Record])> {
    let mut parts = Vec::new();
    for (at, set) in sets.iter().enumerate() {
        let mut order = Order {
            process: set.number,
            change: 0,
        };
        for part in set
            .records
            .chunk_by(|_, next| !matches!(next, Record::At(_)))
        {
            if let Some(Record::At(place)) = part.first() {
                order = *place;
            }
            parts.push((order, at, set, part));
        }
    }
    parts.sort_by_key(|(order, at, ..)| (*order, *at));
    let parts = parts.into_iter();
    parts.map(|(_, at, set, part)| (at, set, part)).collect()
}
