//! The tools that the protocol's conformance suite expects from a server, with the server
//! code behind `haft mcp --http`. Prints its address; `tests/conformance/run` drives it.

#![expect(clippy::print_stdout, reason = "says where it is")]

use haft::{Content, Context, Effect, Embedded, Error, Filled, FromSchema, Reply, Runtime};
use haft_mcp::{HttpServer, HttpSettings, ServerName};
use serde_json::{Value, json};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// An image of one pixel, and an empty sound.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = ServerName::new("haft", env!("CARGO_PKG_VERSION"));
    let address = ([127, 0, 0, 1], 0).into();
    let server = HttpServer::bind(address, HttpSettings::default(), name, || {
        session().map_err(|error| error.to_string())
    })
    .await?;
    println!("{}", server.url());
    server.serve(CancellationToken::new()).await?;
    Ok(())
}

/// Each client gets its own session.
fn session() -> Result<Runtime, Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir();
    let runtime = Runtime::builder().dir(folder).preset("none").build()?;
    for tool in tools()? {
        runtime.tools().add_any(Arc::new(tool))?;
    }
    Ok(runtime)
}

fn tools() -> Result<Vec<FromSchema>, Error> {
    let nothing = || json!({ "type": "object", "properties": {} });
    let message = || {
        json!({
            "type": "object",
            "properties": { "message": { "type": "string" } },
            "required": ["message"],
        })
    };
    Ok(vec![
        tool("test_simple_text", nothing(), |_, _| async {
            Ok("This is a simple text response for testing.".into())
        })?,
        tool("test_image_content", nothing(), |_, _| async {
            Ok(Reply::default().and(pixel()))
        })?,
        tool("test_audio_content", nothing(), |_, _| async {
            Ok(Reply::default().and(Content::Audio {
                data: SILENCE.to_owned(),
                media_type: "audio/wav".to_owned(),
            }))
        })?,
        tool("test_embedded_resource", nothing(), |_, _| async {
            let text = "This is an embedded resource content.";
            Ok(Reply::default().and(embedded("test://embedded-resource", "text/plain", text)))
        })?,
        tool("test_multiple_content_types", nothing(), |_, _| async {
            let json = r#"{"test":"data","value":123}"#;
            let at = "test://mixed-content-resource";
            Ok(Reply::from("Multiple content types test:")
                .and(pixel())
                .and(embedded(at, "application/json", json)))
        })?,
        tool("test_error_handling", nothing(), |_, _| async {
            Err(Error::failed(
                "This tool intentionally returns an error for testing",
            ))
        })?,
        tool("test_tool_with_progress", nothing(), |_, cx| async move {
            for part in ["0", "50", "100"] {
                cx.update(format!("{part} of 100"));
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok("done".into())
        })?,
        tool("test_reconnection", nothing(), |_, _| async {
            // Long enough that the reply becomes a stream.
            tokio::time::sleep(Duration::from_millis(500)).await;
            Ok("reconnected".into())
        })?,
        tool("test_elicitation", message(), |arguments, cx| async move {
            let message = arguments["message"].as_str().unwrap_or_default();
            Ok(filled(&cx, message, person()).await.into())
        })?,
        tool(
            "test_elicitation_sep1034_defaults",
            nothing(),
            |_, cx| async move {
                Ok(filled(&cx, "All of these have defaults.", defaults())
                    .await
                    .into())
            },
        )?,
        tool(
            "test_elicitation_sep1330_enums",
            nothing(),
            |_, cx| async move { Ok(filled(&cx, "Choose.", choices()).await.into()) },
        )?,
        tool("json_schema_2020_12_tool", modern_schema(), |_, _| async {
            Ok("fits".into())
        })?,
    ])
}

fn tool<F, R>(name: &str, parameters: Value, call: F) -> Result<FromSchema, Error>
where
    F: Fn(Value, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Reply, Error>> + Send + 'static,
{
    FromSchema::new(name, "A tool of the suite.", parameters, Effect::Pure, call)
}

fn pixel() -> Content {
    Content::Image {
        data: PIXEL.to_owned(),
        media_type: "image/png".to_owned(),
    }
}

fn embedded(uri: &str, media_type: &str, text: &str) -> Content {
    Content::Resource {
        resource: Embedded {
            uri: uri.to_owned(),
            media_type: Some(media_type.to_owned()),
            text: Some(text.to_owned()),
            blob: None,
        },
    }
}

async fn filled(cx: &Context, message: &str, schema: Value) -> String {
    match cx.fill(message, schema).await {
        Filled::Accepted(fields) => {
            format!("Elicitation completed: action=accept, content={fields}")
        }
        Filled::Declined => "Elicitation completed: action=decline".to_owned(),
        _ => "Elicitation completed: action=cancel".to_owned(),
    }
}

fn person() -> Value {
    json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" },
        },
        "required": ["username", "email"],
    })
}

fn defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": { "type": "boolean", "default": true },
        },
    })
}

fn choices() -> Value {
    let options = ["option1", "option2", "option3"];
    let titled = json!([
        { "const": "value1", "title": "First" },
        { "const": "value2", "title": "Second" },
        { "const": "value3", "title": "Third" },
    ]);
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": options },
            "titledSingle": { "type": "string", "oneOf": titled },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
            "titledMulti": { "type": "array", "items": { "anyOf": titled } },
        },
    })
}

fn modern_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
        },
        "additionalProperties": false,
    })
}
