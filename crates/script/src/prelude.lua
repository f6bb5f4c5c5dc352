-- Runs before a module and makes the world that the module sees. Whatever is used
-- later is taken into a local first: a module may change every table it can reach.
local native, rights = ...

local error, select, tostring, type = error, select, tostring, type
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
  os = clock
  string.dump = nil

  -- What a module of a project may not use says so, and what to use instead.
  local own = "a module in the user's own tools folder (~/.config/haft/tools) has all of Lua's libraries"
  local function refuse(name, instead)
    return function()
      error(placed(format("%s is not available in a project's module: %s; %s", name, instead, own)), 0)
    end
  end
  local files = "read and write files with haft.call(tool, arguments) and the session's file tools"
  local commands = "run commands with haft.call(tool, arguments) and the session's command tool"
  io = {}
  for name in ("close flush input lines open output read tmpfile type"):gmatch("%S+") do
    io[name] = refuse("io." .. name, files)
  end
  io.write = refuse("io.write", "return the text, or log it with print")
  io.popen = refuse("io.popen", commands)
  os.execute = refuse("os.execute", commands)
  for name in ("remove rename tmpname"):gmatch("%S+") do
    os[name] = refuse("os." .. name, files)
  end
  os.exit = refuse("os.exit", "return a result")
  os.getenv = refuse("os.getenv", "declare what it needs as a parameter")
  require = refuse("require", "put the code into this file, which is the whole module")
  for name in ("dofile loadfile"):gmatch("%S+") do
    _G[name] = refuse(name, "put the code into this file, which is the whole module")
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
