#!/usr/bin/env python3
"""stats: descriptive statistics, as a plugin for haft.

A plugin reads one JSON message per line from stdin and answers each with one
line on stdout. Everything else goes to stderr.
"""

import json
import math
import sys

DEFINITION = {
    "name": "stats",
    "description": "Compute descriptive statistics of a list of numbers: n, min, max, "
    "mean, median, population standard deviation and, if wanted, percentiles.",
    "parameters": {
        "type": "object",
        "properties": {
            "numbers": {
                "type": "array",
                "items": {"type": "number"},
                "description": "The numbers, in any order",
            },
            "precision": {
                "type": "integer",
                "description": "Decimal places, 0 to 10 (default 4)",
            },
            "percentiles": {
                "type": "array",
                "items": {"type": "number"},
                "description": "Percentiles to add, each from 0 to 100, e.g. [90, 99.9]",
            },
        },
        "required": ["numbers"],
    },
}


def is_number(value):
    # In Python, True is an int.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def percentile(ordered, percent):
    """Interpolates between the two neighbours of a rank that is not whole."""
    rank = (len(ordered) - 1) * percent / 100
    below = ordered[math.floor(rank)]
    above = ordered[math.ceil(rank)]
    return below + (above - below) * (rank - math.floor(rank))


def stats(params):
    """The tool itself: returns its text, or raises ValueError with a message for the model."""
    numbers = params.get("numbers")
    if not isinstance(numbers, list) or not numbers:
        raise ValueError("numbers must be a non-empty array")
    for index, number in enumerate(numbers):
        if not is_number(number):
            raise ValueError(f"element {index} is not a number")
    precision = params.get("precision", 4)
    if not is_number(precision):
        raise ValueError("precision must be an integer")
    percentiles = params.get("percentiles", [])
    if not isinstance(percentiles, list) or not all(
        is_number(percent) and 0 <= percent <= 100 for percent in percentiles
    ):
        raise ValueError("percentiles must be an array of numbers from 0 to 100")

    places = min(max(int(precision), 0), 10)
    ordered = sorted(float(number) for number in numbers)
    mean = math.fsum(ordered) / len(ordered)
    variance = math.fsum((number - mean) ** 2 for number in ordered) / len(ordered)
    values = {
        "min": ordered[0],
        "max": ordered[-1],
        "mean": mean,
        "median": percentile(ordered, 50),
        "std_dev": math.sqrt(variance),
    }
    for percent in percentiles:
        values[f"p{percent:g}"] = percentile(ordered, percent)
    lines = [f"n: {len(ordered)}"]
    lines += [f"{name}: {value:.{places}f}" for name, value in values.items()]
    return "\n".join(lines)


def reply(text, error=False):
    return {"content": [{"type": "text", "text": text}], "error": error}


def call(message):
    name = message.get("name", DEFINITION["name"])
    params = message.get("params", {})
    if name != DEFINITION["name"]:
        return reply(f"unknown tool: {name}", error=True)
    if not isinstance(params, dict):
        return reply("params must be an object", error=True)
    try:
        return reply(stats(params))
    except ValueError as problem:
        return reply(str(problem), error=True)
    except Exception as problem:  # One bug must not end the plugin: the next call may be fine.
        print(f"stats: {problem!r}", file=sys.stderr)
        return reply(f"stats failed: {problem}", error=True)


def answer(line):
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as problem:
        return reply(f"malformed JSON: {problem}", error=True)
    if not isinstance(message, dict):
        return reply("a message must be a JSON object", error=True)
    kind = message.get("type")
    if kind == "describe":
        return DEFINITION
    result = call(message) if kind == "call" else reply(f"unknown message type: {kind}", error=True)
    if "call_id" in message:
        result["call_id"] = message["call_id"]
    return result


def main():
    # The protocol is UTF-8 in every locale.
    sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    for line in sys.stdin:
        line = line.strip()  # also removes the CR of a CRLF
        if line:
            # Without the flush the answer stays in a buffer while haft waits for it.
            print(json.dumps(answer(line)), flush=True)


if __name__ == "__main__":
    main()
