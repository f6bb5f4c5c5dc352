//! What a module without rights cannot do.

use haft_script::{Limits, Rights};

use crate::process::{Worker, tool};

#[test]
fn nothing_of_the_machine_is_there() {
    let names = "os.setlocale package.loadlib package debug debug.sethook io.stdin io.stdout io.stderr \
                 string.dump warn arg";
    let body = format!(
        r#"
        local found = {{}}
        for name in ([[{names}]]):gmatch("%S+") do
          local value = _G
          for part in name:gmatch("[^.]+") do value = type(value) == "table" and value[part] or nil end
          if value ~= nil then found[#found + 1] = name end
        end
        return table.concat(found, " ")"#
    );
    let mut worker = Worker::pure(&tool(&body));
    assert_eq!(worker.success(), "");
    assert_eq!(worker.success(), "");
}

#[test]
fn what_is_there_is_a_list() {
    let body = r#"
        local names = {}
        for name in pairs(_G) do names[#names + 1] = name end
        for name in pairs(os) do names[#names + 1] = "os." .. name end
        table.sort(names)
        return table.concat(names, " ")"#;
    assert_eq!(
        Worker::pure(&tool(body)).success(),
        "_G _VERSION assert collectgarbage coroutine dofile error getmetatable haft io ipairs load loadfile \
         math next os os.clock os.date os.difftime os.execute os.exit os.getenv os.remove os.rename os.time \
         os.tmpname pairs pcall print rawequal rawget rawlen rawset require select setmetatable string table \
         tonumber tostring type utf8 xpcall"
    );
}

#[test]
fn what_is_not_available_says_so_and_what_to_use_instead() {
    for (attempt, name, instead) in [
        ("io.open('notes.txt')", "io.open", "haft.call"),
        ("io.lines('notes.txt')", "io.lines", "haft.call"),
        ("io.popen('ls')", "io.popen", "run commands with haft.call"),
        ("io.write('hello')", "io.write", "return the text"),
        (
            "os.execute('ls')",
            "os.execute",
            "run commands with haft.call",
        ),
        ("os.remove('notes.txt')", "os.remove", "haft.call"),
        ("os.getenv('HOME')", "os.getenv", "parameter"),
        (
            "require('helpers')",
            "require",
            "put the code into this file",
        ),
        (
            "dofile('helpers.lua')",
            "dofile",
            "put the code into this file",
        ),
    ] {
        let mut worker = Worker::pure(&tool(attempt));
        let message = worker.failure();
        assert!(
            message.contains(&format!("{name} is not available in a project's module")),
            "{message}"
        );
        assert!(message.contains(instead), "{message}");
        assert!(message.contains("~/.config/haft/tools"), "{message}");
        // At load as well.
        let message = Worker::pure(&format!("local helpers = {attempt}")).describe();
        assert!(message["message"].to_string().contains(name), "{message}");
    }
}

#[test]
fn a_canary_stays_away() {
    let canary = std::env::temp_dir().join(format!("haft-script-canary-{}", std::process::id()));
    let touch = format!("echo > {}", canary.display());
    for attempt in [
        format!("os.execute('{touch}')"),
        format!("io.popen('{touch}'):close()"),
        format!("io.open('{}', 'w'):close()", canary.display()),
        "os.exit(3)".to_owned(),
        format!("load(\"os.execute('{touch}')\")()"),
        format!("getmetatable('').__index.os.execute('{touch}')"),
        format!("_G._G.os.execute('{touch}')"),
    ] {
        let mut worker = Worker::pure(&tool(&attempt));
        let message = worker.failure();
        assert!(
            message.contains("nil value") || message.contains("is not available"),
            "{attempt}: {message}"
        );
        worker.close();
        assert_eq!(worker.code(), Some(0));
        // At load as well.
        let message = Worker::pure(&attempt).describe()["message"].to_string();
        assert!(
            message.contains("nil value") || message.contains("is not available"),
            "{message}"
        );
    }
    assert!(!canary.exists());
}

#[test]
fn bytecode_is_refused() {
    let body = r#"
        assert(string.dump == nil)
        local attempts = {{"\27Lua"}, {"\27Lua", "n", "b"}, {"return 1", "n", "b"}, {"\27Lua", "n", "bt"},
          {function() return "\27LuaT" end}}
        for _, attempt in ipairs(attempts) do
          local loaded, message = load(table.unpack(attempt))
          assert(loaded == nil and message:find("binary"), message)
        end
        assert(load("return 1 + 1")() == 2)
        assert(load("return x", "n", "t", {x = 5})() == 5)
        assert(load("return x", "n", "t", nil) and not pcall(load("return x", "n", "t", nil)))
        assert(load("return haft")() == haft)
        return (select(2, load("x = =")))"#;
    assert_eq!(
        Worker::pure(&tool(body)).success(),
        "[string \"x = =\"]:1: unexpected symbol near '='"
    );
}

#[test]
fn what_is_useful_works() {
    let body = r#"
        assert(type(os.time()) == "number" and os.date("!%Y", 0) == "1970" and os.difftime(2, 1) == 1.0 and os.clock() >= 0)
        assert(utf8.char(233) == "é" and ("x"):rep(3) == "xxx" and math.type(1) == "integer" and select('#', nil, nil) == 2)
        local ok, message = pcall(error, "caught", 0)
        assert(not ok and message == "caught")
        ok, message = xpcall(function(a) error(a, 0) end, function(m) return m .. "!" end, "hey")
        assert(not ok and message == "hey!")
        local co = coroutine.create(function(a) local b = coroutine.yield(a + 1) error("e" .. b, 0) end)
        assert(select(2, coroutine.resume(co, 1)) == 2)
        ok, message = coroutine.resume(co, 2)
        assert(not ok and message == "e2" and coroutine.close(coroutine.create(print)))
        -- A yield may cross a protected call.
        local through = coroutine.wrap(function() return pcall(function() return coroutine.yield(1) + 1 end) end)
        assert(through() == 1 and select(2, through(4)) == 5)
        assert(collectgarbage("count") > 0 and collectgarbage("stop") == 0 and collectgarbage() == 0)
        return "fine""#;
    assert_eq!(Worker::pure(&tool(body)).success(), "fine");
}

#[test]
fn print_and_log_go_to_standard_error() {
    let mut worker = Worker::load(
        &tool("print('a', 1, nil) haft.log('b') return 'c'"),
        Rights::Pure,
        Limits::default(),
    );
    assert_eq!(worker.success(), "c");
    assert_eq!(worker.notes(), "a\t1\tnil\nb\n");
}
