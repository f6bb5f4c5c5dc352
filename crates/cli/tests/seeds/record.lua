{
  name = "mytool",
  description = "Short description for API tool definition",
  system_prompt = "Usage guidance injected into the system prompt.",
  input_schema = {type = "object", properties = {...}, required = {...}},
  execute = function(input) return "result", false end,
}
