//! Checks which command lines run code of the project.

use super::*;

struct Bed {
    root: tempfile::TempDir,
}

impl Bed {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in [
            "project/src",
            "config/lib",
            "elsewhere",
            "project/node_modules",
            "project/test",
            "root",
            "state/tmp/1",
            "current/bin",
        ] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        for file in [
            "project/shout.py",
            "project/src/x.py",
            "project/both.py",
            "config/both.py",
            "config/mine.py",
            "root/x.py",
            "state/tmp/1/x.py",
            "elsewhere/server.js",
        ] {
            std::fs::write(root.path().join(file), "").unwrap();
        }
        Self { root }
    }

    fn path(&self, below: &str) -> PathBuf {
        real(self.root.path()).unwrap().join(below)
    }

    /// A command line in the user's file.
    fn line(&self, words: &str) -> CommandLine {
        self.line_of(words, None, &[], Owner::User, "config")
    }

    fn typed(&self, words: &str) -> CommandLine {
        self.line_of(words, None, &[], Owner::Typed, "project")
    }

    fn line_of(
        &self,
        words: &str,
        dir: Option<&str>,
        values: &[(&str, &str)],
        owner: Owner,
        base: &str,
    ) -> CommandLine {
        let root = self.path("").display().to_string();
        let words = words.replace("ROOT/", &root);
        let mut words = shlex::split(&words).unwrap().into_iter();
        let base = self.path(base);
        let program = words.next().unwrap();
        let program = match program.contains('/') {
            true => plain(&base.join(program)),
            false => PathBuf::from(program),
        };
        let arguments: Vec<String> = words.collect();
        let values = values.iter();
        let environment = AddedVariables {
            names: Vec::new(),
            values: values.map(|(n, v)| ((*n).into(), (*v).into())).collect(),
        };
        let (started, config) = (self.path("project"), self.path("config"));
        let dir = dir.map(|dir| self.path(dir));
        WrittenCommand {
            program: &program,
            arguments: &arguments,
            environment: &environment,
            dir: dir.as_deref(),
            base: &base,
            owner,
            process: &crate::environment::of_test(),
        }
        .line(Folders {
            started: &started,
            current: Some(&self.path("current")),
            work_dir: &started,
            config: Some(&config),
            roots: &[self.path("root")],
            state: Some(&self.path("state")),
        })
    }
}

#[test]
fn paths_in_another_file_never_find_files_of_the_project() {
    let bed = Bed::new();
    // None of these looks in the project: a path that is not beside its file is not
    // found.
    for words in [
        "python3 ./shout.py",
        "python3 shout.py",
        "python3 -u ./shout.py",
        "python3 -m shout",
        "python3 -c 'import shout'",
        "node -r ./shout.py",
        "node --require ./shout.py ROOT/elsewhere/server.js",
        "node -r./shout.py ROOT/elsewhere/server.js",
        "node --import=./shout.py ROOT/elsewhere/server.js",
        "node --import=file:./shout.py ROOT/elsewhere/server.js",
        "bash -c 'python3 ./shout.py'",
        "env python3 shout.py",
        "timeout 5 python3 shout.py",
        "npx .",
        "npx ./src",
        "npx file:./src",
        "npx -y tsx .",
        "npx -y tsx ./shout.py",
        "npm run start",
        "npm exec .",
        "go run ./src",
        "go run .",
        "cargo run",
        "make plugin",
        "deno run ./shout.py",
        "bun shout.py",
        "uv run shout.py",
        "uv run --directory . shout.py",
        "uvx --from . tool",
        "poetry run tool",
        "pipenv run tool",
        "micromamba run tool",
        "rtx exec tool",
        "corepack yarn tool",
        "env-cmd tool",
        "esr tool",
        "python3 .",
        "node .",
        "perl -I. x",
        "java -jar ./shout.py",
        "docker compose run x",
        "docker --log-level debug compose run x",
        "docker -H unix:///x --context y compose up",
        "env npx .",
        "nice -n 5 npx ./src",
        "timeout 5 go run .",
        "uv run python ./src",
        "uvx --from x python ./src",
        "uv run --with x tsx .",
        "npx -y tsx@latest .",
        "npx -y node@20 ./src",
        "npx -y @babel/node@7 .",
        "npx -y @org/tsx@1.2 .",
        "npx -y babel-node .",
        "npx jiti ./src",
        "bunx esno@0.17 .",
        "uvx pytest@8 .",
        "uvx mcp[cli] ./src",
        "uvx 'mcp[cli]>=1.2' .",
        "uvx ipython==8 .",
        "pipx run 'IPython~=8.0' .",
        "python3 -m unittest .",
        "python3 -m unittest.main ./src",
    ] {
        let line = bed.line(words);
        assert_eq!(line.dir, Path::new("/"), "{words}");
        assert_eq!(line.reasons, [""; 0], "{words}");
        let project = bed.path("project").display().to_string();
        let leaks = line.arguments.iter().any(|word| word.contains(&project));
        assert!(!leaks, "{words}: {line:?}");
    }
    let problem = bed.line("python3 ./shout.py").problem.unwrap();
    assert!(problem.contains("./shout.py is looked up in"), "{problem}");
}

