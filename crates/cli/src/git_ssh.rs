//! git over ssh from sandboxed commands. ssh connects through haft's proxy; it gets the user's
//! agent and known hosts only if the user says so.

mod agent;
pub(crate) mod connect;

use crate::{confinement, env, output};
use haft::commands::{CommandLocation, Commands};
use haft_config::Settings;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Variable that replaces git's ssh command.
const COMMAND: &str = "GIT_SSH_COMMAND";

/// Variable that names the socket of the agent.
const SOCKET: &str = "SSH_AUTH_SOCK";

/// Adds to the commands what git needs for ssh.
pub(crate) fn prepare(settings: &Settings, commands: &mut Commands) {
    let has_agent = settings.commands.ssh_agent;
    let agent = env::read().variable(SOCKET);
    if confinement::is_off(settings) {
        if let (true, Some(agent)) = (has_agent, agent) {
            set(commands, SOCKET, agent.to_owned());
        }
        return;
    }
    // No configuration: the user's is hidden, and in a user namespace ssh rejects the files
    // that belong to root.
    let mut options = vec!["-F none".to_owned(), "-o BatchMode=yes".to_owned()];
    if has_agent && let Some(access) = agent::access(settings, agent) {
        let CommandLocation::Here { readable, .. } = &mut commands.place else {
            return;
        };
        readable.push(access.folder.clone());
        if let Some(socket) = &access.socket {
            set(commands, SOCKET, socket.clone().into_os_string());
        }
        match plain(&access.known_hosts) {
            Some(known) => options.push(format!("-o UserKnownHostsFile={known}")),
            None => output::note(
                "git over ssh finds no known hosts, because the path of the state folder contains unusual characters",
            ),
        }
    } else if commands.gateway.is_none() {
        return;
    }
    if commands.gateway.is_some() {
        let Some(program) = plain(&env::read().own_program()) else {
            return;
        };
        options.push(format!(
            "-o 'ProxyCommand={program} {} %h %p'",
            connect::WORD
        ));
    }
    if !commands.environment.iter().any(|(name, _)| name == COMMAND) {
        set(
            commands,
            COMMAND,
            format!("ssh {}", options.join(" ")).into(),
        );
    }
}

fn set(commands: &mut Commands, name: &str, value: OsString) {
    let environment = &mut commands.environment;
    environment.retain(|(known, _)| known != OsStr::new(name));
    environment.push((name.into(), value));
}

/// Returns a path for an option of ssh, which two shells and ssh itself read.
fn plain(path: &Path) -> Option<String> {
    let path = path.to_str()?;
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+%@:,".contains(c);
    path.chars().all(is_plain).then(|| path.replace('%', "%%"))
}
