//! Version 2 of the protocol, a draft: prompts are acknowledged and end with an update, modes
//! are a setting, and messages have ids.

mod progress;
mod questions;
mod updates;

use super::{
    AUTH_METHOD, Accepted, Answer, Category, Chosen, Ended, FormAnswer, Incoming, Place, Protocol,
    Replay, SessionState, Setting, StopReason, Waiting, authenticate, listed_folder, method,
    or_empty, page, read, unknown, write,
};
use crate::commands::Command;
use crate::port::{Listed, ProgramInfo, Server};
use crate::prompt::Part;
use crate::rpc::RpcError;
use crate::update::{CallUpdate, Update};
use agent_client_protocol_schema::{ProtocolVersion, v2};
use progress::{Progress, Speaker};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

const LOGIN: &str = "auth/login";
const LOGOUT: &str = "auth/logout";

/// The translation to version 2, and the progress of each session.
#[derive(Default)]
pub(super) struct V2 {
    sessions: Mutex<HashMap<String, Progress>>,
}

/// Reads whether the client shows forms.
pub(super) fn has_forms(params: Value) -> Result<bool, RpcError> {
    let request: v2::InitializeRequest = read(params)?;
    let elicitation = request.capabilities.elicitation.as_ref();
    Ok(elicitation.is_some_and(|elicitation| elicitation.form.is_some()))
}

impl V2 {
    fn of<T>(&self, session: &str, with: impl FnOnce(&mut Progress) -> T) -> T {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        match sessions.get_mut(session) {
            Some(progress) => with(progress),
            None => with(sessions.entry(session.to_owned()).or_default()),
        }
    }
}

impl Protocol for V2 {
    fn initialize(&self, program: &ProgramInfo) -> Result<Value, RpcError> {
        let prompt = v2::PromptCapabilities::new()
            .image(v2::PromptImageCapabilities::new())
            .embedded_context(v2::PromptEmbeddedContextCapabilities::new());
        let servers = v2::McpCapabilities::new()
            .stdio(v2::McpStdioCapabilities::new())
            .http(v2::McpHttpCapabilities::new());
        let sessions = v2::SessionCapabilities::new()
            .prompt(prompt)
            .mcp(servers)
            .delete(v2::SessionDeleteCapabilities::new())
            .additional_directories(v2::SessionAdditionalDirectoriesCapabilities::new())
            .fork(v2::SessionForkCapabilities::new());
        let [id, name, about] = AUTH_METHOD;
        let key = v2::AuthMethodAgent::new(id, name).description(about.to_owned());
        let info = v2::Implementation::new(program.name.as_str(), program.version.as_str());
        let response =
            v2::InitializeResponse::new(ProtocolVersion::V2, info.title("haft".to_owned()))
                .capabilities(v2::AgentCapabilities::new().session(sessions))
                .auth_methods(vec![v2::AuthMethod::Agent(key)]);
        write(response)
    }

