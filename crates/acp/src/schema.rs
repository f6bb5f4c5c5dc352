//! The only place that knows the types of the protocol library: reads what clients send and
//! writes what they expect, in version 1.

mod questions;
mod updates;

pub(crate) use questions::{Answer, AnswerKind, FormAnswer, answered, ask, form, form_answered};
pub(crate) use updates::{commands, current_mode, settings, update};

use crate::port::{Listed, Mode, ProgramInfo, Server};
use crate::prompt::Part;
use crate::rpc::RpcError;
use agent_client_protocol_schema::v1;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::PathBuf;

/// Version of the protocol that haft speaks.
pub(crate) const VERSION: u16 = 1;

/// Names of the methods that haft answers.
pub(crate) mod method {
    pub(crate) const INITIALIZE: &str = "initialize";
    pub(crate) const AUTHENTICATE: &str = "authenticate";
    pub(crate) const LOGOUT: &str = "logout";
    pub(crate) const NEW: &str = "session/new";
    pub(crate) const LOAD: &str = "session/load";
    pub(crate) const RESUME: &str = "session/resume";
    pub(crate) const FORK: &str = "session/fork";
    pub(crate) const LIST: &str = "session/list";
    pub(crate) const CLOSE: &str = "session/close";
    pub(crate) const DELETE: &str = "session/delete";
    pub(crate) const PROMPT: &str = "session/prompt";
    pub(crate) const CANCEL: &str = "session/cancel";
    pub(crate) const SET_MODE: &str = "session/set_mode";
    pub(crate) const SET_OPTION: &str = "session/set_config_option";
    pub(crate) const CANCEL_REQUEST: &str = "$/cancel_request";
    pub(crate) const UPDATE: &str = "session/update";
    pub(crate) const ASK: &str = "session/request_permission";
    pub(crate) const ELICIT: &str = "elicitation/create";
}

/// Id of the way to authenticate that haft names.
const AUTH_METHOD: &str = "api-key";

/// What a client told about itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClientFeatures {
    /// Whether it shows forms.
    pub(crate) forms: bool,
}

/// Folder, further folders and MCP servers of a session.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) servers: Vec<Server>,
}

/// A value of a setting that the user chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) session: String,
    pub(crate) option: String,
    pub(crate) value: String,
}

/// A setting that the user can change.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) is_model: bool,
    pub(crate) options: crate::port::Options,
}

/// State that comes with an opened session.
pub(crate) struct SessionState {
    pub(crate) mode: Mode,
    pub(crate) settings: Vec<Setting>,
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    serde_json::from_value(params)
        .map_err(|error| RpcError::invalid(format!("invalid params: {error}")))
}

fn write(value: impl Serialize) -> Result<Value, RpcError> {
    serde_json::to_value(value)
        .map_err(|error| RpcError::new(crate::rpc::code::INTERNAL, error.to_string()))
}

/// Answers `initialize`.
pub(crate) fn initialize(
    params: Value,
    program: &ProgramInfo,
) -> Result<(Value, ClientFeatures), RpcError> {
    let request: v1::InitializeRequest = read(params)?;
    let elicitation = request.client_capabilities.elicitation.as_ref();
    let features = ClientFeatures {
        forms: elicitation.is_some_and(|elicitation| elicitation.form.is_some()),
    };
    let sessions = v1::SessionCapabilities::new()
        .list(v1::SessionListCapabilities::new())
        .delete(v1::SessionDeleteCapabilities::new())
        .additional_directories(v1::SessionAdditionalDirectoriesCapabilities::new())
        .fork(v1::SessionForkCapabilities::new())
        .resume(v1::SessionResumeCapabilities::new())
        .close(v1::SessionCloseCapabilities::new());
    let capabilities = v1::AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(
            v1::PromptCapabilities::new()
                .image(true)
                .embedded_context(true),
        )
        .mcp_capabilities(v1::McpCapabilities::new().http(true).sse(true))
        .session_capabilities(sessions);
    let key = v1::AuthMethodAgent::new(AUTH_METHOD, "API key or local model").description(
        "Set ANTHROPIC_API_KEY (or OPENAI_API_KEY, GEMINI_API_KEY) where the editor starts \
         haft, or set provider and model in haft.yaml",
    );
    let info = v1::Implementation::new(program.name.as_str(), program.version.as_str());
    let response = v1::InitializeResponse::new(VERSION.into())
        .agent_capabilities(capabilities)
        .auth_methods(vec![v1::AuthMethod::Agent(key)])
        .agent_info(info.title("haft"));
    Ok((write(response)?, features))
}

/// Reads `authenticate`.
pub(crate) fn authenticate(params: Value) -> Result<(), RpcError> {
    let request: v1::AuthenticateRequest = read(params)?;
    match &*request.method_id.0 {
        AUTH_METHOD => Ok(()),
        other => Err(RpcError::invalid(format!(
            "unknown method {other}; haft offers {AUTH_METHOD}"
        ))),
    }
}

