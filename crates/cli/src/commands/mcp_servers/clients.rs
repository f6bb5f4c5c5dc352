//! Other agents: the files with their MCP servers, and how they write one down.

/// An agent.
pub(super) struct Client {
    pub(super) name: &'static str,
    /// Its settings, below the home folder. Servers are added to the first that exists.
    pub(super) files: &'static [&'static str],
    pub(super) form: Form,
}

/// Form in which an agent writes a server down.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// JSON with the servers in this object; some agents want further keys.
    Json {
        servers: &'static str,
        more: &'static [(&'static str, &'static str)],
    },
    /// JSON in which `command` is a list.
    List,
    Toml,
}

const PLAIN: Form = Form::Json {
    servers: "mcpServers",
    more: &[],
};

const CLIENTS: [Client; 9] = [
    Client {
        name: "claude",
        files: &[".claude.json", ".claude/settings.json"],
        form: Form::Json {
            servers: "mcpServers",
            more: &[("type", "stdio")],
        },
    },
    Client {
        name: "codex",
        files: &[".codex/config.toml"],
        form: Form::Toml,
    },
    Client {
        name: "gemini",
        files: &[".gemini/settings.json"],
        form: PLAIN,
    },
    Client {
        name: "qwen",
        files: &[".qwen/settings.json"],
        form: PLAIN,
    },
    Client {
        name: "opencode",
        files: &[
            ".config/opencode/opencode.json",
            ".config/opencode/opencode.jsonc",
        ],
        form: Form::List,
    },
    Client {
        name: "cursor",
        files: &[".cursor/mcp.json"],
        form: PLAIN,
    },
    Client {
        name: "vscode",
        files: &[".config/Code/User/mcp.json"],
        form: Form::Json {
            servers: "servers",
            more: &[("type", "stdio")],
        },
    },
    Client {
        name: "cline",
        files: &[
            ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        ],
        form: PLAIN,
    },
    Client {
        name: "zed",
        files: &[".config/zed/settings.json"],
        form: Form::Json {
            servers: "context_servers",
            more: &[],
        },
    },
];

/// Returns the names of the agents.
pub(crate) fn names() -> [&'static str; CLIENTS.len()] {
    CLIENTS.map(|client| client.name)
}

/// Returns the agent with this name.
pub(super) fn named(name: &str) -> Option<Client> {
    CLIENTS.into_iter().find(|client| client.name == name)
}
