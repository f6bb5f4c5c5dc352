//! Selecting the tools that a session offers.

use super::{Listed, channels};
use crate::registry::{Duplicate, ToolOrigin};
use crate::toolset::Paths;
use crate::{AnyTool, Effect, Tools, Toolset};
use std::sync::Arc;

/// The facts that decide whether a tool is offered.
pub(super) struct Choice<'a> {
    pub(super) toolset: &'a Toolset,
    /// Names in the preset; `None` for every tool.
    pub(super) listed: Option<&'a [&'a str]>,
    /// Whether commands can be run.
    pub(super) runs: bool,
    /// Channels that messages can be sent to.
    pub(super) channels: &'a [String],
}

impl Choice<'_> {
    /// Returns the tools that are offered, and those that only a sub-agent may be granted.
    /// `brought` are tools of the toolset that are defined in other crates.
    pub(super) fn tools(
        &self,
        brought: Vec<(Arc<dyn AnyTool>, Listed)>,
    ) -> Result<(Tools, Tools), Duplicate> {
        let (tools, reserve) = (Tools::default(), Tools::default());
        for tool in &self.toolset.tools {
            let name = tool.definition().name.as_str();
            let is_offered = self.listed.is_none() || self.lists(name) && self.works(&**tool);
            let tool = channels::named(tool, self.channels);
            if is_offered {
                tools.insert(tool, ToolOrigin::Toolset)?;
                continue;
            }
            // With virtual paths, the host may run code in another way on purpose.
            let is_missed = self.toolset.paths != Paths::Virtual && !tool.sends_messages();
            if is_missed && self.lists(name) {
                tools.leave_out(name);
            }
            if self.runs || tool.effect() != Effect::Execute {
                reserve.insert(tool, ToolOrigin::Toolset)?;
            }
        }
        for (tool, offered) in brought {
            let is_listed = self.listed.is_none() || self.lists(&tool.definition().name);
            match offered == Listed::Always || is_listed {
                true => tools.insert(tool, ToolOrigin::Toolset)?,
                false => reserve.insert(tool, ToolOrigin::Toolset)?,
            }
        }
        Ok((tools, reserve))
    }

    fn lists(&self, name: &str) -> bool {
        self.listed.is_some_and(|listed| listed.contains(&name))
    }

    /// Whether a tool can do anything but fail in this session.
    fn works(&self, tool: &dyn AnyTool) -> bool {
        (self.runs || tool.effect() != Effect::Execute)
            && (!self.channels.is_empty() || !tool.sends_messages())
    }
}
