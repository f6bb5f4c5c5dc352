//! `haft tools`.

use crate::scratch::Scratch;
use serde_json::Value;

fn definitions(scratch: &Scratch, args: &[&str]) -> Vec<Value> {
    let ended = scratch.haft(args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.out).unwrap()
}

#[test]
fn the_preset_decides_what_a_model_sees() {
    let scratch = Scratch::new();
    let ended = scratch.haft(&["tools"]);
    assert!(
        ended.out.lines().any(|line| line.starts_with("read ")),
        "{ended:?}"
    );
    assert!(
        !ended.out.lines().any(|line| line.starts_with("ls ")),
        "{ended:?}"
    );
    let ended = scratch.haft(&["tools", "--preset", "readonly"]);
    assert!(
        ended.out.lines().any(|line| line.starts_with("ls ")),
        "{ended:?}"
    );
    let ended = scratch.haft(&["tools", "--preset", "none"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""));
    assert!(ended.err.contains("no tools"));
}

#[test]
fn definitions_have_three_fields() {
    let scratch = Scratch::new();
    for definition in definitions(&scratch, &["tools", "--json", "--preset", "all"]) {
        let fields: Vec<&String> = definition.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["name", "description", "parameters"]);
        assert_eq!(definition["parameters"]["type"], "object");
    }
    let one = definitions(&scratch, &["tools", "ls", "--json"]);
    assert_eq!(one.len(), 1);
    assert_eq!(one[0]["name"], "ls");
}

#[test]
fn a_page_lists_the_parameters() {
    let scratch = Scratch::new();
    let page = scratch.haft(&["tools", "read"]).out;
    for words in [
        "path ",
        "string ",
        "required ",
        "offset ",
        "integer ",
        "from 1 ",
        "Effect: read",
    ] {
        assert!(page.contains(words), "{words} {page}");
    }
    assert!(scratch.haft(&["tools", "ls"]).out.contains("default false"));
    let ended = scratch.haft(&["tools", "raed"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.err.contains("did you mean \"read\"?"), "{ended:?}");
}

#[test]
fn the_cost_is_a_quarter_of_the_json() {
    let scratch = Scratch::new();
    let ended = scratch.haft(&["tools", "--cost"]);
    let mut sum = 0;
    for definition in definitions(&scratch, &["tools", "--json"]) {
        let tokens = definition.to_string().len().div_ceil(4);
        let name = definition["name"].as_str().unwrap();
        let line = ended
            .out
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap();
        assert!(line.ends_with(&format!(" {tokens} tokens")), "{line}");
        sum += tokens;
    }
    assert!(
        ended.out.ends_with(&format!("total  {sum} tokens\n")),
        "{ended:?}"
    );
}

#[test]
fn the_prompt_section_names_them() {
    let scratch = Scratch::new();
    let ended = scratch.haft(&["tools", "--prompt"]);
    assert!(ended.out.starts_with("Tools: read, "), "{ended:?}");
    assert_eq!(scratch.haft(&["tools", "--prompt", "--json"]).code, Some(2));
}