    fn decode(&self, method: &str, params: Value) -> Result<Incoming, RpcError> {
        Ok(match method {
            LOGIN => {
                let request: v2::LoginAuthRequest = read(params)?;
                authenticate(&request.method_id.0)?
            }
            LOGOUT => Incoming::Logout,
            method::NEW => {
                let request: v2::NewSessionRequest = read(params)?;
                Incoming::New(place(
                    request.cwd,
                    request.additional_directories,
                    request.mcp_servers,
                )?)
            }
            method::RESUME => {
                let request: v2::ResumeSessionRequest = read(params)?;
                let replay = match request.replay_from {
                    None => Replay::Nothing,
                    Some(v2::ReplayFrom::Start(_)) => Replay::Everything,
                    Some(_) => return Err(RpcError::invalid("replayFrom can only be start")),
                };
                let (cwd, roots) = (request.cwd, request.additional_directories);
                let place = place(cwd, roots, request.mcp_servers)?;
                Incoming::Load(request.session_id.to_string(), place, replay)
            }
            method::FORK => {
                let request: v2::ForkSessionRequest = read(params)?;
                let (cwd, roots) = (request.cwd, request.additional_directories);
                let place = place(cwd, roots, request.mcp_servers)?;
                Incoming::Fork(request.session_id.to_string(), place)
            }
            method::LIST => {
                let request: v2::ListSessionsRequest = read(or_empty(params))?;
                let cursor = request.cursor.as_ref().map(|cursor| &*cursor.0);
                let folder = listed_folder(request.cwd.map(|folder| folder.0))?;
                Incoming::List(folder, page(cursor)?)
            }
            method::CLOSE => Incoming::Close(session_of(params)?),
            method::DELETE => Incoming::Delete(session_of(params)?),
            method::PROMPT => {
                let content = params.get("prompt").cloned().unwrap_or_default();
                let request: v2::PromptRequest = read(params)?;
                if request.prompt.is_empty() {
                    return Err(RpcError::invalid("the prompt is empty"));
                }
                let parts = request.prompt.into_iter().map(part);
                Incoming::Prompt {
                    session: request.session_id.to_string(),
                    parts: parts.collect::<Result<_, _>>()?,
                    content,
                }
            }
            method::SET_OPTION => {
                let request: v2::SetSessionConfigOptionRequest = read(params)?;
                let v2::SessionConfigOptionValue::Id { value, .. } = request.value else {
                    return Err(RpcError::invalid(
                        "value must be the id of one of the values of the option",
                    ));
                };
                Incoming::SetOption(Chosen {
                    session: request.session_id.to_string(),
                    option: request.config_id.0.to_string(),
                    value: value.0.to_string(),
                })
            }
            other => return Err(unknown(other)),
        })
    }

    fn begin(&self, session: &str, prompts: u64) {
        self.of(session, |progress| *progress = Progress::after(prompts));
    }

    fn created(&self, session: &str, state: &SessionState) -> Result<Value, RpcError> {
        write(
            v2::NewSessionResponse::new(session.to_owned())
                .config_options(options(state))
                .available_commands(updates::offered(&state.commands)),
        )
    }

    fn opened(&self, state: &SessionState) -> Result<Value, RpcError> {
        write(
            v2::ResumeSessionResponse::new()
                .config_options(options(state))
                .available_commands(updates::offered(&state.commands)),
        )
    }

    fn idle(&self, session: &str) -> Option<Value> {
        Some(updates::idle(session, None))
    }

    fn option_set(&self, state: &SessionState) -> Result<Value, RpcError> {
        write(v2::SetSessionConfigOptionResponse::new(options(state)))
    }

    fn listed(&self, sessions: &[Listed], next: Option<String>) -> Result<Value, RpcError> {
        let infos = sessions.iter().map(|one| {
            v2::SessionInfo::new(one.id.clone(), one.folder.clone())
                .title(one.title.clone())
                .updated_at(one.updated.clone())
        });
        let next = next.map(v2::SessionListCursor::new);
        write(v2::ListSessionsResponse::new(infos.collect()).next_cursor(next))
    }

    fn accepted(&self, session: &str, content: Value, is_recorded: bool) -> Option<Accepted> {
        let id = self.of(session, |progress| progress.accept(is_recorded));
        Some(Accepted {
            answer: write(v2::PromptResponse::new(id.as_str())).ok()?,
            updates: vec![
                updates::user(session, &id, content),
                updates::running(session),
            ],
        })
    }

    fn ended(&self, session: &str, result: Result<StopReason, RpcError>) -> Ended {
        self.of(session, Progress::end);
        let reason = match result {
            Ok(StopReason::EndTurn) => v2::StopReason::EndTurn,
            Ok(StopReason::Cancelled) => v2::StopReason::Cancelled,
            Ok(StopReason::Refusal) => v2::StopReason::Refusal,
            Ok(StopReason::MaxTurns) => v2::StopReason::MaxTurnRequests,
            Ok(StopReason::MaxTokens) => v2::StopReason::MaxTokens,
            Err(error) => {
                let error = v2::Error::new(error.code, error.message);
                v2::StopReason::Error(v2::ErrorStopReason::new().error(error))
            }
        };
        Ended::Update(updates::idle(session, Some(reason)))
    }

    fn update(&self, session: &str, update: Update) -> Value {
        let id = self.of(session, |progress| match &update {
            Update::User { is_first, .. } => progress.user(*is_first),
            Update::Answer(_) => progress.chunk(Speaker::Agent),
            Update::Thought(_) => progress.chunk(Speaker::Thought),
            Update::Call(_) => {
                progress.interrupt();
                String::new()
            }
            _ => String::new(),
        });
        updates::update(session, id, update)
    }

