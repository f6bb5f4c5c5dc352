//! Actions that a module without rights cannot perform.

use haft_script::{Limits, Rights};

use crate::process::{Worker, tool};

/// Names in `debug` of Lua 5.4. No module gets the library, so they cannot be listed.
const DEBUG: &str = "debug.debug debug.gethook debug.getinfo debug.getlocal debug.getmetatable \
    debug.getregistry debug.getupvalue debug.getuservalue debug.setcstacklimit debug.sethook \
    debug.setlocal debug.setmetatable debug.setupvalue debug.setuservalue debug.upvalueid debug.upvaluejoin";

/// Names that a module of a project may use from each library, in addition to all of
/// `coroutine`, `haft`, `math`, `table` and `utf8`.
const KEPT: &str = "_G _VERSION assert collectgarbage error getmetatable ipairs load next pairs pcall \
    print rawequal rawget rawlen rawset select setmetatable tonumber tostring type xpcall \
    debug.traceback os.clock os.date os.difftime os.time \
    string.byte string.char string.find string.format string.gmatch string.gsub string.len string.lower \
    string.match string.pack string.packsize string.rep string.reverse string.sub string.unpack string.upper";

/// Every name of Lua's standard libraries is either available or explains why it is
/// missing: none is just nil.
#[test]
fn the_machine_is_out_of_reach_and_every_missing_name_is_explained() {
    let body = r#"
        local names = {}
        for name, value in pairs(_G) do
          if type(value) ~= "table" or name == "_G" then names[#names + 1] = name end
        end
        for _, library in ipairs({"debug", "io", "os", "package", "string"}) do
          for name in pairs(_G[library]) do names[#names + 1] = library .. "." .. name end
        end
        return table.concat(names, " ")"#;
    let all = Worker::load(&tool(body), Rights::Full, Limits::default()).success();
    let all = format!("{all} {DEBUG}");
    for known in ["package.loaded", "io.stdout", "os.setlocale", "warn"] {
        assert!(all.split(' ').any(|name| name == known), "{known}: {all}");
    }
    let body = format!(
        r#"
        local wrong = {{}}
        local kept = " " .. ([[{KEPT}]]):gsub("%s+", " ") .. " "
        for name in ([[{all}]]):gmatch("%S+") do
          local is_kept = kept:find(" " .. name .. " ", 1, true) ~= nil
          local done, message = pcall(function()
            local value = _G
            for part in name:gmatch("[^.]+") do value = value[part] end
            if is_kept then return assert(value) end
            return value("x")
          end)
          local explained = name .. " is not available in a project's module: "
          if done ~= is_kept or (not done and not message:find(explained, 1, true)) then
            wrong[#wrong + 1] = name .. ": " .. tostring(message)
          end
        end
        return table.concat(wrong, "\n")"#
    );
    let mut worker = Worker::pure(&tool(&body));
    assert_eq!(worker.success(), "");
    assert_eq!(worker.success(), "");
}

#[test]
fn available_names_are_exactly_those_listed() {
    let body = r#"
        local names = {}
        for name in pairs(_G) do names[#names + 1] = name end
        for name in pairs(os) do names[#names + 1] = "os." .. name end
        table.sort(names)
        return table.concat(names, " ")"#;
    assert_eq!(
        Worker::pure(&tool(body)).success(),
        "_G _VERSION assert collectgarbage coroutine debug dofile error getmetatable haft io ipairs load loadfile \
         math next os os.clock os.date os.difftime os.execute os.exit os.getenv os.remove os.rename os.setlocale \
         os.time os.tmpname package pairs pcall print rawequal rawget rawlen rawset require select setmetatable \
         string table tonumber tostring type utf8 warn xpcall"
    );
}

#[test]
fn missing_functions_name_their_replacement() {
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
        (
            "package.path .. ';./?.lua'",
            "package.path",
            "put the code into this file",
        ),
        (
            "package.loaded.helpers",
            "package.loaded",
            "put the code into this file",
        ),
        (
            "1 package.path = './?.lua'",
            "package.path",
            "put the code into this file",
        ),
        ("io.stdout:write('hello')", "io.stdout", "return the text"),
        (
            "debug.sethook(print)",
            "debug.sethook",
            "debug.traceback, print and error",
        ),
        ("string.dump(print)", "string.dump", "keep the source"),
    ] {
        let attempt = format!("local helpers = {attempt}");
        let mut worker = Worker::pure(&tool(&attempt));
        let message = worker.failure();
        assert!(
            message.contains(&format!("{name} is not available in a project's module")),
            "{message}"
        );
        assert!(message.contains(instead), "{message}");
        assert!(message.contains("~/.config/haft/tools"), "{message}");
        // While loading as well.
        let message = Worker::pure(&attempt).describe();
        assert!(message["message"].to_string().contains(name), "{message}");
    }
}

#[test]
fn a_canary_file_is_not_touched() {
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
        // While loading as well.
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
        assert(not pcall(string.dump, print))
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
fn the_available_functions_work() {
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
        assert(debug.traceback("here"):find("here\nstack traceback:", 1, true) == 1)
        -- A module may still look for what is not there, and bring values of its own.
        assert(io.open and not io.nothing and not package.nothing)
        package.mine = 1
        assert(package.mine == 1)
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
