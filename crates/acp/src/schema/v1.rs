//! Version 1 of the protocol.

mod questions;
mod updates;

use super::{
    AUTH_METHOD, Answer, Category, Chosen, Ended, FormAnswer, Incoming, Place, Protocol, Replay,
    SessionState, Setting, StopReason, authenticate, listed_folder, method, mode, or_empty, page,
    read, unknown, write,
};
use crate::commands::Command;
use crate::port::{Listed, Mode, ProgramInfo, Server};
use crate::prompt::Part;
use crate::rpc::RpcError;
use crate::update::{CallUpdate, Update};
use agent_client_protocol_schema::{ProtocolVersion, v1};
use serde_json::Value;
use std::path::PathBuf;

const AUTHENTICATE: &str = "authenticate";
const LOGOUT: &str = "logout";
const LOAD: &str = "session/load";
const SET_MODE: &str = "session/set_mode";

/// The translation to version 1.
pub(super) struct V1;

/// Reads whether the client shows forms.
pub(super) fn has_forms(params: Value) -> Result<bool, RpcError> {
    let request: v1::InitializeRequest = read(params)?;
    let elicitation = request.client_capabilities.elicitation.as_ref();
    Ok(elicitation.is_some_and(|elicitation| elicitation.form.is_some()))
}

impl Protocol for V1 {
    fn initialize(&self, program: &ProgramInfo) -> Result<Value, RpcError> {
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
        let [id, name, about] = AUTH_METHOD;
        let key = v1::AuthMethodAgent::new(id, name).description(about);
        let info = v1::Implementation::new(program.name.as_str(), program.version.as_str());
        let response = v1::InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .auth_methods(vec![v1::AuthMethod::Agent(key)])
            .agent_info(info.title("haft"));
        write(response)
    }

    fn decode(&self, method: &str, params: Value) -> Result<Incoming, RpcError> {
        Ok(match method {
            AUTHENTICATE => {
                let request: v1::AuthenticateRequest = read(params)?;
                authenticate(&request.method_id.0)?
            }
            LOGOUT => Incoming::Logout,
            method::NEW => {
                let request: v1::NewSessionRequest = read(params)?;
                Incoming::New(place(
                    request.cwd,
                    request.additional_directories,
                    request.mcp_servers,
                )?)
            }
            LOAD => {
                let (session, place) = recorded(params)?;
                Incoming::Load(session, place, Replay::Everything)
            }
            method::RESUME => {
                let (session, place) = resumed(params)?;
                Incoming::Load(session, place, Replay::Nothing)
            }
            method::FORK => {
                let (session, place) = resumed(params)?;
                Incoming::Fork(session, place)
            }
            method::LIST => {
                let request: v1::ListSessionsRequest = read(or_empty(params))?;
                Incoming::List(
                    listed_folder(request.cwd)?,
                    page(request.cursor.as_deref())?,
                )
            }
            method::CLOSE => Incoming::Close(session_of(params)?),
            method::DELETE => Incoming::Delete(session_of(params)?),
            method::PROMPT => {
                let request: v1::PromptRequest = read(params)?;
                let parts = request.prompt.into_iter().map(part);
                Incoming::Prompt {
                    session: request.session_id.to_string(),
                    parts: parts.collect::<Result<_, _>>()?,
                    content: Value::Null,
                }
            }
            SET_MODE => {
                let request: v1::SetSessionModeRequest = read(params)?;
                Incoming::SetMode(request.session_id.to_string(), mode(&request.mode_id.0)?)
            }
            method::SET_OPTION => {
                let request: v1::SetSessionConfigOptionRequest = read(params)?;
                let value = request.value.as_value_id();
                let value = value.ok_or_else(|| {
                    RpcError::invalid("value must be the id of one of the values of the option")
                })?;
                Incoming::SetOption(Chosen {
                    session: request.session_id.to_string(),
                    option: request.config_id.0.to_string(),
                    value: value.0.to_string(),
                })
            }
            other => return Err(unknown(other)),
        })
    }

    fn created(&self, session: &str, state: &SessionState) -> Result<Value, RpcError> {
        write(
            v1::NewSessionResponse::new(session.to_owned())
                .modes(modes(state))
                .config_options(options(state)),
        )
    }

    fn opened(&self, state: &SessionState) -> Result<Value, RpcError> {
        write(
            v1::LoadSessionResponse::new()
                .modes(modes(state))
                .config_options(options(state)),
        )
    }

    fn option_set(&self, state: &SessionState) -> Result<Value, RpcError> {
        write(v1::SetSessionConfigOptionResponse::new(options(state)))
    }

