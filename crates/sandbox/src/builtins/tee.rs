//! `tee`: the builtin stops at the first file it cannot write, passes nothing on, and
//! changes bytes that are not UTF-8.

use crate::tree::describe;
use async_trait::async_trait;
use bashkit::{Builtin, BuiltinContext, Error, ExecResult, Result, vfs_join};

const USAGE: &str = "usage: tee [-a] [FILE]...\n\
    Copy standard input to each FILE, and also to standard output.\n\n  \
    -a, --append  append to the files instead of overwriting them\n";

/// Copies its input to files and to its output.
pub(crate) struct Tee;

/// Whether the files are replaced or extended.
#[derive(Clone, Copy)]
enum Mode {
    Overwrite,
    Append,
}

#[async_trait]
impl Builtin for Tee {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let (mode, files) = match parse(ctx.args) {
            Ok(parsed) => parsed,
            Err(result) => return Ok(*result),
        };
        let input = ctx.stdin.map_or(&b""[..], |stdin| stdin.as_bytes());
        let (mut problems, mut code) = (String::new(), 0);
        for file in files {
            let path = vfs_join(ctx.cwd, file);
            let written = match mode {
                Mode::Overwrite => ctx.fs.write_file(&path, input).await,
                Mode::Append => ctx.fs.append_file(&path, input).await,
            };
            match written {
                Ok(()) => {}
                Err(Error::Io(error)) => {
                    problems.push_str(&format!("tee: {}\n", describe(&error)));
                    code = 1;
                }
                Err(other) => return Err(other),
            }
        }
        Ok(ExecResult {
            stdout: input.into(),
            stderr: problems.into(),
            exit_code: code,
            ..ExecResult::default()
        })
    }
}

/// Parses the arguments. An error is the reply to `--help` or to an unknown option.
fn parse(args: &[String]) -> std::result::Result<(Mode, Vec<&str>), Box<ExecResult>> {
    let (mut mode, mut files, mut options) = (Mode::Overwrite, Vec::new(), true);
    for arg in args {
        match arg.as_str() {
            file if !options || file == "-" || !file.starts_with('-') => files.push(file),
            "--" => options = false,
            "--append" => mode = Mode::Append,
            "--help" => return Err(Box::new(ExecResult::ok(USAGE))),
            // Accepted without effect: haft-sandbox has neither signals nor pipe errors.
            "--ignore-interrupts" | "--output-error" => {}
            long if long.starts_with("--output-error=") => {}
            short if !short.starts_with("--") && short.chars().skip(1).all(is_short) => {
                if short.contains('a') {
                    mode = Mode::Append;
                }
            }
            other => {
                let problem = format!("tee: unrecognized option '{other}'\n{USAGE}");
                return Err(Box::new(ExecResult::err(problem, 1)));
            }
        }
    }
    Ok((mode, files))
}

fn is_short(letter: char) -> bool {
    matches!(letter, 'a' | 'i' | 'p')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_files_are_distinguished() {
        let of = |line: &str| {
            let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            parse(&args)
                .map(|(mode, files)| {
                    let files: Vec<String> = files.into_iter().map(str::to_owned).collect();
                    (matches!(mode, Mode::Append), files.join(" "))
                })
                .map_err(|result| result.exit_code)
        };
        let expected = |append: bool, files: &str| Ok((append, files.to_owned()));
        assert_eq!(of(""), expected(false, ""));
        assert_eq!(of("a b"), expected(false, "a b"));
        assert_eq!(of("-a a -ip b"), expected(true, "a b"));
        assert_eq!(of("--append --output-error=warn a"), expected(true, "a"));
        assert_eq!(of("- -- -a"), expected(false, "- -a"));
        assert_eq!(of("-x a"), Err(1));
        assert_eq!(of("--help"), Err(0));
    }
}
