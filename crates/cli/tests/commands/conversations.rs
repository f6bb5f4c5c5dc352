//! Programs with a conversation over pipes, and commands with input.

use crate::stage::{LEVELS, Stage, text};
use haft_ops::executor::{Executor, Exit, Input};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_program_answers_line_by_line() {
    for stage in LEVELS.map(Stage::at) {
        let script = "echo up >&2; while read -r line; do echo \"got $line\"; done; exit 5";
        let mut talk = stage.local.converse(stage.bash(script)).await.unwrap();
        let mut lines = BufReader::new(&mut talk.output).lines();
        for word in ["one", "two", "drei"] {
            talk.input
                .write_all(format!("{word}\n").as_bytes())
                .await
                .unwrap();
            let line = lines.next_line().await.unwrap().unwrap();
            assert_eq!(line, format!("got {word}"));
        }
        // It ends when its input ends.
        drop(talk.input);
        assert_eq!(lines.next_line().await.unwrap(), None);
        let ended = talk
            .running
            .end()
            .wait_for(Option::is_some)
            .await
            .unwrap()
            .clone()
            .unwrap();
        let ended = ended.as_ref().as_ref().unwrap();
        assert_eq!(ended.status, Exit::Code(5));
        let printed = [ended.error.head.as_slice(), &ended.error.tail].concat();
        assert_eq!(printed, b"up\n");
    }
}

#[tokio::test]
async fn dropping_a_process_ends_its_tree() {
    for stage in LEVELS.map(Stage::at) {
        let talk = stage
            .local
            .converse(stage.bash("sleep 300 & setsid sleep 300 & echo > ready; cat"))
            .await
            .unwrap();
        stage.wait_for("ready").await;
        drop(talk);
        stage.gone(Duration::from_secs(2)).await;
    }
}

#[tokio::test]
async fn writing_to_an_ended_program_fails() {
    for stage in LEVELS.map(Stage::at) {
        let mut talk = stage.local.converse(stage.bash("exit 3")).await.unwrap();
        let mut rest = Vec::new();
        talk.output.read_to_end(&mut rest).await.unwrap();
        let written = tokio::time::timeout(Duration::from_secs(10), async {
            loop {
                if let Err(error) = talk.input.write_all(b"anybody?\n").await {
                    return error;
                }
            }
        });
        assert_eq!(
            written.await.unwrap().kind(),
            std::io::ErrorKind::BrokenPipe
        );
    }
}

#[tokio::test]
async fn a_command_reads_what_it_is_given() {
    for stage in LEVELS.map(Stage::at) {
        let mut launch = stage.bash("wc -c; echo done");
        launch.input = Input::Given(vec![b'x'; 3_000_000].into());
        let cancel = CancellationToken::new();
        let done = stage.local.run(launch, &|_, _| (), &cancel).await.unwrap();
        assert_eq!(text(&done), "3000000\ndone\n");
        // A command that does not read its input is not delayed.
        let mut launch = stage.bash("echo no thanks");
        launch.input = Input::Given(vec![b'x'; 3_000_000].into());
        let done = stage.local.run(launch, &|_, _| (), &cancel).await.unwrap();
        assert_eq!(text(&done), "no thanks\n");
    }
}