fn place(
    folder: PathBuf,
    roots: Vec<PathBuf>,
    servers: Vec<v1::McpServer>,
) -> Result<Place, RpcError> {
    for path in std::iter::once(&folder).chain(&roots) {
        if !path.is_absolute() {
            let path = path.display();
            return Err(RpcError::invalid(format!("not an absolute path: {path}")));
        }
    }
    let servers = servers.into_iter().map(server).collect::<Result<_, _>>()?;
    Ok(Place {
        folder,
        roots,
        servers,
    })
}

fn server(server: v1::McpServer) -> Result<Server, RpcError> {
    let headers = |headers: Vec<v1::HttpHeader>| {
        let all = headers.into_iter();
        all.map(|header| (header.name, header.value)).collect()
    };
    match server {
        v1::McpServer::Stdio(server) => Ok(Server::Program {
            name: server.name,
            command: server.command,
            arguments: server.args,
            environment: server
                .env
                .into_iter()
                .map(|variable| (variable.name, variable.value))
                .collect(),
        }),
        v1::McpServer::Http(server) => Ok(Server::Address {
            name: server.name,
            url: server.url,
            headers: headers(server.headers),
            is_sse: false,
        }),
        v1::McpServer::Sse(server) => Ok(Server::Address {
            name: server.name,
            url: server.url,
            headers: headers(server.headers),
            is_sse: true,
        }),
        _ => Err(RpcError::invalid("unknown kind of MCP server")),
    }
}

/// Reads `session/new`.
pub(crate) fn new_session(params: Value) -> Result<Place, RpcError> {
    let request: v1::NewSessionRequest = read(params)?;
    place(
        request.cwd,
        request.additional_directories,
        request.mcp_servers,
    )
}

/// Reads `session/load`.
pub(crate) fn load_session(params: Value) -> Result<(String, Place), RpcError> {
    let request: v1::LoadSessionRequest = read(params)?;
    let place = place(
        request.cwd,
        request.additional_directories,
        request.mcp_servers,
    )?;
    Ok((request.session_id.to_string(), place))
}

/// Reads `session/resume`.
pub(crate) fn resume_session(params: Value) -> Result<(String, Place), RpcError> {
    let request: v1::ResumeSessionRequest = read(params)?;
    let place = place(
        request.cwd,
        request.additional_directories,
        request.mcp_servers,
    )?;
    Ok((request.session_id.to_string(), place))
}

/// Reads `session/fork`.
pub(crate) fn fork_session(params: Value) -> Result<(String, Place), RpcError> {
    let request: v1::ForkSessionRequest = read(params)?;
    let place = place(
        request.cwd,
        request.additional_directories,
        request.mcp_servers,
    )?;
    Ok((request.session_id.to_string(), place))
}

/// Reads `session/close` and `session/delete`.
pub(crate) fn session_of(params: Value) -> Result<String, RpcError> {
    let request: v1::CloseSessionRequest = read(params)?;
    Ok(request.session_id.to_string())
}

/// Reads `session/cancel`.
pub(crate) fn cancelled(params: Value) -> Option<String> {
    let request: v1::CancelNotification = read(params).ok()?;
    Some(request.session_id.to_string())
}

/// Reads `session/list`: the folder, and the cursor.
pub(crate) fn list(params: Value) -> Result<(Option<PathBuf>, Option<String>), RpcError> {
    let params = match params {
        Value::Null => Value::Object(serde_json::Map::new()),
        params => params,
    };
    let request: v1::ListSessionsRequest = read(params)?;
    Ok((request.cwd, request.cursor))
}

/// Reads `session/prompt`.
pub(crate) fn prompt(params: Value) -> Result<(String, Vec<Part>), RpcError> {
    let request: v1::PromptRequest = read(params)?;
    let parts = request.prompt.into_iter().map(|block| match block {
        v1::ContentBlock::Text(text) => Ok(Part::Text(text.text)),
        v1::ContentBlock::Image(image) => Ok(Part::Image {
            data: image.data,
            media_type: image.mime_type,
        }),
        v1::ContentBlock::ResourceLink(link) => Ok(Part::Link {
            name: link.name,
            uri: link.uri,
        }),
        v1::ContentBlock::Resource(embedded) => Ok(match embedded.resource {
            v1::EmbeddedResourceResource::TextResourceContents(resource) => Part::Embedded {
                uri: resource.uri,
                text: resource.text,
            },
            v1::EmbeddedResourceResource::BlobResourceContents(resource) => Part::Blob {
                uri: resource.uri,
                media_type: resource.mime_type,
                data: resource.blob,
            },
            _ => return Err(RpcError::invalid("unknown kind of resource in the prompt")),
        }),
        v1::ContentBlock::Audio(_) => Err(RpcError::invalid(
            "haft takes no audio; its capabilities say so",
        )),
        _ => Err(RpcError::invalid("unknown kind of content in the prompt")),
    });
    let parts = parts.collect::<Result<_, _>>()?;
    Ok((request.session_id.to_string(), parts))
}

