//! Two clients and one file: acknowledged changes are kept, on every backend.

use crate::session::Bed;
use serde_json::json;

/// Each client changes its own lines, as fast as it can.
fn two_clients_edit(backend: &str) {
    let bed = Bed::new();
    let config = bed.config(&format!(
        "tools: {{toolset: deepagents}}\nbackend: {backend}\n"
    ));
    let lines = 40;
    let text: String = (0..lines)
        .map(|line| format!("line {line} old\n"))
        .collect();
    bed.call(
        &["--config", &config],
        "write_file",
        &json!({ "file_path": "/f.txt", "content": text }),
    );
    std::thread::scope(|scope| {
        for half in 0..2 {
            let (bed, config) = (&bed, &config);
            scope.spawn(move || {
                let mut session = bed.session(&["--config", config]);
                for line in (half..lines).step_by(2) {
                    session.done(
                        "edit_file",
                        &json!({
                            "file_path": "/f.txt",
                            "old_string": format!("line {line} old"),
                            "new_string": format!("line {line} new"),
                        }),
                    );
                }
            });
        }
    });
    let read = bed.call(
        &["--config", &config],
        "read_file",
        &json!({ "file_path": "/f.txt" }),
    );
    let content = read.json()["content"].as_str().unwrap().to_owned();
    for line in 0..lines {
        assert!(content.contains(&format!("\tline {line} new")), "{content}");
    }
}

#[test]
fn on_the_disk() {
    two_clients_edit("filesystem");
}

#[test]
fn in_the_store() {
    two_clients_edit("store");
}

#[test]
fn of_two_that_make_one_file_one_wins() {
    for backend in ["filesystem", "store"] {
        let bed = Bed::new();
        let config = bed.config(&format!(
            "tools: {{toolset: deepagents}}\nbackend: {backend}\n"
        ));
        let won: usize = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|number| {
                    let (bed, config) = (&bed, &config);
                    scope.spawn(move || {
                        let mut session = bed.session(&["--config", config]);
                        let won = (0..10).filter(|file| {
                            let content = format!("{number}");
                            let path = format!("/f{file}");
                            let arguments = json!({ "file_path": path, "content": content });
                            !session.call("write_file", &arguments).is_error
                        });
                        won.count()
                    })
                })
                .collect();
            writers
                .into_iter()
                .map(|writer| writer.join().unwrap())
                .sum()
        });
        assert_eq!(won, 10, "{backend}");
    }
}
