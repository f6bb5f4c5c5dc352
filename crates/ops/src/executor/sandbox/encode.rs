//! Encodes a plan for the supervisor: length-prefixed, versioned, bounded. Anything that
//! does not decode exactly is refused.

use super::{Counting, Error, Limits, Memory, Network, Plan, Result, Scaffold};
use crate::scope::{Reading, Writing};
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Must change whenever the format changes.
const MAGIC: [u8; 8] = *b"haftbox6";

/// Large enough for the protected paths of several thousand repositories.
const MAX_BYTES: usize = 4 << 20;

/// The kernel's limit.
const MAX_PATH: usize = 4096;

impl Plan {
    /// Encodes the plan, prefixed with its length.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut body = MAGIC.to_vec();
        body.push(match self.reading {
            Reading::Anywhere => 0,
            Reading::NotSecret => 1,
            Reading::RootsAndSystem => 2,
            Reading::Roots => 3,
        });
        body.push(match self.writing {
            Writing::Anywhere => 0,
            Writing::Roots => 1,
            Writing::Nothing => 2,
        });
        body.push(match self.network {
            Network::Off => 0,
            Network::On => 1,
            Network::Session => 2,
        });
        body.push(match self.limits.counting {
            Counting::Always => 0,
            Counting::WhereFree => 1,
        });
        body.extend(self.limits.processes.to_le_bytes());
        let memory = match self.limits.memory {
            Memory::Unlimited => 0,
            Memory::Bytes(bytes) => bytes.max(1),
        };
        body.extend(memory.to_le_bytes());
        let temp = vec![self.temp.clone()];
        let scaffolds = self.scaffolds.iter();
        let scaffolds: Vec<PathBuf> = scaffolds
            .flat_map(|Scaffold { folder, points }| {
                let pair = |point| [folder.clone(), folder.join(point)];
                points.iter().flat_map(pair)
            })
            .collect();
        for list in [
            &self.roots,
            &self.readable,
            &self.own,
            &self.layers,
            &scaffolds,
            &self.inert,
            &temp,
            &self.protected,
            &self.pinned,
            &self.hidden,
            &self.denied,
            &self.sockets,
        ] {
            body.extend(length(list.len()));
            for path in list {
                let path = path.as_os_str().as_bytes();
                body.extend(length(path.len()));
                body.extend_from_slice(path);
            }
        }
        for (device, inode) in &self.identities {
            body.extend(device.to_le_bytes());
            body.extend(inode.to_le_bytes());
        }
        let mut bytes = length(body.len()).to_vec();
        bytes.append(&mut body);
        bytes
    }

    /// Decodes the output of [`Plan::to_bytes`].
    ///
    /// # Errors
    /// Anything else, including trailing bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut rest = bytes;
        let plan = Self::read(&mut rest)?;
        if rest.is_empty() {
            Ok(plan)
        } else {
            Err(Error::Malformed("more bytes than a plan has"))
        }
    }

    /// Reads exactly one plan, so that the same pipe can then signal that the parent is
    /// alive.
    ///
    /// # Errors
    /// Not a valid plan.
    pub fn read(from: &mut impl Read) -> Result<Self> {
        let mut size = [0; 4];
        let cut_short = |_| Error::Malformed("cut short");
        from.read_exact(&mut size).map_err(cut_short)?;
        let size = usize::try_from(u32::from_le_bytes(size))
            .ok()
            .filter(|size| *size <= MAX_BYTES)
            .ok_or(Error::Malformed("too large"))?;
        let mut body = vec![0; size];
        from.read_exact(&mut body).map_err(cut_short)?;
        decode(Cursor(&body))
    }
}