#[test]
fn a_file_behind_single_letter_options_needs_trust() {
    let bed = Bed::new();
    for words in ["awk -f shout.py", "awk -fshout.py", "sed -nfshout.py x"] {
        assert_ne!(bed.line(words).reasons, [""; 0], "{words}");
    }
    assert_eq!(bed.line("sed -nfother.py x").reasons, [""; 0]);
}

#[test]
fn a_path_starts_at_the_folder_of_its_file() {
    let bed = Bed::new();
    let mine = bed.path("config/mine.py").display().to_string();
    let both = bed.path("config/both.py").display().to_string();
    let lib = bed.path("config/lib").display().to_string();
    for (words, expected) in [
        ("python3 ./mine.py", vec![mine.clone()]),
        ("python3 mine.py", vec![mine.clone()]),
        ("python3 both.py", vec![both.clone()]),
        (
            "python3 -u both.py --lib=./lib x",
            vec![
                "-u".into(),
                both.clone(),
                format!("--lib={lib}"),
                "x".into(),
            ],
        ),
        // A bare word may be a command, so it is not a folder.
        ("python3 mine.py lib", vec![mine.clone(), "lib".into()]),
    ] {
        let line = bed.line(words);
        assert_eq!(line.arguments, expected, "{words}");
        // Nothing in the folder can become part of it.
        assert_eq!(line.dir, bed.path("project"), "{words}");
        assert_eq!((line.reasons, line.problem), (vec![], None), "{words}");
    }
    let tool = bed.line("node --require ./mine.py ROOT/elsewhere/server.js");
    assert_eq!(tool.arguments[1], mine);
    assert_eq!(tool.dir, Path::new("/"));
}

