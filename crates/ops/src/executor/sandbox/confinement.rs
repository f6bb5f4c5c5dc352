//! A plan and how much of it the machine can do: what goes with an order.

use super::{Error, Level, Plan, Result, Strength};

/// What confines one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    /// How it is enforced.
    pub strength: Strength,
    /// What the command may reach.
    pub plan: Plan,
}

impl Confinement {
    pub(in crate::executor) fn to_bytes(&self) -> Vec<u8> {
        let level = match self.strength.level {
            Level::Partial => 0,
            Level::Full => 1,
        };
        let mut bytes = vec![level, self.strength.landlock];
        bytes.extend(self.plan.to_bytes());
        bytes
    }

    pub(in crate::executor) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let ([level, landlock], plan) = bytes
            .split_first_chunk::<2>()
            .ok_or(Error::Malformed("cut short"))?;
        let level = match level {
            0 => Level::Partial,
            1 => Level::Full,
            _ => return Err(Error::Malformed("unknown level")),
        };
        Ok(Self {
            strength: Strength {
                level,
                landlock: *landlock,
            },
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
