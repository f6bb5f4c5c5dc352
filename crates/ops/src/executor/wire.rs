//! The protocol between haft and a supervisor: short frames over a socket, each a length
//! followed by fields. Both ends are the same binary, so there is no version number.

use super::sandbox::{CommonConfinement, Confinement};
use super::{Exit, Refusal, Streams};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Maximum length of a frame; systems accept a few MiB of arguments at most.
const MAX_FRAME: usize = 64 << 20;

/// Encodes the first message to a supervisor: the confinement it can apply before it knows
/// the command, and the number of cache layers whose namespaces follow.
pub(super) fn prelude(common: Option<CommonConfinement>, layers: u8) -> Vec<u8> {
    let mut frame = Frame::new();
    if let Some(common) = common {
        frame.0.extend(common.to_bytes());
        frame.byte(layers);
    }
    frame.finish()
}

/// Decodes a prelude.
pub(super) fn parse_prelude(body: &[u8]) -> Option<Option<(CommonConfinement, u8)>> {
    match body {
        [] => Some(None),
        [common @ .., layers] => {
            let common = CommonConfinement::from_bytes(common.try_into().ok()?).ok()?;
            Some(Some((common, *layers)))
        }
    }
}

/// Order to a supervisor to run a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) streams: Streams,
    pub(super) argv: Vec<OsString>,
    pub(super) dir: PathBuf,
    pub(super) environment: Vec<(OsString, OsString)>,
    /// Whether a descriptor for standard input follows.
    pub(super) reads: bool,
    pub(super) confinement: Option<Confinement>,
    /// The calls that a filter notifies. A socket for its listener follows.
    pub(super) notified: Option<Notified>,
}

/// System calls of a command that haft hears of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notified {
    /// Those that change files, to record them.
    Changes,
    /// Those with which git changes a configuration.
    GitConfigs,
}

/// Report of a supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Report {
    /// The command was started with this process id.
    Started(u32),
    /// The command could not be started.
    Failed(Refusal, String),
    /// Its own process has ended.
    Exited(Exit, Left),
    /// The whole tree has ended.
    Gone(Exit),
}

/// Whether a command left processes behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// No; the supervisor is about to exit.
    Nothing,
    /// Yes; the supervisor keeps them.
    Some,
}

const REFUSALS: [Refusal; 9] = [
    Refusal::Missing,
    Refusal::NotExecutable,
    Refusal::TooLong,
    Refusal::NoDirectory,
    Refusal::Unconfined,
    Refusal::Busy,
    Refusal::Written,
    Refusal::NoSupervisor,
    Refusal::Other,
];

impl Order {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut frame = Frame::new();
        frame.byte(u8::from(self.streams == Streams::Merged));
        frame.bytes(self.dir.as_os_str().as_bytes());
        frame.number(count(self.argv.len()));
        for word in &self.argv {
            frame.bytes(word.as_bytes());
        }
        frame.number(count(self.environment.len()));
        for (name, value) in &self.environment {
            frame.bytes(name.as_bytes());
            frame.bytes(value.as_bytes());
        }
        frame.byte(u8::from(self.reads));
        match &self.confinement {
            None => frame.byte(0),
            Some(confinement) => {
                frame.byte(1);
                frame.bytes(&confinement.to_bytes());
            }
        }
        frame.byte(match self.notified {
            None => 0,
            Some(Notified::Changes) => 1,
            Some(Notified::GitConfigs) => 2,
        });
        frame.finish()
    }

    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let mut fields = Fields(body);
        let streams = match fields.byte()? {
            0 => Streams::Separate,
            _ => Streams::Merged,
        };
        let dir = PathBuf::from(fields.text()?);
        let argv = (0..fields.number()?)
            .map(|_| fields.text())
            .collect::<Option<_>>()?;
        let environment = (0..fields.number()?)
            .map(|_| Some((fields.text()?, fields.text()?)))
            .collect::<Option<_>>()?;
        let reads = fields.byte()? != 0;
        let confinement = match fields.byte()? {
            0 => None,
            _ => Some(Confinement::from_bytes(fields.bytes()?).ok()?),
        };
        let notified = match fields.byte()? {
            0 => None,
            1 => Some(Notified::Changes),
            2 => Some(Notified::GitConfigs),
            _ => return None,
        };
        Some(Self {
            streams,
            argv,
            dir,
            environment,
            reads,
            confinement,
            notified,
        })
    }

    /// Returns a variable of the command's environment.
    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.environment.iter().rev().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_os_str())
    }
}

