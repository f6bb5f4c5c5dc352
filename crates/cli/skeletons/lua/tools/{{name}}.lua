-- {{name}}: a Lua tool for haft.
--
-- A module that returns one table. haft runs it in a Lua of its own, with the pure
-- libraries only: string, table, math, utf8.

return {
  name = "{{name}}",

  -- What a model knows of the tool. Be specific.
  description = "Turn a text into upper case.",
  input_schema = {
    type = "object",
    properties = {
      text = { type = "string", description = "The text" },
    },
    required = { "text" },
  },

  -- Advice for the model's prompt. You may leave it out.
  system_prompt = "Use {{name}} when a text should be in upper case.",

  -- The tool itself: returns the text of the result, and whether it is an error.
  execute = function(input)
    if type(input.text) ~= "string" then
      return "text must be a string", true
    end
    -- Lua knows the letters a to z; others stay as they are.
    return input.text:upper(), false
  end,
}