/// Reads `session/set_mode`.
pub(crate) fn set_mode(params: Value) -> Result<(String, Mode), RpcError> {
    let request: v1::SetSessionModeRequest = read(params)?;
    let mode = Mode::ALL
        .into_iter()
        .find(|mode| mode.id() == &*request.mode_id.0);
    let mode = mode.ok_or_else(|| {
        RpcError::invalid(format!(
            "unknown mode {}; the modes are plan, ask and auto",
            request.mode_id.0
        ))
    })?;
    Ok((request.session_id.to_string(), mode))
}

/// Reads `session/set_config_option`.
pub(crate) fn set_option(params: Value) -> Result<Chosen, RpcError> {
    let request: v1::SetSessionConfigOptionRequest = read(params)?;
    let value = request.value.as_value_id();
    let value = value.ok_or_else(|| RpcError::invalid("the value of this option is an id"))?;
    Ok(Chosen {
        session: request.session_id.to_string(),
        option: request.config_id.0.to_string(),
        value: value.0.to_string(),
    })
}

fn modes(current: Mode) -> v1::SessionModeState {
    let modes = Mode::ALL
        .into_iter()
        .map(|mode| v1::SessionMode::new(mode.id(), mode.name()).description(mode.description()));
    v1::SessionModeState::new(current.id(), modes.collect())
}

fn options(state: &SessionState) -> Vec<v1::SessionConfigOption> {
    let mode = crate::port::Options {
        current: state.mode.id().to_owned(),
        values: Mode::ALL
            .into_iter()
            .map(|mode| (mode.id().to_owned(), mode.description().to_owned()))
            .collect(),
    };
    let mode = option(
        "mode",
        "Mode",
        "How calls that need approval are handled",
        &mode,
    )
    .category(v1::SessionConfigOptionCategory::Mode);
    let settings = state.settings.iter().map(|setting| {
        let made = option(
            setting.id,
            setting.name,
            setting.description,
            &setting.options,
        );
        match setting.is_model {
            true => made.category(v1::SessionConfigOptionCategory::Model),
            false => made,
        }
    });
    std::iter::once(mode).chain(settings).collect()
}

fn option(
    id: &'static str,
    name: &'static str,
    description: &'static str,
    options: &crate::port::Options,
) -> v1::SessionConfigOption {
    let values = options.values.iter().map(|(value, about)| {
        let made = v1::SessionConfigSelectOption::new(value.clone(), value.as_str());
        match about.is_empty() {
            true => made,
            false => made.description(about.as_str()),
        }
    });
    let values: Vec<_> = values.collect();
    let made = v1::SessionConfigOption::select(id, name, options.current.clone(), values);
    made.description(description)
}

/// Answers `session/new` and `session/fork`.
pub(crate) fn opened(session: &str, state: &SessionState) -> Result<Value, RpcError> {
    write(
        v1::NewSessionResponse::new(session.to_owned())
            .modes(modes(state.mode))
            .config_options(options(state)),
    )
}

/// Answers `session/load` and `session/resume`.
pub(crate) fn loaded(state: &SessionState) -> Result<Value, RpcError> {
    write(
        v1::LoadSessionResponse::new()
            .modes(modes(state.mode))
            .config_options(options(state)),
    )
}

/// Answers `session/set_config_option`.
pub(crate) fn option_set(state: &SessionState) -> Result<Value, RpcError> {
    write(v1::SetSessionConfigOptionResponse::new(options(state)))
}

/// Answers `session/list`.
pub(crate) fn listed(sessions: &[Listed], next: Option<String>) -> Result<Value, RpcError> {
    let infos = sessions.iter().map(|one| {
        v1::SessionInfo::new(one.id.clone(), one.folder.clone())
            .title(one.title.clone())
            .updated_at(one.updated.clone())
    });
    write(v1::ListSessionsResponse::new(infos.collect()).next_cursor(next))
}

/// Reason why a prompt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopReason {
    EndTurn,
    Cancelled,
    Refusal,
    MaxTurns,
    MaxTokens,
}

/// Answers `session/prompt`.
pub(crate) fn stopped(reason: StopReason) -> Result<Value, RpcError> {
    write(v1::PromptResponse::new(match reason {
        StopReason::EndTurn => v1::StopReason::EndTurn,
        StopReason::Cancelled => v1::StopReason::Cancelled,
        StopReason::Refusal => v1::StopReason::Refusal,
        StopReason::MaxTurns => v1::StopReason::MaxTurnRequests,
        StopReason::MaxTokens => v1::StopReason::MaxTokens,
    }))
}