impl Report {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut frame = Frame::new();
        match self {
            Self::Started(pid) => {
                frame.byte(b'S');
                frame.number(*pid);
            }
            Self::Failed(refusal, detail) => {
                frame.byte(b'F');
                let place = REFUSALS.iter().position(|known| known == refusal);
                frame.number(count(place.unwrap_or(REFUSALS.len())));
                frame.bytes(detail.as_bytes());
            }
            Self::Exited(exit, left) => {
                frame.byte(b'X');
                frame.exit(*exit);
                frame.byte(u8::from(*left == Left::Some));
            }
            Self::Gone(exit) => {
                frame.byte(b'G');
                frame.exit(*exit);
            }
        }
        frame.finish()
    }

    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let mut fields = Fields(body);
        Some(match fields.byte()? {
            b'S' => Self::Started(fields.number()?),
            b'F' => {
                let place = usize::try_from(fields.number()?).ok()?;
                let refusal = REFUSALS.get(place).copied().unwrap_or(Refusal::Other);
                let detail = String::from_utf8_lossy(fields.bytes()?).into_owned();
                Self::Failed(refusal, detail)
            }
            b'X' => {
                let exit = fields.exit()?;
                let left = match fields.byte()? {
                    0 => Left::Nothing,
                    _ => Left::Some,
                };
                Self::Exited(exit, left)
            }
            b'G' => Self::Gone(fields.exit()?),
            _ => return None,
        })
    }
}

/// Removes the first complete frame from the received bytes.
pub(super) fn take(arrived: &mut Vec<u8>) -> Option<Vec<u8>> {
    let (length, _) = arrived.split_first_chunk::<4>()?;
    let end = 4 + usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let body = arrived.get(4..end)?.to_vec();
    arrived.drain(..end);
    Some(body)
}

/// Waits for one frame.
pub(super) fn read(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > MAX_FRAME {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(body)
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

struct Frame(Vec<u8>);

impl Frame {
    fn new() -> Self {
        Self(vec![0; 4])
    }

    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn number(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(count(bytes.len()));
        self.0.extend(bytes);
    }

    fn exit(&mut self, exit: Exit) {
        let (kind, value) = match exit {
            Exit::Code(code) => (0, code),
            Exit::Signal(signal) => (1, signal),
            Exit::Unknown => (2, 0),
        };
        self.byte(kind);
        self.0.extend(value.to_le_bytes());
    }

    fn finish(mut self) -> Vec<u8> {
        let length = count(self.0.len() - 4).to_le_bytes();
        for (slot, byte) in self.0.iter_mut().zip(length) {
            *slot = byte;
        }
        self.0
    }
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u32> {
        let (first, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*first))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (first, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(first)
    }

    fn text(&mut self) -> Option<OsString> {
        Some(OsString::from_vec(self.bytes()?.to_vec()))
    }

    fn exit(&mut self) -> Option<Exit> {
        let kind = self.byte()?;
        let value = i32::from_le_bytes(self.number()?.to_le_bytes());
        Some(match kind {
            0 => Exit::Code(value),
            1 => Exit::Signal(value),
            _ => Exit::Unknown,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        Order {
            streams: Streams::Merged,
            argv: vec!["bash".into(), "-c".into(), OsString::from_vec(vec![0xff])],
            dir: "/some/where".into(),
            environment: vec![("A".into(), "1".into()), ("A".into(), "".into())],
            reads: true,
            confinement: Some(Confinement::sample()),
            notified: Some(Notified::GitConfigs),
        }
    }

    #[test]
    fn an_order_survives_encoding() {
        let bytes = order().to_bytes();
        let body = read(&mut bytes.as_slice()).unwrap();
        assert_eq!(Order::parse(&body), Some(order()));
        assert_eq!(order().variable("A"), Some(OsStr::new("")));
        for cut in 0..body.len() {
            assert_eq!(Order::parse(&body[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn reports_arrive_one_by_one_however_they_are_split() {
        let reports = [
            Report::Started(77),
            Report::Failed(Refusal::TooLong, "why".into()),
            Report::Exited(Exit::Code(-1), Left::Some),
            Report::Gone(Exit::Signal(9)),
        ];
        let all: Vec<u8> = reports.iter().flat_map(Report::to_bytes).collect();
        let (mut arrived, mut seen) = (Vec::new(), Vec::new());
        for byte in all {
            arrived.push(byte);
            while let Some(body) = take(&mut arrived) {
                seen.push(Report::parse(&body).unwrap());
            }
        }
        assert_eq!(seen, reports);
    }
}