    fn listed(&self, sessions: &[Listed], next: Option<String>) -> Result<Value, RpcError> {
        let infos = sessions.iter().map(|one| {
            v1::SessionInfo::new(one.id.clone(), one.folder.clone())
                .title(one.title.clone())
                .updated_at(one.updated.clone())
        });
        write(v1::ListSessionsResponse::new(infos.collect()).next_cursor(next))
    }

    fn ended(&self, _: &str, result: Result<StopReason, RpcError>) -> Ended {
        Ended::Answer(result.and_then(|reason| {
            write(v1::PromptResponse::new(match reason {
                StopReason::EndTurn => v1::StopReason::EndTurn,
                StopReason::Cancelled => v1::StopReason::Cancelled,
                StopReason::Refusal => v1::StopReason::Refusal,
                StopReason::MaxTurns => v1::StopReason::MaxTurnRequests,
                StopReason::MaxTokens => v1::StopReason::MaxTokens,
            }))
        }))
    }

    fn update(&self, session: &str, update: Update) -> Value {
        updates::update(session, update)
    }

    fn commands(&self, session: &str, commands: &[Command]) -> Value {
        updates::commands(session, commands)
    }

    fn current_mode(&self, session: &str, mode: Mode) -> Option<Value> {
        Some(updates::current_mode(session, mode))
    }

    fn settings(&self, session: &str, state: &SessionState) -> Value {
        updates::settings(session, state)
    }

    fn ask(&self, session: &str, _: &str, call: CallUpdate, answers: Vec<Answer>) -> Value {
        questions::ask(session, call, answers)
    }

    fn answered(&self, result: Value) -> Result<Option<String>, RpcError> {
        questions::answered(result)
    }

    fn form(&self, session: &str, call: &str, message: &str, schema: &Value) -> Option<Value> {
        questions::form(session, call, message, schema)
    }

    fn form_answered(&self, result: Value) -> FormAnswer {
        questions::form_answered(result)
    }
}

/// Reads `session/load`, whose list of MCP servers is required.
fn recorded(params: Value) -> Result<(String, Place), RpcError> {
    let request: v1::LoadSessionRequest = read(params)?;
    let (cwd, roots) = (request.cwd, request.additional_directories);
    let place = place(cwd, roots, request.mcp_servers)?;
    Ok((request.session_id.to_string(), place))
}

/// Reads `session/resume` and `session/fork`, whose parameters are the same.
fn resumed(params: Value) -> Result<(String, Place), RpcError> {
    let request: v1::ResumeSessionRequest = read(params)?;
    let (cwd, roots) = (request.cwd, request.additional_directories);
    let place = place(cwd, roots, request.mcp_servers)?;
    Ok((request.session_id.to_string(), place))
}

/// Reads `session/close` and `session/delete`.
fn session_of(params: Value) -> Result<String, RpcError> {
    let request: v1::CloseSessionRequest = read(params)?;
    Ok(request.session_id.to_string())
}

fn place(
    folder: PathBuf,
    roots: Vec<PathBuf>,
    servers: Vec<v1::McpServer>,
) -> Result<Place, RpcError> {
    let servers = servers.into_iter().map(server).collect::<Result<_, _>>()?;
    let place = Place {
        folder,
        roots,
        servers,
    };
    place.checked()
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

fn part(block: v1::ContentBlock) -> Result<Part, RpcError> {
    match block {
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
            "haft does not take audio; send text, pictures or files",
        )),
        _ => Err(RpcError::invalid("unknown kind of content in the prompt")),
    }
}

fn modes(state: &SessionState) -> v1::SessionModeState {
    let modes = state
        .modes
        .iter()
        .map(|mode| v1::SessionMode::new(mode.id(), mode.name()).description(mode.description()));
    v1::SessionModeState::new(state.mode.id(), modes.collect())
}

fn options(state: &SessionState) -> Vec<v1::SessionConfigOption> {
    state.all_settings().map(option).collect()
}

fn option(setting: Setting) -> v1::SessionConfigOption {
    let values = setting.options.values.iter().map(|(value, about)| {
        let made = v1::SessionConfigSelectOption::new(value.clone(), value.as_str());
        match about.is_empty() {
            true => made,
            false => made.description(about.as_str()),
        }
    });
    let values: Vec<_> = values.collect();
    let current = setting.options.current.clone();
    let made = v1::SessionConfigOption::select(setting.id, setting.name, current, values)
        .description(setting.description);
    match setting.category {
        Category::Mode => made.category(v1::SessionConfigOptionCategory::Mode),
        Category::Model => made.category(v1::SessionConfigOptionCategory::Model),
        Category::Effort => made.category(v1::SessionConfigOptionCategory::ThoughtLevel),
        Category::Other => made,
    }
}
