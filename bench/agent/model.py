"""A model on loopback that calls one tool again and again, then says that it is done.

It speaks Chat Completions, Responses and Messages, each by its path, over a small
HTTP/1.1 of its own, in a process of its own. It looks into the first request alone,
so that it never is what one waits for; of all it notes when they were there and when
their answer went out.
"""
import gc
import json
import multiprocessing
import os
import socket
import threading
import time
from urllib.parse import urlsplit


class Model:
    """A model for one run. `turns` calls, made by `call(number, tools)`, then words."""

    def __init__(self, turns, call):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.ours, theirs = multiprocessing.Pipe()
        self.child = multiprocessing.get_context("fork").Process(target=serve, args=(self.listener, theirs, turns, call), daemon=True)
        self.child.start()
        theirs.close()

    def seen(self):
        """The requests so far, by the folder of the address they came to."""
        self.ours.send("seen")
        return self.ours.recv()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.terminate()
        self.child.join()
        self.listener.close()


class Seen:
    """What came to one address: for each request when it was there, when its answer went
    out, and its bytes; and the first of them."""

    def __init__(self):
        self.came, self.went, self.sizes = [], [], []
        self.first = b""
        self.tools = None

    def overheads(self):
        """Seconds of each turn without the model's own: from an answer to the next request."""
        return [(came - went) / 1e9 for came, went in zip(self.came[1:], self.went)]


def serve(listener, pipe, turns, call):
    gc.disable()
    seen = {}

    def accept():
        while True:
            stream, _ = listener.accept()
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=attend, args=(stream, seen, turns, call), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    while True:
        try:
            pipe.recv()
        except EOFError:
            os._exit(0)
        pipe.send(seen)


def attend(stream, *rest):
    """Whatever goes wrong, nobody waits for an answer that does not come."""
    with stream:
        converse(stream, *rest)


def converse(stream, seen, turns, call):
    """Answers the requests of one connection."""
    room = bytearray(1 << 16)
    held = 0
    while True:
        end = -1
        while end < 0:
            got = stream.recv_into(memoryview(room)[held:])
            if not got:
                return
            held += got
            end = room.find(b"\r\n\r\n", 0, held)
        head = bytes(room[:end]).decode("latin-1")
        start, *lines = head.split("\r\n")
        method, path, _ = start.split(" ")
        length = next((int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:")), 0)
        whole = end + 4 + length
        if whole > len(room):
            room.extend(bytes(whole + (whole >> 2) - len(room)))
        view = memoryview(room)
        while held < whole:
            got = stream.recv_into(view[held:whole])
            if not got:
                return
            held += got
        came = time.monotonic_ns()
        path = urlsplit(path).path
        protocol = next((protocol for ending, protocol in PROTOCOLS.items() if path.endswith(ending)), None)
        if method != "POST" or not protocol:
            view.release()
            held = 0
            stream.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")
            continue
        one = seen.setdefault(path.split("/")[1], Seen())
        if one.tools is None:
            one.first = bytes(view[end + 4 : whole])
            one.tools = tool_names(json.loads(one.first))
        view.release()
        held = 0
        number = len(one.came)
        answer = protocol(number, call(number, one.tools) if number < turns else None).encode()
        answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(answer), answer)
        one.came.append(came)
        one.sizes.append(length)
        one.went.append(time.monotonic_ns())
        stream.sendall(answer)


def tool_names(request):
    tools = request.get("tools", [])
    return [tool.get("name") or tool.get("function", {}).get("name") or tool.get("type") for tool in tools]


# ---------------------------------------------------------------- the protocols

DONE = "All is done."
TOKENS = 100, 20


def stream(*events):
    """A stream of events, each with its name where it has a type."""
    name = lambda event: f"event: {event['type']}\n" if "type" in event else ""
    return "".join(f"{name(event)}data: {json.dumps(event)}\n\n" for event in events)


def completions(number, call):
    chunk = lambda delta, stop=None: {"id": f"chat-{number}", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}
    if call:
        name, arguments = call
        function = {"name": name, "arguments": json.dumps(arguments)}
        said = chunk({"tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]})
    else:
        said = chunk({"content": DONE})
    usage = {"prompt_tokens": TOKENS[0], "completion_tokens": TOKENS[1], "total_tokens": sum(TOKENS)}
    end = {**chunk({}), "choices": [], "usage": usage}
    return stream(chunk({"role": "assistant", "content": ""}), said, chunk({}, "tool_calls" if call else "stop"), end) + "data: [DONE]\n\n"


def responses(number, call):
    response = {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": "scripted"}
    if call:
        name, arguments = call
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name, "arguments": json.dumps(arguments), "status": "completed"}
    else:
        item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": DONE, "annotations": []}]}
    usage = {"input_tokens": TOKENS[0], "output_tokens": TOKENS[1], "total_tokens": sum(TOKENS), "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return stream(
        {"type": "response.created", "sequence_number": 0, "response": {**response, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": item},
        {"type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": item},
        {"type": "response.completed", "sequence_number": 3, "response": {**response, "status": "completed", "output": [item], "usage": usage}},
    )


def messages(number, call):
    if call:
        name, arguments = call
        block = {"type": "tool_use", "id": f"call_{number}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": DONE}
    return stream(
        {"type": "message_start", "message": {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted", "content": [], "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": TOKENS[0], "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}, "usage": {"output_tokens": TOKENS[1]}},
        {"type": "message_stop"},
    )


PROTOCOLS = {"/chat/completions": completions, "/responses": responses, "/v1/messages": messages}


# ---------------------------------------------------------------- a bare loop

def bare(url, sizes):
    """Sends so many bytes each time and waits for the answer: the least a turn can take."""
    at = urlsplit(url)
    body = memoryview(bytearray(b" " * max(sizes)))
    # Something to look at in the first of them.
    body[:2] = b"{}"
    with socket.create_connection((at.hostname, at.port)) as stream:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for size in sizes:
            head = f"POST /bare/chat/completions HTTP/1.1\r\nhost: {at.netloc}\r\ncontent-length: {size}\r\n\r\n".encode()
            sent = stream.sendmsg([head, body[:size]])
            if sent < len(head) + size:
                stream.sendall(body[sent - len(head) : size])
            answer = b""
            while not answer.endswith(b"\r\n0\r\n\r\n"):
                answer += stream.recv(1 << 16)
