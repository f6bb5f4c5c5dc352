//! Addresses for each provider.

use super::*;

fn url(provider: Provider, base: Option<&str>) -> Result<String, SettingsError> {
    let mut settings = Settings::new(provider, "m:1/x");
    settings.base_url = base.map(str::to_owned);
    settings.api_key = Some(Secret::new("k"));
    Endpoint::new(&settings).map(|endpoint| endpoint.url.to_string())
}

#[test]
fn the_path_of_the_protocol_is_appended_to_base_url() {
    use Provider::{Anthropic, Google, Ollama, OpenaiCompletions, OpenaiResponses};
    let gemini = "/v1beta/models/m%3A1%2Fx:streamGenerateContent?alt=sse";
    let table = [
        (
            Anthropic,
            None,
            "https://api.anthropic.com/v1/messages".to_owned(),
        ),
        (
            Anthropic,
            Some("http://h:1"),
            "http://h:1/v1/messages".to_owned(),
        ),
        (
            Anthropic,
            Some("http://h:1/"),
            "http://h:1/v1/messages".to_owned(),
        ),
        (
            Anthropic,
            Some("http://h:1/v1"),
            "http://h:1/v1/messages".to_owned(),
        ),
        (
            Anthropic,
            Some("http://h:1/v1/"),
            "http://h:1/v1/messages".to_owned(),
        ),
        (
            Anthropic,
            Some(" http://h/p "),
            "http://h/p/v1/messages".to_owned(),
        ),
        (
            OpenaiCompletions,
            None,
            "https://api.openai.com/v1/chat/completions".to_owned(),
        ),
        (
            OpenaiCompletions,
            Some("http://h/v1"),
            "http://h/v1/chat/completions".to_owned(),
        ),
        (
            OpenaiCompletions,
            Some("http://h/v1/"),
            "http://h/v1/chat/completions".to_owned(),
        ),
        (
            OpenaiCompletions,
            Some("http://h"),
            "http://h/chat/completions".to_owned(),
        ),
        (
            OpenaiResponses,
            None,
            "https://api.openai.com/v1/responses".to_owned(),
        ),
        (
            OpenaiResponses,
            Some("https://h/a/v1"),
            "https://h/a/v1/responses".to_owned(),
        ),
        (
            Google,
            None,
            format!("https://generativelanguage.googleapis.com{gemini}"),
        ),
        (Google, Some("http://h"), format!("http://h{gemini}")),
        (
            Google,
            Some("http://h/v1beta/"),
            format!("http://h{gemini}"),
        ),
        (Google, Some("http://h/v1"), format!("http://h{gemini}")),
        (Ollama, None, "http://localhost:11434/api/chat".to_owned()),
        (
            Ollama,
            Some("http://h:11434/"),
            "http://h:11434/api/chat".to_owned(),
        ),
        (Ollama, Some("http://h/v1"), "http://h/api/chat".to_owned()),
        (Ollama, Some("http://h/api"), "http://h/api/chat".to_owned()),
    ];
    for (provider, base, expected) in table {
        assert_eq!(
            url(provider, base).unwrap(),
            expected,
            "{provider} {base:?}"
        );
    }
}

#[test]
fn an_invalid_base_url_is_rejected_without_showing_it() {
    for base in [
        "",
        "host",
        "ftp://h",
        "http://",
        "file:///etc/passwd",
        "http://user:SECRET@h",
        "http://SECRET@h",
        "http://h/?key=SECRET",
        "http://h/#SECRET",
    ] {
        let error = url(Provider::Anthropic, Some(base)).unwrap_err();
        assert!(
            matches!(error, SettingsError::Address { .. }),
            "{base} {error}"
        );
        assert!(!error.to_string().contains("SECRET"), "{error}");
    }
}

#[test]
fn missing_settings_are_named() {
    let error = Endpoint::new(&Settings::new(Provider::Google, "m")).unwrap_err();
    assert!(error.to_string().contains("GEMINI_API_KEY"), "{error}");
    let error = Endpoint::new(&Settings::new(Provider::Ollama, " ")).unwrap_err();
    assert_eq!(
        error,
        SettingsError::Model {
            provider: Provider::Ollama
        }
    );
    let error = "antropic\u{1b}"
        .parse::<Provider>()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`antropic\\x1b`") && error.contains("openai-responses"),
        "{error}"
    );
    for provider in Provider::ALL {
        assert_eq!(provider.to_string().parse(), Ok(provider));
    }
}

#[test]
fn errors_show_only_the_host_of_an_address() {
    let mut settings = Settings::new(Provider::Ollama, "m");
    assert_eq!(Endpoint::new(&settings).unwrap().host(), "localhost:11434");
    settings.base_url = Some("https://h/secret/path".to_owned());
    let endpoint = Endpoint::new(&settings).unwrap();
    assert_eq!(endpoint.host(), "h");
    assert!(!endpoint.is_own);
}