    fn commands(&self, session: &str, commands: &[Command]) -> Value {
        updates::commands(session, commands)
    }

    fn settings(&self, session: &str, state: &SessionState) -> Value {
        updates::settings(session, state)
    }

    fn waiting(&self, session: &str, change: Waiting) -> Option<Value> {
        let state = self.of(session, |progress| progress.wait(change))?;
        Some(updates::state(session, state))
    }

    fn ask(&self, session: &str, question: &str, call: CallUpdate, answers: Vec<Answer>) -> Value {
        questions::ask(session, question, call, answers)
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

/// Reads `session/close` and `session/delete`.
fn session_of(params: Value) -> Result<String, RpcError> {
    let request: v2::CloseSessionRequest = read(params)?;
    Ok(request.session_id.to_string())
}

fn place(
    folder: v2::AbsolutePath,
    roots: Vec<v2::AbsolutePath>,
    servers: Vec<v2::McpServer>,
) -> Result<Place, RpcError> {
    let servers = servers.into_iter().map(server).collect::<Result<_, _>>()?;
    let place = Place {
        folder: folder.0,
        roots: roots.into_iter().map(|root| root.0).collect(),
        servers,
    };
    place.checked()
}

fn server(server: v2::McpServer) -> Result<Server, RpcError> {
    match server {
        v2::McpServer::Stdio(server) => Ok(Server::Program {
            name: server.name,
            command: server.command.0,
            arguments: server.args,
            environment: server
                .env
                .into_iter()
                .map(|variable| (variable.name, variable.value))
                .collect(),
        }),
        v2::McpServer::Http(server) => {
            let headers = server.headers.into_iter();
            Ok(Server::Address {
                name: server.name,
                url: server.url,
                headers: headers.map(|header| (header.name, header.value)).collect(),
                is_sse: false,
            })
        }
        _ => Err(RpcError::invalid("unknown kind of MCP server")),
    }
}

fn part(block: v2::ContentBlock) -> Result<Part, RpcError> {
    match block {
        v2::ContentBlock::Text(text) => Ok(Part::Text(text.text)),
        v2::ContentBlock::Image(image) => Ok(Part::Image {
            data: image.data,
            media_type: image.mime_type.0.to_string(),
        }),
        v2::ContentBlock::ResourceLink(link) => Ok(Part::Link {
            name: link.name,
            uri: link.uri,
        }),
        v2::ContentBlock::Resource(embedded) => Ok(match embedded.resource {
            v2::EmbeddedResourceResource::TextResourceContents(resource) => Part::Embedded {
                uri: resource.uri,
                text: resource.text,
            },
            v2::EmbeddedResourceResource::BlobResourceContents(resource) => Part::Blob {
                uri: resource.uri,
                media_type: resource.mime_type.map(|kind| kind.0.to_string()),
                data: resource.blob,
            },
            _ => return Err(RpcError::invalid("unknown kind of resource in the prompt")),
        }),
        v2::ContentBlock::Audio(_) => Err(RpcError::invalid(
            "haft does not take audio; send text, pictures or files",
        )),
        _ => Err(RpcError::invalid("unknown kind of content in the prompt")),
    }
}

fn options(state: &SessionState) -> Vec<v2::SessionConfigOption> {
    state.all_settings().map(option).collect()
}

fn option(setting: Setting) -> v2::SessionConfigOption {
    let values = setting.options.values.into_iter().map(|(value, about)| {
        let made = v2::SessionConfigSelectOption::new(value.as_str(), value.as_str());
        made.description((!about.is_empty()).then_some(about))
    });
    let values: Vec<_> = values.collect();
    let current = setting.options.current;
    let made = v2::SessionConfigOption::select(setting.id, setting.name, current, values)
        .description(setting.description.to_owned());
    match setting.category {
        Category::Mode => made.category(v2::SessionConfigOptionCategory::Mode),
        Category::Model => made.category(v2::SessionConfigOptionCategory::Model),
        Category::Effort => made.category(v2::SessionConfigOptionCategory::ThoughtLevel),
        Category::Other => made,
    }
}
