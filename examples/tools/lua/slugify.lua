-- slugify: turns a title into a part of an address or a file name, as a Lua tool for haft.
--
-- A Lua tool is a module that returns one table. haft runs it in its own Lua with only the
-- pure libraries (string, table, math, utf8): no files, no processes and no network.

-- Letters to replace; other non-ASCII characters separate words, like a space.
local plain = {}
for letter, variants in pairs({
  a = "àáâãåāăą", ae = "äæ", c = "çćč", d = "ďđð", e = "èéêëēėęě", g = "ğģ",
  i = "ìíîïīįı", k = "ķ", l = "ĺļľł", n = "ñńņň", o = "òóôõøōő", oe = "öœ",
  r = "ŕř", s = "śşšș", ss = "ß", t = "ťţțþ", u = "ùúûūůűų", ue = "ü", y = "ýÿ", z = "źżž",
}) do
  for _, code in utf8.codes(variants) do
    plain[code] = letter
    -- The capital letter: 32 below in Latin-1, 1 below in the blocks after it.
    if code >= 0xE0 and code <= 0xFE then
      plain[code - 32] = letter
    elseif code > 0xFF then
      plain[code - 1] = plain[code - 1] or letter
    end
  end
end
plain[0x178] = "y" -- Ÿ is the exception
plain[0x2019], plain[0x27] = "", "" -- don't → dont

local function slugify(text, separator)
  local words, word = {}, {}
  local function close()
    if #word > 0 then
      words[#words + 1] = table.concat(word)
      word = {}
    end
  end
  for _, code in utf8.codes(text) do
    local letter = plain[code]
    if not letter and code < 128 then
      letter = utf8.char(code):lower():match("^%w$")
    end
    if letter then
      if letter ~= "" then word[#word + 1] = letter end
    else
      close()
    end
  end
  close()
  return table.concat(words, separator), words
end

-- Ends at a whole word if one fits.
local function shorten(words, separator, most)
  local slug = ""
  for _, word in ipairs(words) do
    local longer = slug == "" and word or slug .. separator .. word
    if #longer > most then
      return slug == "" and word:sub(1, most) or slug
    end
    slug = longer
  end
  return slug
end

return {
  name = "slugify",
  description = "Turn a title into a slug for an address or a file name: "
    .. "'Crème brûlée, again!' becomes 'creme-brulee-again'.",
  system_prompt = "Use slugify for the names of new posts and pages, so that they all follow one rule.",
  input_schema = {
    type = "object",
    properties = {
      text = { type = "string", description = "The title" },
      separator = { type = "string", enum = { "-", "_", "." }, description = "Between words (default -)" },
      max_length = { type = "integer", description = "Most characters, 1 to 200 (default 80)" },
    },
    required = { "text" },
  },
  -- Returns the result, and whether it is an error.
  execute = function(input)
    local separator = input.separator or "-"
    local most = math.min(math.max(input.max_length or 80, 1), 200)
    if type(input.text) ~= "string" or not utf8.len(input.text) then
      return "text must be a string", true
    end
    local slug, words = slugify(input.text, separator)
    if slug == "" then
      return "text has no letters or digits that a slug can hold", true
    end
    if #slug > most then
      slug = shorten(words, separator, math.floor(most))
    end
    return slug, false
  end,
}
