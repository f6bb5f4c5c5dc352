-- Runs before a module and makes the world that the module sees. Whatever is used
-- later is taken into a local first: a module may change every table it can reach.
local native, rights = ...

local error, rawset, select, tostring, type = error, rawset, select, tostring, type
local concat, find, format, pack = table.concat, string.find, string.format, table.pack
local raw_load, raw_pcall, raw_xpcall = load, pcall, xpcall
local raw_close, raw_resume = coroutine.close, coroutine.resume
local raw_collect = collectgarbage

-- A module that was stopped may catch that error. Everything that can catch one
-- raises it again.
local function settle(...)
  if native.over() then error("stopped", 0) end
  return ...
end

function pcall(...) return settle(raw_pcall(...)) end

function xpcall(body, handler, ...)
  -- No hook is called while an error of the hook is handled, so a handler of the
  -- module would run without any limit.
  local function guarded(message)
    if native.over() then return message end
    return handler(message)
  end
  return settle(raw_xpcall(body, guarded, ...))
end

function coroutine.resume(...) return settle(raw_resume(...)) end
function coroutine.close(...) return settle(raw_close(...)) end

function print(...)
  local parts = pack(...)
  for index = 1, parts.n do parts[index] = tostring(parts[index]) end
  native.log(concat(parts, "\t"))
end

-- Functions of haft say what is wrong as a second value; the error carries the line of
-- the module, or its file where a tail call has forgotten the line.
local function placed(text) return format("%s: %s", native.place() or native.source, text) end

local function checked(ok, ...)
  if not ok then error(placed((...)), 0) end
  return ...
end

haft = {
  call = function(tool, args) return checked(native.call(tool, args)) end,
  update = function(text) return checked(native.update(text)) end,
  log = function(text) native.log(tostring(text)) end,
  json = {
    null = native.null,
    array = function(list) return checked(native.array(list)) end,
    encode = function(value) return checked(native.encode(value)) end,
    decode = function(text) return checked(native.decode(text)) end,
  },
}

if rights == "pure" then
  -- What is not named here is not there, whatever the next Lua adds.
  local kept = {}
  for name in ([[_G _VERSION assert coroutine error getmetatable haft ipairs math next pairs pcall print
    rawequal rawget rawlen rawset select setmetatable string table tonumber tostring type utf8
    xpcall]]):gmatch("%S+") do
    kept[name] = true
  end
  local clock = { clock = os.clock, date = os.date, difftime = os.difftime, time = os.time }
  for name in pairs(_G) do
    if not kept[name] then _G[name] = nil end
  end
  os, io, package, debug = clock, {}, {}, { traceback = native.traceback }

  -- Everything of Lua that a project's module may not use, and what to use instead. A function
  -- fails when it is called, so that a module may look for it; a value fails when it is used.
  local own = "a module in the user's own tools folder (~/.config/haft/tools) has all of Lua's libraries"
  local files = "read and write files with haft.call(tool, arguments) and the session's file tools"
  local commands = "run commands with haft.call(tool, arguments) and the session's command tool"
  local whole = "put the code into this file, which is the whole module"
  local output = "return the text, or log it with print"
  local removed = {
    { instead = files, values = "io.stdin", functions = [[io.close io.flush io.input io.lines io.open
      io.output io.read io.tmpfile io.type os.remove os.rename os.tmpname]] },
    { instead = output, values = "io.stdout io.stderr", functions = "io.write warn" },
    { instead = commands, functions = "io.popen os.execute" },
    { instead = whole, functions = "dofile loadfile require package.loadlib package.searchpath", values = [[
      package.config package.cpath package.loaded package.path package.preload package.searchers]] },
    { instead = "return a result", functions = "os.exit" },
    { instead = "declare what it needs as a parameter", functions = "os.getenv" },
    { instead = "write numbers and dates with string.format and os.date", functions = "os.setlocale" },
    { instead = "keep the source as text and load that", functions = "string.dump" },
    { instead = "find errors with debug.traceback, print and error", functions = [[debug.debug
      debug.gethook debug.getinfo debug.getlocal debug.getmetatable debug.getregistry debug.getupvalue
      debug.getuservalue debug.setcstacklimit debug.sethook debug.setlocal debug.setmetatable
      debug.setupvalue debug.setuservalue debug.upvalueid debug.upvaluejoin]] },
  }
  local values = {}
  for _, group in ipairs(removed) do
    local function refuse(name)
      return function()
        local text = "%s is not available in a project's module: %s; %s"
        error(placed(format(text, name, group.instead, own)), 0)
      end
    end
    for name in group.functions:gmatch("%S+") do
      local library, field = name:match("(%w+)%.(%w+)")
      local place = library and _G[library] or _G
      place[field or name] = refuse(name)
    end
    for name in (group.values or ""):gmatch("%S+") do
      local library, field = name:match("(%w+)%.(%w+)")
      values[library] = values[library] or {}
      values[library][field] = refuse(name)
    end
  end
  for library, refused in pairs(values) do
    local function use(_, field)
      if refused[field] then refused[field]() end
    end
    local function set(of, field, value)
      use(of, field)
      rawset(of, field, value)
    end
    setmetatable(_G[library], { __index = use, __newindex = set })
  end

  -- Text only: bytecode that was made by hand reads and writes any memory.
  function load(chunk, name, mode, ...)
    if mode ~= nil and not find(mode, "t", 1, true) then
      return nil, "attempt to load a binary chunk (only text is allowed)"
    end
    if select("#", ...) > 0 then return settle(raw_load(chunk, name, "t", (...))) end
    return settle(raw_load(chunk, name, "t"))
  end

  function collectgarbage(what)
    if what == nil or what == "collect" or what == "count" then return raw_collect(what or "collect") end
    return 0
  end
else
  function load(...) return settle(raw_load(...)) end
  -- Standard output is the protocol.
  io.output(io.stderr)
  io.stdout = io.stderr
  function os.exit() error("os.exit is not for tools: return a result", 2) end
  debug = { traceback = native.traceback }
end

-- An error as a text. One that does not say where it happened is told where.
local function described(message)
  if native.over() then return message end
  if type(message) == "string" and find(message, native.source, 1, true) == 1 then return message end
  local text = message
  if type(message) == "table" and type(message.message) == "string" then
    text = message.message
  elseif type(message) == "table" and not getmetatable(message) then
    text = select(2, native.encode(message))
  end
  return placed(tostring(text))
end

-- How the worker runs anything of the module.
return function(body, ...)
  return raw_xpcall(body, described, ...)
end