#[test]
fn a_server_gets_the_work_folder_as_data() {
    let bed = Bed::new();
    let project = bed.path("project").display().to_string();
    for words in [
        "npx -y @modelcontextprotocol/server-filesystem .",
        "npx -y server-filesystem@1.2.3 --root=.",
        "uvx mcp-server-git --repository .",
        "python3 -m mcp_server_git --repository .",
        "pipx run mcp-server-git .",
        "npm exec server-filesystem .",
        "uvx --from some-package server .",
        "uvx --python 3.12 --from=some-package server .",
        "npx -p some-package server .",
        "npx -y --package=some-package server --root=.",
        "uv tool run --from some-package server .",
        "uv run --with some-package server .",
        "uv run python ROOT/elsewhere/server.js .",
        "pipx run --spec some-package server .",
        "bunx -p some-package server .",
        "npx -y @org/server@1.2 .",
        "npx -y @org/mcp@latest .",
        "uvx mcp-server-git[all]==1.2 .",
        "env npx -y server-filesystem .",
        "env -u HOME KEY=value npx -y server-filesystem .",
        "env -S npx -y server-filesystem .",
        "nice npx -y server-filesystem .",
        "nice -n 5 uvx --from some-package server .",
        "timeout 5 npx -y server-filesystem .",
        "sudo -u other env npx -y server-filesystem .",
    ] {
        let line = bed.line(words);
        assert_eq!(line.dir, Path::new("/"), "{words}");
        assert_eq!(line.reasons, [""; 0], "{words}");
        let last = line.arguments.last().unwrap();
        assert!(last.ends_with(&project), "{words}: {line:?}");
    }
    // Never the folder that a launcher is started in.
    for words in [
        "uvx --unknown-option x server .",
        "npx -c 'server .' .",
        "uvx --from . server",
        "npx .",
        "env unknown .",
    ] {
        let line = bed.line(words);
        let is_left = line.arguments.iter().any(|word| word == ".");
        assert!(!is_left, "{words}: {line:?}");
        assert_eq!(line.reasons, [""; 0], "{words}");
        let config = bed.path("config").display().to_string();
        assert!(line.arguments.contains(&config), "{words}: {line:?}");
    }
    for words in ["env -S 'npx -y server .'", "sh -c 'npx -y server .'"] {
        let problem = bed.line(words).problem.unwrap();
        assert!(
            problem.contains("not the work folder"),
            "{words}: {problem}"
        );
    }
    let src = bed.line("npx -y server-filesystem ./src");
    assert_eq!(src.arguments[2], format!("{project}/src"));
    // A program that loads nothing from there runs there.
    for words in [
        "mcp-server-git --repository .",
        "node ROOT/elsewhere/server.js .",
    ] {
        let line = bed.line(words);
        assert_eq!(line.dir, bed.path("project"), "{words}");
        assert_eq!(line.arguments.last().unwrap(), ".", "{words}");
        assert_eq!(line.reasons, [""; 0], "{words}");
    }
}

#[test]
fn files_of_the_project_need_trust_unless_they_are_named_for_this_run() {
    let bed = Bed::new();
    for words in [
        "python3 ROOT/project/shout.py",
        "python3 ../project/shout.py",
        "../project/shout.py",
        "ROOT/project/shout.py",
        "npx ROOT/project",
        "node --import=file://ROOT/project/shout.py",
        "mcp-server --plugin ROOT/project/shout.py",
        "mcp-server shout.py",
        "mcp-server --plugin=./shout.py",
        "node ROOT/elsewhere/server.js ./src/x.py",
    ] {
        let line = bed.line(words);
        assert!(!line.reasons.is_empty(), "{words}: {line:?}");
    }
    for words in [
        "python3 shout.py",
        "python3 ./shout.py",
        "python3 -m shout",
        "npx -y package",
        "make",
        "./shout.py",
        "python3 ../elsewhere/server.js ./src/x.py",
    ] {
        let line = bed.typed(words);
        assert_eq!(line.reasons, [""; 0], "{words}: typed for this run");
        assert_eq!(line.dir, bed.path("project"), "{words}");
        // The same for a project's file that is named for this run.
        let line = bed.line_of(words, None, &[], Owner::Named, "project");
        assert_eq!(line.reasons, [""; 0], "{words}: named for this run");
        assert_eq!(line.dir, bed.path("project"), "{words}");
    }
    // Paths in a file elsewhere never refer to the project.
    for (words, is_asked) in [
        ("python3 ROOT/project/shout.py", false),
        ("ROOT/project/shout.py", false),
        ("mcp-server shout.py", true),
        ("mcp-server --plugin=./shout.py", true),
    ] {
        let line = bed.line_of(words, None, &[], Owner::Named, "config");
        assert_eq!(!line.reasons.is_empty(), is_asked, "{words}: {line:?}");
    }
    let line = bed.line_of("npx -y package", None, &[], Owner::Named, "config");
    assert_eq!(line.dir, PathBuf::from("/"));
    for words in [
        "python3 ../config/mine.py",
        "ROOT/elsewhere/server.js",
        "mcp-server",
    ] {
        let line = bed.typed(words);
        assert_eq!(line.reasons, [""; 0], "{words}");
        assert_eq!(line.dir, bed.path("project"), "{words}");
    }
}

