//! `haft plugin new`: the created plugins work.

use crate::bed::Bed;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Creates a plugin, follows the printed steps to test it, and returns whether it is good.
fn made_and_tested(language: &str, interpreter: &str) {
    if !["/usr/bin", "/bin"]
        .iter()
        .any(|folder| Path::new(folder).join(interpreter).exists())
    {
        return;
    }
    let bed = Bed::new();
    let ended = bed.haft(&["plugin", "new", language, "my-tool_2"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    let steps: Vec<&str> = ended
        .out
        .lines()
        .skip_while(|line| *line != "Test it:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .collect();
    let folder = Path::new(env!("CARGO_BIN_EXE_haft")).parent().unwrap();
    for step in &steps {
        let output = Command::new("/bin/sh")
            .args(["-c", step])
            .current_dir(bed.work(""))
            .env_clear()
            .env("HOME", bed.home(""))
            .env("PATH", format!("{}:/usr/bin:/bin", folder.display()))
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{step}: {printed} {}",
            String::from_utf8_lossy(&output.stderr)
        );
        if step.contains("haft plugin test") {
            assert!(
                printed.ends_with("\ngood: 1 tool, 12 checks passed\n"),
                "{printed}"
            );
        }
    }
    let path = bed.haft(&["plugin", "new", language, "other"]).out;
    assert!(path.contains("tools:\n  plugins:\n    - path: "), "{path}");
}

#[test]
fn python_works() {
    made_and_tested("python", "python3");
}

#[test]
fn bash_works() {
    made_and_tested("bash", "bash");
}

#[test]
fn ruby_works() {
    made_and_tested("ruby", "ruby");
}

#[test]
fn go_works() {
    made_and_tested("go", "go");
}

#[test]
fn every_language_makes_its_files() {
    let bed = Bed::new();
    for (language, files) in [
        ("python", &["tool.py", "README.md"][..]),
        ("typescript", &["tool.ts", "README.md"]),
        ("go", &["main.go", "go.mod", "README.md"]),
        ("rust", &["src/main.rs", "Cargo.toml", "README.md"]),
        ("bash", &["tool.sh", "README.md"]),
        ("ruby", &["tool.rb", "README.md"]),
        ("lua", &["tools/a_lua.lua", "README.md"]),
    ] {
        let name = format!("a_{language}");
        let ended = bed.haft(&["plugin", "new", language, &name]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        for file in files {
            ended.has(&format!("created {name}/{file}\n"));
            let path = bed.work(&format!("{name}/{file}"));
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(!text.contains("{{name}}"), "{file}");
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o100 != 0, file.starts_with("tool."), "{file}");
        }
    }
}

#[test]
fn existing_files_stay() {
    let bed = Bed::new();
    std::fs::create_dir(bed.work("weather")).unwrap();
    std::fs::write(bed.work("weather/tool.py"), "mine").unwrap();
    let ended = bed.haft(&["plugin", "new", "python", "weather"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{ended:?}");
    assert!(
        ended.err.contains("weather already exists; left unchanged"),
        "{ended:?}"
    );
    assert_eq!(
        std::fs::read_to_string(bed.work("weather/tool.py")).unwrap(),
        "mine"
    );
    assert_eq!(std::fs::read_dir(bed.work("weather")).unwrap().count(), 1);
}

#[test]
fn a_wrong_language_or_name_makes_nothing() {
    let bed = Bed::new();
    for (args, reported) in [
        (["pyhton", "a"], "did you mean \"python\"?"),
        (
            ["cobol", "a"],
            "available: python, typescript, go, rust, bash, ruby, lua",
        ),
        (["python", "../a"], "invalid tool name"),
        (["python", "1a"], "invalid tool name"),
    ] {
        let ended = bed.haft(&["plugin", "new", args[0], args[1]]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.err.contains(reported), "{ended:?}");
    }
    assert_eq!(std::fs::read_dir(bed.work("")).unwrap().count(), 0);
}
