//! Mistakes in the call rather than in the text: calls made twice, wrong files, arguments
//! and paths in other spellings.

use super::base;
use crate::case::{Case, Content, Form, PathForm};
use crate::tasks::Task;
use crate::texts as t;
use serde_json::{Map, Value, json};

pub(super) fn repeated(task: &Task, cases: &mut Vec<Case>) {
    // The text is in two places.
    let twice = format!(
        "{}\n{}\n",
        task.view.trim_end_matches('\n'),
        task.view.trim_end_matches('\n')
    );
    let mut case = base(task, "several matches");
    case.files.insert(
        task.path.clone(),
        Content::of(&task.encoding.encode(&twice)),
    );
    case.after = None;
    case.after_all = Some(Content::of(
        &task.encoding.encode(&twice.replace(&task.old, &task.new)),
    ));
    case.help = vec!["2 ".to_owned(), "twice".to_owned()];
    if twice.matches(&task.old).count() == 2 {
        cases.push(case.clone());
        // In two places, and with a mistake that could be repaired in one.
        let mut shifted = case;
        shifted.mistake = "several matches, indented".to_owned();
        shifted.old = t::indented(&task.old, "  ");
        shifted.new = t::indented(&task.new, "  ");
        if task.old.contains('\n') {
            cases.push(shifted);
        }
    }
    // The edit was already made.
    let view = task.view.replacen(&task.old, &task.new, 1);
    let mut case = base(task, "already made");
    case.files
        .insert(task.path.clone(), Content::of(&task.after));
    case.after = None;
    case.help = vec!["already".to_owned()];
    if view.contains(&task.old) {
        // An addition keeps its old text.
        let addition = task.new.starts_with(&task.old) || task.new.ends_with(&task.old);
        if addition && view.matches(&task.old).count() == 1 {
            case.mistake = "addition repeated".to_owned();
            cases.push(case);
        }
    } else {
        cases.push(case);
    }
    let mut case = base(task, "identical texts");
    case.new.clone_from(&case.old);
    case.after = None;
    case.help = vec![
        "identical".to_owned(),
        "no change".to_owned(),
        "same".to_owned(),
    ];
    cases.push(case);
}

pub(super) fn arguments(task: &Task, cases: &mut Vec<Case>) {
    let mut add = |mistake: &str, change: &dyn Fn(&mut Case)| {
        let mut case = base(task, mistake);
        change(&mut case);
        cases.push(case);
    };
    let extra = |pairs: &[(&str, Value)]| Form::Extra {
        arguments: pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect::<Map<_, _>>(),
    };
    add("argument: explanation", &|case| {
        case.form = extra(&[("explanation", json!("rename it"))])
    });
    add("argument: unknown", &|case| {
        case.form = extra(&[
            ("instructions_for_apply", json!("change it")),
            ("toolSummary", json!("edit")),
        ])
    });
    add("argument: number", &|case| {
        case.form = extra(&[("expected_replacements", json!(1))]);
        case.help = vec!["expected_replacements".to_owned()];
    });
    add("names: file_path, old_string", &|case| {
        case.form = named("file_path", "old_string", "new_string");
        case.help = parameter_words();
    });
    add("names: path, oldText", &|case| {
        case.form = named("path", "oldText", "newText");
        case.help = parameter_words();
    });
    add("names: file, old_str", &|case| {
        case.form = named("file", "old_str", "new_str");
        case.help = parameter_words();
    });
    add("edits with one edit", &|case| {
        case.form = Form::Edits {
            old: "old_text".into(),
            new: "new_text".into(),
        };
        case.help = parameter_words();
    });
    add("edits as JSON text", &|case| {
        case.form = Form::EditsText {
            old: "oldText".into(),
            new: "newText".into(),
        };
        case.help = parameter_words();
    });
    add("arguments wrapped", &|case| {
        case.form = Form::Wrapped {
            name: "arguments".into(),
        };
        case.help = parameter_words();
    });
    // A refusal helps if it asks for an absolute path.
    for (mistake, form) in [
        ("path with @", PathForm::At),
        ("path relative", PathForm::Relative),
        ("path with ./", PathForm::Dot),
    ] {
        add(mistake, &|case| {
            case.path_form = form;
            case.help = vec!["absolute".to_owned()];
        });
    }
    add("path of the host", &|case| case.path_form = PathForm::Host);
    add("wrong file", &|case| {
        let text = "nothing of interest\nis in this file\n";
        case.files
            .insert("other.txt".to_owned(), Content::Text(text.to_owned()));
        case.path = "other.txt".to_owned();
        case.after = None;
        case.help = vec!["nothing in the file".to_owned(), "nearest".to_owned()];
    });
    add("missing file", &|case| {
        case.path = format!("{}x", task.path);
        case.after = None;
        case.help = vec![task.path.clone()];
    });
    add("empty old text", &|case| {
        case.old.clear();
        case.after = None;
        case.help = vec!["empty".to_owned()];
    });
}

fn named(path: &str, old: &str, new: &str) -> Form {
    Form::Named {
        path: path.to_owned(),
        old: old.to_owned(),
        new: new.to_owned(),
    }
}

/// Words of a refusal that names a parameter.
fn parameter_words() -> Vec<String> {
    let words = ["required", "missing", "unknown parameter", "must provide"];
    words.map(str::to_owned).to_vec()
}