#[test]
fn the_current_folder_is_treated_like_the_project() {
    let bed = Bed::new();
    for file in ["current/x.py", "current/bin/tool"] {
        std::fs::write(bed.path(file), "").unwrap();
    }
    for words in ["python3 ROOT/current/x.py", "ROOT/current/bin/tool"] {
        let reasons = bed.line(words).reasons.join(" ");
        let expected = "is in the folder that haft was started in";
        assert!(reasons.contains(expected), "{words}: {reasons}");
    }
    let line = bed.line_of("npx x", Some("current"), &[], Owner::User, "config");
    assert_eq!(line.reasons.len(), 1, "{line:?}");
}

#[test]
fn a_link_is_judged_by_its_target() {
    use std::os::unix::fs::symlink;
    let bed = Bed::new();
    symlink(bed.path("project/shout.py"), bed.path("config/link.py")).unwrap();
    symlink(bed.path("project"), bed.path("elsewhere/folder")).unwrap();
    symlink("/usr/bin/env", bed.path("elsewhere/harmless")).unwrap();
    for words in ["python3 link.py", "python3 ../elsewhere/folder/shout.py"] {
        assert!(!bed.line(words).reasons.is_empty(), "{words}");
    }
    let line = bed.line("ROOT/elsewhere/harmless python3 -m shout");
    assert_eq!(line.dir, Path::new("/"));
}

#[test]
fn an_escaped_blank_of_env_is_a_blank() {
    let bed = Bed::new();
    let script = bed.path("project/shout.py");
    let word = format!("python3\\_{}", script.display());
    for words in [
        format!("env -S '{word}'"),
        format!("timeout 5 env -S '{word}'"),
    ] {
        let line = bed.line(&words);
        assert!(!line.reasons.is_empty(), "{words}");
        assert!(line.arguments.contains(&word), "{:?}", line.arguments);
    }
}

#[test]
fn cwd_and_variables_are_checked() {
    let bed = Bed::new();
    let with = |words: &str, dir: Option<&str>, values: &[(&str, &str)]| {
        bed.line_of(words, dir, values, Owner::User, "config")
    };
    // With `cwd`, paths start there.
    let line = with("node server.js", Some("elsewhere"), &[]);
    assert_eq!((line.dir, line.reasons), (bed.path("elsewhere"), vec![]));
    for words in [
        "python3 shout.py",
        "python3 -m shout",
        "npx -y package",
        "make",
    ] {
        let line = with(words, Some("project"), &[]);
        assert!(!line.reasons.is_empty(), "{words}");
    }
    assert_eq!(with("mcp-server", Some("project"), &[]).reasons, [""; 0]);
    for (name, value) in [
        ("PYTHONPATH", "."),
        ("PYTHONPATH", "/usr/lib:"),
        ("NODE_OPTIONS", "--require=./shout.py"),
        ("NODE_OPTIONS", "-r ./shout.py"),
        ("LD_PRELOAD", "src/x.so"),
        ("PATH", "bin:/usr/bin"),
    ] {
        let line = with("python3 mine.py", None, &[(name, value)]);
        assert_eq!(line.dir, Path::new("/"), "{name}={value}");
    }
    let line = with("python3 mine.py", None, &[("CONFIG", "./shout.py")]);
    assert!(!line.reasons.is_empty());
    let line = with(
        "python3 mine.py",
        None,
        &[("PYTHONPATH", "/usr/lib"), ("A", "b")],
    );
    assert_eq!((line.dir, line.reasons), (bed.path("project"), vec![]));
}

