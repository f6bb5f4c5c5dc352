//! Runs the recipe for data work in `docs/sandbox.md` as it is printed.

use crate::bed::Bed;
use crate::packages::{Form, Index, sha256, zip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGE: &str = include_str!("../../../../docs/sandbox.md");

/// Returns the code blocks of a language in the section about data work.
fn blocks(language: &str) -> Vec<&'static str> {
    let (_, section) = PAGE.split_once("\n## Data work\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let fence = format!("```{language}\n");
    let after = section.split(fence.as_str()).skip(1);
    after
        .map(|block| block.split_once("```").unwrap().0)
        .collect()
}

/// An index with packages of these names, each a module with a version.
fn index(names: &[&str]) -> Index {
    let mut pages = BTreeMap::new();
    for name in names {
        let folder = format!("{name}-9.1.dist-info");
        let module = format!("{name}/__init__.py");
        let (metadata, wheel, record) = (
            format!("{folder}/METADATA"),
            format!("{folder}/WHEEL"),
            format!("{folder}/RECORD"),
        );
        let about = format!("Metadata-Version: 2.1\nName: {name}\nVersion: 9.1\n");
        let tags =
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
        let files = format!("{module},,\n{metadata},,\n{wheel},,\n{record},,\n");
        let bytes = zip(&[
            (&module, "__version__ = '9.1'\n"),
            (&metadata, &about),
            (&wheel, tags),
            (&record, &files),
        ]);
        let file = format!("{name}-9.1-py3-none-any.whl");
        pages.insert(
            format!("/simple/{name}/"),
            Form::Html.page(&[(&file, &sha256(&bytes))]),
        );
        pages.insert(format!("/files/{file}"), bytes);
    }
    Index::serve(pages)
}

/// Runs `sh` in the folder, with the machine's programs and the built `haft`.
fn sh(script: &str, folder: &Path) -> Command {
    let built = Path::new(env!("CARGO_BIN_EXE_haft-sandbox"))
        .parent()
        .unwrap();
    let machine = std::env::var_os("PATH").unwrap();
    let mut path: Vec<PathBuf> = vec![built.to_owned()];
    path.extend(std::env::split_paths(&machine));
    let mut command = Command::new("/bin/sh");
    command
        .args(["-e", "-c", script])
        .current_dir(folder)
        .env("PATH", std::env::join_paths(path).unwrap());
    command
}

#[test]
fn the_recipe_for_data_work_runs_as_printed() {
    let (shell, config) = (blocks("sh"), blocks("yaml"));
    let ([install, check], [project, own]) = (shell.as_slice(), config.as_slice()) else {
        panic!("the recipe has other blocks: {shell:?} {config:?}");
    };
    let bed = Bed::new();
    let index = index(&["numpy", "pandas", "matplotlib"]);
    let mut command = sh(install, &bed.work());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PIP_") {
            command.env_remove(name);
        }
    }
    let installed = command
        .env("PIP_CONFIG_FILE", "/dev/null")
        .env("PIP_INDEX_URL", &index.address)
        .env("PIP_NO_CACHE_DIR", "1")
        .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
        .env("no_proxy", "127.0.0.1")
        .output()
        .unwrap();
    let complaints = String::from_utf8_lossy(&installed.stderr).into_owned();
    assert!(installed.status.success(), "{complaints}");

    bed.file("haft.yaml", project);
    let home = bed.work().join("../home");
    std::fs::create_dir(&home).unwrap();
    let checked = sh(check, &bed.work()).env("HOME", &home).output().unwrap();
    let reply = String::from_utf8_lossy(&checked.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&checked.stderr).into_owned();
    let answer: Value =
        serde_json::from_str(&reply).unwrap_or_else(|_| panic!("{reply}{complaints}"));
    assert_eq!(answer["output"], "9.1\n", "{reply}{complaints}");
    assert_eq!(answer["status"], "success", "{reply}");

    // The user may add this rule, so that the model can install packages after approval.
    let file = bed.work().join("../own.yaml");
    std::fs::write(&file, format!("{project}{own}")).unwrap();
    let why = format!(
        "haft --config {} why execute 'command=.venv/bin/pip install six'",
        file.display()
    );
    let why = sh(&why, &bed.work()).env("HOME", &home).output().unwrap();
    let reply = String::from_utf8_lossy(&why.stdout).into_owned();
    assert!(reply.starts_with("ask\n"), "{reply}");
    assert!(reply.contains("commands have network access"), "{reply}");
}
