//! A plan and the strength of its enforcement, as sent to the supervisor.

use super::{Counting, Error, Level, Limits, Memory, Network, Plan, Result, Strength};

/// Confinement of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    /// Mechanisms that the machine provides.
    pub strength: Strength,
    /// Paths and hosts that the command may reach.
    pub plan: Plan,
}

/// The part of a confinement that is the same for every command of a session. It can be
/// applied before a command is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommonConfinement {
    /// Mechanisms that the machine provides.
    pub strength: Strength,
    /// Network access.
    pub network: Network,
    /// Limits on processes and memory.
    pub limits: Limits,
}

impl Confinement {
    /// Whether the command joins the network of its session.
    #[must_use]
    pub fn joins_network(&self) -> bool {
        self.common().joins_network()
    }

    /// Returns the part that can be applied in advance.
    #[must_use]
    pub fn common(&self) -> CommonConfinement {
        CommonConfinement {
            strength: self.strength,
            network: self.plan.network,
            limits: self.plan.limits,
        }
    }

    pub(in crate::executor) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.common().to_bytes().to_vec();
        bytes.extend(self.plan.to_bytes());
        bytes
    }

    pub(in crate::executor) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (common, plan) = bytes
            .split_first_chunk()
            .ok_or(Error::Malformed("cut short"))?;
        Ok(Self {
            strength: CommonConfinement::from_bytes(*common)?.strength,
            plan: Plan::from_bytes(plan)?,
        })
    }

    #[cfg(test)]
    pub(in crate::executor) fn sample() -> Self {
        Self {
            strength: Strength {
                level: Level::Full,
                landlock: 7,
            },
            plan: super::encode::tests::plan(),
        }
    }
}

impl CommonConfinement {
    pub(in crate::executor) fn joins_network(self) -> bool {
        self.network == Network::Session && self.strength.level == Level::Full
    }

    pub(in crate::executor) const BYTES: usize = 16;

    pub(in crate::executor) fn to_bytes(self) -> [u8; Self::BYTES] {
        let level = match self.strength.level {
            Level::Partial => 0,
            Level::Full => 1,
        };
        let network = match self.network {
            Network::Off => 0,
            Network::On => 1,
            Network::Session => 2,
        };
        let counting = match self.limits.counting {
            Counting::Always => 0,
            Counting::WhereFree => 1,
        };
        let memory = match self.limits.memory {
            Memory::Unlimited => 0,
            Memory::Bytes(bytes) => bytes.max(1),
        };
        let [a, b, c, d] = self.limits.processes.to_le_bytes();
        let [e, f, g, h, i, j, k, l] = memory.to_le_bytes();
        let landlock = self.strength.landlock;
        [
            level, landlock, network, counting, a, b, c, d, e, f, g, h, i, j, k, l,
        ]
    }

    pub(in crate::executor) fn from_bytes(bytes: [u8; Self::BYTES]) -> Result<Self> {
        let [level, landlock, network, counting, a, b, c, d, memory @ ..] = bytes;
        let unknown = Error::Malformed("unknown kind of confinement");
        let (level, network, counting) = match (level, network, counting) {
            (level @ 0..=1, network @ 0..=2, counting @ 0..=1) => (
                [Level::Partial, Level::Full][usize::from(level)],
                [Network::Off, Network::On, Network::Session][usize::from(network)],
                [Counting::Always, Counting::WhereFree][usize::from(counting)],
            ),
            _ => return Err(unknown),
        };
        Ok(Self {
            strength: Strength { level, landlock },
            network,
            limits: Limits {
                processes: u32::from_le_bytes([a, b, c, d]),
                counting,
                memory: match u64::from_le_bytes(memory) {
                    0 => Memory::Unlimited,
                    bytes => Memory::Bytes(bytes),
                },
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_part_survives_encoding() {
        let common = Confinement::sample().common();
        let bytes = common.to_bytes();
        assert_eq!(CommonConfinement::from_bytes(bytes).unwrap(), common);
        for at in [0, 2, 3] {
            let mut bad = bytes;
            bad[at] = 3;
            assert!(CommonConfinement::from_bytes(bad).is_err(), "{at}");
        }
    }
}