#[test]
fn programs_that_load_code_from_their_folder_run_elsewhere() {
    let bed = Bed::new();
    for words in [
        "lua mine.py",
        "luajit-2.1 ./mine.py",
        "php mine.py",
        "Rscript mine.py",
        "julia mine.py",
        "python3.13t -m shout",
        "ionice -c3 python3 -m shout",
        "flock ROOT/elsewhere/lock node -r hook ROOT/elsewhere/server.js",
        "flock ROOT/elsewhere/lock -c 'node -r hook x'",
        "op run -- npx -y tool",
        "xvfb-run --cmd=node x",
        "python3 mine.py /usr/bin/node -r hook",
        "node --require=1 ROOT/elsewhere/server.js",
        "dotenvx run -- tool",
    ] {
        let line = bed.line(words);
        assert_eq!(line.dir, Path::new("/"), "{words}");
        assert_eq!(line.reasons, [""; 0], "{words}");
    }
    // A program run by another one gets the work folder as data too.
    let line = bed.line("tini -- npx -y server-filesystem .");
    let project = bed.path("project").display().to_string();
    assert_eq!(line.arguments.last(), Some(&project));
    // These run their arguments elsewhere.
    let line = bed.line("docker run -v .:/data image node");
    assert_eq!(line.dir, bed.path("project"));
    for (file, first, expected) in [
        ("config/loose", "#!/usr/bin/env lua", "/"),
        ("config/split", "#!/usr/bin/env -S node --import tsx", "/"),
        ("config/set", "#!/usr/bin/env A=b python3", "/"),
        ("config/steady", "#!/usr/bin/env python3", "project"),
        ("config/flags", "#!/usr/bin/python3 -u", "project"),
    ] {
        std::fs::write(bed.path(file), format!("{first}\n")).unwrap();
        let line = bed.line(&format!("ROOT/{file}"));
        assert_eq!(line.dir, bed.path(expected), "{first}");
    }
}

#[test]
fn variables_that_load_code_from_the_folder_are_recognised() {
    let bed = Bed::new();
    let with = |name: &str, value: &str| {
        let value = value.replace(
            "ROOT",
            bed.path("").display().to_string().trim_end_matches('/'),
        );
        bed.line_of(
            "python3 mine.py",
            None,
            &[(name, &value)],
            Owner::User,
            "config",
        )
    };
    for (name, value) in [
        ("NODE_OPTIONS", "--require hook"),
        ("NODE_OPTIONS", "--import tsx"),
        ("PERL5OPT", "-Ilib"),
        ("RUBYOPT", "-Ilib"),
        ("RUBYOPT", "-rhook"),
        ("JAVA_OPTS", "-cp x"),
        ("PYTHONUSERBASE", "./pydeps"),
        ("PYTHONPYCACHEPREFIX", "cache"),
        ("LUA_INIT", "@x.lua"),
        ("LUA_PATH_5_4", "/usr/share/?.lua;;"),
        ("GEM_HOME", "gems"),
        ("R_PROFILE", "x"),
        ("JULIA_LOAD_PATH", "@:x"),
        ("LD_PRELOAD", "/usr/lib/a.so b.so"),
        ("HOME", "home"),
    ] {
        let line = with(name, value);
        assert_eq!(line.dir, Path::new("/"), "{name}={value}");
        assert_eq!(line.reasons, [""; 0], "{name}={value}");
    }
    for (name, value) in [
        ("ANYTHING", "src"),
        ("ANYTHING", "./src"),
        ("ANYTHING", "-x ./src/x.py"),
        ("PYTHONPATH", "/usr/lib:ROOT/project/src"),
        ("NODE_OPTIONS", "--require=ROOT/project/shout.py"),
    ] {
        let line = with(name, value);
        assert!(!line.reasons.is_empty(), "{name}={value}: {line:?}");
    }
    for (name, value) in [
        ("NODE_ENV", "test"),
        ("WORKSPACE", "."),
        ("WORKSPACE", "ROOT/project"),
        ("NODE_OPTIONS", "--max-old-space-size=4096 --no-warnings"),
        ("PYTHONUNBUFFERED", "1"),
        ("PATH", "/usr/bin:ROOT/project/src"),
    ] {
        let line = with(name, value);
        let found = (line.dir, line.reasons);
        assert_eq!(found, (bed.path("project"), vec![]), "{name}={value}");
    }
}

