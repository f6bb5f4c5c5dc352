//! `execute_python`.

use crate::bed::Server;
use serde_json::json;

#[test]
fn the_last_expression_is_the_result() {
    let mut server = Server::alone(&[]);
    let answer = server.python("import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7");
    assert_eq!(
        answer.json,
        json!({
            "status": "success", "stdout": "out\n", "stderr": "err\n", "exit_code": 0,
            "result": "42", "truncated": false,
        })
    );
    assert!(!answer.is_error);
    // A statement has no value, and each call starts a new interpreter.
    let answer = server.python("x = 1");
    assert_eq!(answer.json.get("result"), None);
    let answer = server.python("x");
    assert!(
        answer
            .text("stderr")
            .ends_with("NameError: name 'x' is not defined\n")
    );
}

#[test]
fn a_traceback_shows_only_the_users_code() {
    let mut server = Server::alone(&[]);
    let answer = server.python("def half(n):\n    return n / 0\nhalf(1)");
    assert!(answer.is_error);
    let lines: Vec<&str> = answer.text("stderr").lines().collect();
    assert_eq!(lines[0], "Traceback (most recent call last):");
    assert_eq!(lines[1], "  File \"<code>\", line 3, in <module>");
    assert!(lines.contains(&"    return n / 0"));
    assert_eq!(lines.last(), Some(&"ZeroDivisionError: division by zero"));
    assert!(!answer.text("stderr").contains("driver"));

    let answer = server.python("x = = 2");
    assert_eq!(answer.json["exit_code"], 1);
    assert!(answer.text("stderr").contains("line 1"), "{}", answer.json);
    assert!(
        answer
            .text("stderr")
            .ends_with("SyntaxError: invalid syntax\n")
    );

    let answer = server.python("import sys; sys.exit(3)");
    assert_eq!(answer.json["exit_code"], 3);
    assert_eq!(answer.json["status"], "error");
}

#[test]
fn images_and_files_are_returned() {
    let mut server = Server::alone(&[]);
    let answer = server.python(
        "import zlib, struct\n\
         def chunk(kind, data):\n    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))\n\
         rows = b''.join(b'\\0' + b'\\xff\\0\\0' * 4 for _ in range(4))\n\
         head = struct.pack('>IIBBBBB', 4, 4, 8, 2, 0, 0, 0)\n\
         picture = b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', head) + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b'')\n\
         open('/tmp/images/a.png', 'wb').write(picture)\n\
         open('/tmp/images/notes.txt', 'w').write('no picture')\n\
         open('/kept.txt', 'w').write('kept')\n",
    );
    assert_eq!(answer.images, ["image/png"], "{}", answer.json);
    assert_eq!(answer.json["files_written"], json!(["/kept.txt"]));
    // Images of earlier calls are not shown again.
    let answer = server.python("open('/kept.txt').read()");
    assert_eq!(answer.text("result"), "'kept'");
    assert!(answer.images.is_empty());
}

#[test]
fn long_output_is_truncated_and_marked() {
    let mut server = Server::alone(&[]);
    let answer = server.python("print('ä' * 100_000)");
    assert_eq!(answer.json["truncated"], true);
    assert!(answer.text("stdout").len() < 50_000);
    assert!(answer.text("stdout").contains("of 200001 bytes omitted"));
    let answer = server.python("import sys; sys.stdout.buffer.write(bytes(range(256)) * 10)");
    assert_eq!(answer.text("stdout"), "(binary output, 2.5KB)");
}

#[test]
fn the_list_of_absent_modules_is_correct() {
    let mut server = Server::alone(&[]);
    let answer = server.python(
        "import importlib, sys\n\
         absent = []\n\
         for name in sorted(n for n in sys.stdlib_module_names if not n.startswith('_')):\n\
         \x20   try:\n        importlib.import_module(name)\n\
         \x20   except ModuleNotFoundError as error:\n        absent.append(error.name)\n\
         print(*absent)",
    );
    let source = include_str!("../../src/modules.rs");
    let (_, after) = source.split_once("ABSENT: &str = \"").unwrap();
    let (list, _) = after.split_once("\";").unwrap();
    let listed: Vec<&str> = list
        .split([' ', '\n', '\\'])
        .filter(|name| !name.is_empty())
        .collect();
    let absent: Vec<&str> = answer.text("stdout").split_whitespace().collect();
    assert_eq!(absent, listed, "{}", answer.json);
}

#[test]
fn a_missing_module_is_explained() {
    let mut server = Server::alone(&[]);
    for (module, expected, unwanted) in [
        ("unittest.mock", "cannot add it", "can add it"),
        ("ssl", "cannot add it", "can add it"),
        ("lzma", "cannot add it", "can add it"),
        ("numpy", "execution: local", "can add it"),
        ("pandas.io", ".venv/bin/pip install pandas", "can add it"),
        ("yaml", "install_packages can add it", "execution"),
    ] {
        let answer = server.python(&format!("import {module}"));
        let hint = answer.text("hint");
        assert!(hint.contains(expected), "{module}: {hint}");
        assert!(!hint.contains(unwanted), "{module}: {hint}");
    }
}
