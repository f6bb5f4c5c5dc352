#!/usr/bin/env ruby
# frozen_string_literal: true

# {{name}}: a plugin for haft.
#
# It reads one JSON message per line from stdin and answers each with one line on
# stdout. Never print anything else to stdout: logs go to stderr (warn).

require "json"

# All that a model knows of the tool. Be specific.
DEFINITION = {
  name: "{{name}}",
  description: "Turn a text into upper case.",
  parameters: {
    type: "object",
    properties: {
      text: { type: "string", description: "The text" }
    },
    required: ["text"]
  }
}.freeze

# The tool itself. Whatever it raises is told to the model.
def run(params)
  text = params["text"]
  raise ArgumentError, "text must be a string" unless text.is_a?(String)
  text.upcase
end

def reply(text, error: false)
  { content: [{ type: "text", text: text.scrub }], error: error }
end

def call(message)
  name = message.fetch("name", DEFINITION[:name])
  params = message.fetch("params", {})
  return reply("unknown tool: #{name}", error: true) unless name == DEFINITION[:name]
  return reply("params must be an object", error: true) unless params.is_a?(Hash)
  reply(run(params))
rescue StandardError => problem
  reply(problem.message, error: true)
end

def answer(line)
  message = JSON.parse(line)
  return reply("a message must be a JSON object", error: true) unless message.is_a?(Hash)

  case message["type"]
  when "describe" then return DEFINITION
  when "call" then result = call(message)
  else result = reply("unknown message type: #{message['type']}", error: true)
  end
  result[:call_id] = message["call_id"] if message.key?("call_id")
  result
rescue JSON::ParserError => problem
  reply("malformed JSON: #{problem.message[0, 200]}", error: true)
end

$stdin.set_encoding(Encoding::UTF_8) # whatever the locale says
$stdout.sync = true # send each answer at once; haft waits for it

$stdin.each_line do |line|
  line = line.scrub.strip
  puts JSON.generate(answer(line)) unless line.empty?
end