#[test]
fn files_that_commands_can_write_need_trust() {
    let bed = Bed::new();
    for words in [
        "ROOT/root/x.py",
        "python3 ROOT/root/x.py",
        "ROOT/state/tmp/1/x.py",
        "python3 ROOT/state/tmp/1/x.py",
    ] {
        let line = bed.line(words);
        let problem = line.reasons.join(", ");
        assert!(
            problem.contains("where commands can write"),
            "{words}: {problem}"
        );
        assert_eq!(bed.typed(words).reasons, [""; 0], "{words}");
    }
}

/// Programs in a folder of `PATH` that run code of the project indirectly.
#[test]
fn programs_run_indirectly_are_checked_too() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let bed = Bed::new();
    let sys = bed.path("sys");
    std::fs::create_dir_all(&sys).unwrap();
    let root = bed.path("").display().to_string();
    let program = |name: &str, text: &str| {
        let file = sys.join(name);
        std::fs::write(&file, text.replace("ROOT/", &root)).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    program("lua", "\x7fELF");
    program("direct", "#!ROOT/sys/lua\n");
    program("by-env", "#!/usr/bin/env linked\n");
    program("split", "#!/usr/bin/env -S linked\n");
    program("wrap", "#!ROOT/sys/lua\n");
    program("nested", "#!ROOT/sys/wrap\n");
    program("venv", "#!ROOT/project/bin/interpreter\n");
    program("venv2", "#!/usr/bin/env ROOT/project/bin/interpreter\n");
    program("steady", "#!/bin/sh\n");
    program("option", "#!/bin/sh ROOT/project/run.sh\n");
    program(
        "variable",
        "#!/usr/bin/env -S PYTHONPATH=ROOT/project python3\n",
    );
    symlink(sys.join("lua"), sys.join("linked")).unwrap();
    let script = bed.path("project/shout.py");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink(script, sys.join("into")).unwrap();
    let path = format!("{}:/usr/bin:/bin", sys.display());
    let line = |words: &str| bed.line_of(words, None, &[("PATH", &path)], Owner::User, "config");
    for words in [
        "direct",
        "by-env",
        "split",
        "nested",
        "flock F direct",
        "ionice -c3 direct",
        "ionice -c3 linked -e x",
        "flock F nested",
        "flock F ROOT/sys/direct",
        "flock F -c 'direct --x'",
        "script --command=direct",
        "python3 ROOT/elsewhere/server.js ROOT/sys/direct",
    ] {
        let line = line(words);
        assert_eq!(line.dir, Path::new("/"), "{words}: {line:?}");
    }
    for words in [
        "venv",
        "ROOT/sys/venv",
        "venv2",
        "flock F venv",
        "flock F into",
        "option",
        "variable",
        "ionice option",
        "node -r ROOT/project/x ROOT/elsewhere/server.js",
        "node --require=ROOT/project/x ROOT/elsewhere/server.js",
        "node ROOT/project/x",
        "lua -e 'dofile(\"ROOT/project/helper.lua\")'",
        "sh -c 'exec ROOT/project/run.sh'",
        "sh -c 'cd ROOT/project && ./run.sh'",
        "python3 -c 'import os; os.system(\"ROOT/project/run.sh\")'",
        "flock F -c 'sh ROOT/project/run.sh'",
    ] {
        let line = line(words);
        assert!(!line.reasons.is_empty(), "{words}: {line:?}");
    }
    for (name, value) in [
        ("LUA_PATH", "ROOT/project/?.lua"),
        ("NODE_OPTIONS", "--require=ROOT/project/x"),
    ] {
        let value = value.replace("ROOT/", &root);
        let values = [("PATH", path.as_str()), (name, value.as_str())];
        let line = bed.line_of("steady", None, &values, Owner::User, "config");
        assert!(!line.reasons.is_empty(), "{name}: {line:?}");
    }
    // Unrelated command lines are not changed.
    for words in [
        "steady",
        "flock F steady",
        "steady --root ROOT/project",
        "steady --log ROOT/project/new.log",
        "node ROOT/elsewhere/server.js ROOT/project",
    ] {
        let line = line(words);
        assert_eq!(line.reasons, [""; 0], "{words}");
        assert_eq!(line.dir, bed.path("project"), "{words}");
    }
}