/// A longer list would be refused by the receiver.
fn length(count: usize) -> [u8; 4] {
    u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes()
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or(Error::Malformed("cut short"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        <[u8; N]>::try_from(self.take(N)?).map_err(|_| Error::Malformed("cut short"))
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    fn count(&mut self) -> Result<usize> {
        usize::try_from(u32::from_le_bytes(self.array()?))
            .map_err(|_| Error::Malformed("too large"))
    }

    fn paths(&mut self) -> Result<Vec<PathBuf>> {
        let count = self.count()?;
        let mut paths = Vec::new();
        for _ in 0..count {
            let size = self.count()?;
            if size > MAX_PATH {
                return Err(Error::Malformed("a path is too long"));
            }
            let path = self.take(size)?;
            if path.first() != Some(&b'/') || path.contains(&0) {
                return Err(Error::Malformed("a path is not absolute"));
            }
            paths.push(PathBuf::from(OsString::from_vec(path.to_vec())));
        }
        Ok(paths)
    }
}

fn decode(mut cursor: Cursor<'_>) -> Result<Plan> {
    if cursor.array()? != MAGIC {
        return Err(Error::Malformed("made by another version"));
    }
    let reading = match cursor.byte()? {
        1 => Reading::NotSecret,
        2 => Reading::RootsAndSystem,
        3 => Reading::Roots,
        _ => return Err(Error::Malformed("unknown rule for reading")),
    };
    let writing = match cursor.byte()? {
        1 => Writing::Roots,
        2 => Writing::Nothing,
        _ => return Err(Error::Malformed("unknown rule for writing")),
    };
    let network = match cursor.byte()? {
        0 => Network::Off,
        1 => Network::On,
        2 => Network::Session,
        _ => return Err(Error::Malformed("unknown network policy")),
    };
    let counting = match cursor.byte()? {
        0 => Counting::Always,
        1 => Counting::WhereFree,
        _ => return Err(Error::Malformed("unknown way of counting")),
    };
    let processes = u32::from_le_bytes(cursor.array()?);
    let memory = match u64::from_le_bytes(cursor.array()?) {
        0 => Memory::Unlimited,
        bytes => Memory::Bytes(bytes),
    };
    let roots = cursor.paths()?;
    if roots.is_empty() {
        return Err(Error::Malformed("no work folder"));
    }
    let readable = cursor.paths()?;
    let own = cursor.paths()?;
    let layers = cursor.paths()?;
    let scaffolds = scaffolds(&cursor.paths()?)?;
    let inert = cursor.paths()?;
    let temp = match <[PathBuf; 1]>::try_from(cursor.paths()?) {
        Ok([temp]) => temp,
        Err(_) => return Err(Error::Malformed("not one temp folder")),
    };
    let mut plan = Plan {
        reading,
        writing,
        roots,
        identities: Vec::new(),
        readable,
        own,
        layers,
        scaffolds,
        inert,
        temp,
        protected: cursor.paths()?,
        // Not needed by the confined process.
        watched: Vec::new(),
        configs: Vec::new(),
        pinned: cursor.paths()?,
        hidden: cursor.paths()?,
        denied: cursor.paths()?,
        sockets: cursor.paths()?,
        network,
        limits: Limits {
            processes,
            counting,
            memory,
        },
    };
    for _ in &plan.roots {
        let device = u64::from_le_bytes(cursor.array()?);
        let inode = u64::from_le_bytes(cursor.array()?);
        plan.identities.push((device, inode));
    }
    if cursor.0.is_empty() {
        Ok(plan)
    } else {
        Err(Error::Malformed("more bytes than a plan has"))
    }
}

/// Reads pairs of a folder and a missing folder below it.
fn scaffolds(paths: &[PathBuf]) -> Result<Vec<Scaffold>> {
    let mut scaffolds: Vec<Scaffold> = Vec::new();
    for pair in paths.chunks(2) {
        let [folder, point] = pair else {
            return Err(Error::Malformed("half a scaffold"));
        };
        let point = point.strip_prefix(folder);
        let point = point.map_err(|_| Error::Malformed("a scaffold elsewhere"))?;
        match scaffolds.iter_mut().find(|known| known.folder == *folder) {
            Some(known) => known.points.push(point.to_owned()),
            None => scaffolds.push(Scaffold {
                folder: folder.clone(),
                points: vec![point.to_owned()],
            }),
        }
    }
    Ok(scaffolds)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn plan() -> Plan {
        Plan {
            reading: Reading::NotSecret,
            writing: Writing::Roots,
            roots: vec!["/work".into(), "/more".into()],
            identities: vec![(1, 2), (3, u64::MAX)],
            readable: vec!["/out".into()],
            own: vec!["/state/caches/one".into()],
            layers: vec!["/home/.cache".into()],
            scaffolds: vec![Scaffold {
                folder: "/home".into(),
                points: vec![".npm".into(), "go/pkg".into()],
            }],
            inert: vec!["/work".into(), "/more".into()],
            temp: "/private".into(),
            protected: vec!["/work/.git/hooks".into()],
            watched: Vec::new(),
            configs: Vec::new(),
            pinned: vec!["/work/.husky".into()],
            hidden: vec![PathBuf::from(OsString::from_vec(b"/h\xff\n".to_vec()))],
            denied: vec!["/project/secrets".into()],
            sockets: vec!["/run".into()],
            network: Network::Off,
            limits: Limits {
                processes: 100,
                counting: Counting::Always,
                memory: Memory::Bytes(1 << 40),
            },
        }
    }

    #[test]
    fn a_plan_survives_encoding() {
        let plan = plan();
        assert_eq!(Plan::from_bytes(&plan.to_bytes()).unwrap(), plan);
    }

    #[test]
    fn every_cut_is_refused_and_so_is_a_byte_too_many() {
        let bytes = plan().to_bytes();
        for end in 0..bytes.len() {
            assert!(Plan::from_bytes(&bytes[..end]).is_err(), "{end}");
        }
        let mut longer = bytes;
        longer.push(0);
        assert!(Plan::from_bytes(&longer).is_err());
    }

    #[test]
    fn unknown_choices_are_refused() {
        let bytes = plan().to_bytes();
        // Version, reading, writing, network; then the length itself.
        for (at, value) in [
            (11, b'9'),
            (12, 0),
            (12, 9),
            (13, 0),
            (13, 7),
            (14, 3),
            (15, 2),
            (3, 255),
        ] {
            let mut bad = bytes.clone();
            bad[at] = value;
            assert!(Plan::from_bytes(&bad).is_err(), "{at}={value}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_fall_over(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            let _ = Plan::from_bytes(&bytes);
        }

        #[test]
        fn a_changed_byte_is_refused_or_gives_a_confining_plan(at in 0usize..160, value: u8) {
            let mut bytes = plan().to_bytes();
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
            if let Ok(plan) = Plan::from_bytes(&bytes) {
                proptest::prop_assert!(plan.reading != Reading::Anywhere);
                proptest::prop_assert!(plan.writing != Writing::Anywhere);
            }
        }
    }
}
