#!/usr/bin/env ruby
# frozen_string_literal: true

# template: fills the {{placeholders}} of a text, as a plugin for haft.
#
# A plugin reads one JSON message per line from stdin and answers each with one
# line on stdout. Everything else goes to stderr (warn).

require "json"

DEFINITION = {
  name: "template",
  description: "Render a text template: each {{name}} is replaced by its value. " \
               "{{user.name}} looks into nested objects. Names without a value are reported.",
  parameters: {
    type: "object",
    properties: {
      template: { type: "string", description: "Text with {{name}} placeholders" },
      values: {
        type: "object",
        additionalProperties: true,
        description: "The value of each name; nested objects are reached with a dot"
      },
      missing: {
        type: "string",
        enum: %w[error keep empty],
        description: "A name without a value: fail (error, the default), stay as it is " \
                     "(keep), or become nothing (empty)"
      }
    },
    required: %w[template values]
  }
}.freeze

PLACEHOLDER = /\{\{\s*([^{}\s]+)\s*\}\}/

# A mistake of the model, with a message for the model.
class Problem < StandardError; end

# nil is a valid value, so a missing one needs its own marker.
def look_up(values, path)
  path.split(".").reduce(values) do |value, key|
    next value[key] if value.is_a?(Hash) && value.key?(key)
    # A key may contain dots itself.
    return values.fetch(path, :missing)
  end
end

def text_of(value)
  value.is_a?(String) ? value : JSON.generate(value)
end

# The tool itself: returns its text blocks, or raises a Problem.
def render(params)
  template, values = params.values_at("template", "values")
  on_missing = params.fetch("missing", "error")
  raise Problem, "template must be a string" unless template.is_a?(String)
  raise Problem, "values must be an object" unless values.is_a?(Hash)
  raise Problem, "missing must be one of: error, keep, empty" unless %w[error keep empty].include?(on_missing)

  missing = []
  rendered = template.gsub(PLACEHOLDER) do |placeholder|
    value = look_up(values, Regexp.last_match(1))
    next text_of(value) unless value == :missing
    missing << Regexp.last_match(1)
    on_missing == "keep" ? placeholder : ""
  end
  return [rendered] if missing.empty?

  report = "missing values: #{missing.uniq.join(', ')}"
  raise Problem, report if on_missing == "error"
  [rendered, "\n[#{report}]"]
end

def reply(*texts, error: false)
  { content: texts.map { |text| { type: "text", text: text.scrub } }, error: error }
end

def call(message)
  name = message.fetch("name", DEFINITION[:name])
  params = message.fetch("params", {})
  return reply("unknown tool: #{name}", error: true) unless name == DEFINITION[:name]
  return reply("params must be an object", error: true) unless params.is_a?(Hash)
  reply(*render(params))
rescue Problem => problem
  reply(problem.message, error: true)
rescue StandardError => problem # One bug must not end the plugin: the next call may be fine.
  warn "template: #{problem.full_message}"
  reply("template failed: #{problem.message}", error: true)
end

def answer(line)
  message = JSON.parse(line)
  return reply("a message must be a JSON object", error: true) unless message.is_a?(Hash)
  return DEFINITION if message["type"] == "describe"
  result = message["type"] == "call" ? call(message) : reply("unknown message type: #{message['type']}", error: true)
  result[:call_id] = message["call_id"] if message.key?("call_id")
  result
rescue JSON::ParserError => problem
  reply("malformed JSON: #{problem.message.lines.first.strip[0, 200]}", error: true)
end

# The protocol is UTF-8 in every locale.
$stdin.set_encoding(Encoding::UTF_8)
# Without this the answer stays in a buffer while haft waits for it.
$stdout.sync = true

$stdin.each_line do |line|
  line = line.scrub.strip # also removes the CR of a CRLF
  puts JSON.generate(answer(line)) unless line.empty?
end