#[test]
fn a_text_is_read_as_a_shell_would_read_it() {
    let bed = Bed::new();
    let home = bed.path("").display().to_string();
    let home = home.trim_end_matches('/');
    let values = [("HOME", home), ("P", &format!("{home}/project"))];
    let of =
        |words: &str, dir: Option<&str>| bed.line_of(words, dir, &values, Owner::User, "config");
    std::fs::write(bed.path("project/run.sh"), "").unwrap();
    for words in [
        "sh -c 'exec ~/project/run.sh'",
        "sh -c 'exec $HOME/project/run.sh'",
        "sh -c 'exec \"${HOME}/project/run.sh\"'",
        "sh -c 'cd ~/project && ./run.sh'",
        "sh -c 'cd ${HOME:-/x}/project; make'",
        "sh -c '$P/run.sh'",
        "sh -c '~/pro*/run.sh'",
        "python3 -c 'import runpy, os; runpy.run_path(os.path.expanduser(\"~/project/run.sh\"))'",
        "ssh -o ProxyCommand=~/project/run.sh host",
        "ssh -oProxyCommand=$HOME/project/run.sh host",
        "ssh -o 'ProxyCommand=sh ~/project/run.sh' host",
        "git -c 'alias.x=!sh ~/project/run.sh' x",
        "git -c alias.x=!~/project/run.sh x",
        "flock F -c 'sh ~/project/run.sh'",
    ] {
        let line = of(words, None);
        assert!(!line.reasons.is_empty(), "{words}: {line:?}");
    }
    // From a parent folder of the project.
    for words in [
        "sh -c 'project/run.sh'",
        "sh -c 'cd project && ./run.sh'",
        "sh -c '. ./project/run.sh'",
        "sh -c '$PWD/project/run.sh'",
        "python3 project/shout.py",
        "git -c alias.x=!project/run.sh x",
    ] {
        let line = of(words, Some(""));
        assert!(!line.reasons.is_empty(), "{words}: {line:?}");
    }
    // Unrelated texts need no trust.
    for words in [
        "sh -c 'exec ~/elsewhere/server.js'",
        "sh -c 'cd ~/elsewhere && node server.js'",
        "sh -c 'exec ~/projects/run.sh'",
        "sh -c 'exec $UNKNOWN/run.sh'",
        "sh -c 'cat /etc/*.conf'",
        "npx -y @modelcontextprotocol/server-filesystem ~/project",
        "npx -y @modelcontextprotocol/server-filesystem ROOT/project $HOME/elsewhere",
        "ssh -o ProxyCommand=~/elsewhere/server.js host",
        "steady --root=~/project",
    ] {
        let line = of(words, None);
        // A relative or a loading variable would be another reason.
        let reasons: Vec<_> = line
            .reasons
            .iter()
            .filter(|why| !why.starts_with("P "))
            .collect();
        assert!(reasons.is_empty(), "{words}: {line:?}");
    }
}
