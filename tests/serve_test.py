"""`nereid serve-model`: chat completions over HTTP, one at a time and many at once, are what `nereid generate --chat` says.

    serve_test.py NEREID [--device cpu|cuda]
"""

import argparse
import http.client
import json
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import generate_test

QUESTIONS = ["Why?", "def add(a, b):", "import torch", "1 2 3", "über", "x" * 100]


class Server:
    def __init__(self, tool, folder, device):
        self.process = subprocess.Popen([tool, "serve-model", "--model", folder, "--port", "0", "--device", device, "--sequences", "4", "--max-tokens", "12"],
                                        stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split(":")[2].split("/")[0])

    def ask(self, method, path, body=None, raw=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, raw if raw is not None else json.dumps(body) if body is not None else None)
        response = connection.getresponse()
        return response.status, response.read().decode()

    def chat(self, question, **more):
        status, text = self.ask("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": question}], "temperature": 0, **more})
        assert status == 200, text
        return text


def events(text):
    lines = [line for line in text.split("\n\n") if line]
    assert lines[-1] == "data: [DONE]" and all(line.startswith("data: ") for line in lines), lines
    return [json.loads(line[6:]) for line in lines[:-1]]


def joined(chunks, index=0):
    choices = [c for chunk in chunks for c in chunk["choices"] if c["index"] == index]
    return "".join(c["delta"].get("content", "") for c in choices), choices[-1]["finish_reason"]


def run(tool, device, folder):
    test = generate_test.Test(tool, device, folder, "qwen3")
    said = {}
    for question in QUESTIONS:
        line = json.loads(test.run("--chat", "--prompt", question, "--temperature", 0, "--max-tokens", 12, "--json").stdout)
        said[question] = line["text"], "length" if line["finish_reason"] == "length" else "stop", len(line["tokens"])
    server = Server(tool, folder, device)
    try:
        test.expect(json.loads(server.ask("GET", "/health")[1]) == {"status": "ok"}, "it is healthy")
        test.expect(json.loads(server.ask("GET", "/v1/models")[1])["data"][0]["id"] == Path(folder).name, "it tells its model")
        whole, streamed = {}, {}

        def ask(question):
            whole[question] = json.loads(server.chat(question))
            streamed[question] = events(server.chat(question, stream=True, stream_options={"include_usage": True}))

        threads = [threading.Thread(target=ask, args=(q,)) for q in QUESTIONS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for question in QUESTIONS:
            text, finish, tokens = said[question]
            choice = whole[question]["choices"][0]
            test.expect((choice["message"]["content"], choice["finish_reason"], whole[question]["usage"]["completion_tokens"]) == (text, finish, tokens),
                        f"{question[:20]!r}: the answer is generate's")
            test.expect(joined(streamed[question]) == (text, finish) and streamed[question][-1]["usage"] == whole[question]["usage"], f"{question[:20]!r}: and in a stream")
        both = json.loads(server.chat("Why?", n=3, temperature=1.5, seed=5))["choices"]
        again = events(server.chat("Why?", n=3, temperature=1.5, seed=5, stream=True))
        test.expect([c["message"]["content"] for c in both] == [joined(again, i)[0] for i in range(3)] and len({c["message"]["content"] for c in both}) > 1,
                    "samples are their seed's")
        text = said["Why?"][0]
        stopped = json.loads(server.chat("Why?", stop=[text[3:5]]))["choices"][0]
        test.expect(stopped["message"]["content"] == text[:text.find(text[3:5])] and stopped["finish_reason"] == "stop", "a stop string ends an answer")

        for path, body, status, told in [
                ("/v1/chat/completions", {"messages": []}, 400, "messages"), ("/v1/chat/completions", {}, 400, "body: expected an object with 'messages'"),
                ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "temperature": -1}, 400, "body.temperature: expected a number from 0 to 100, got -1"),
                ("/v1/chat/completions", {"messages": [{"role": "user", "content": "word " * 600}]}, 400, "as many as the model's context has"), ("/v2", {}, 404, "expected POST")]:
            got, text = server.ask("POST", path, body)
            test.expect(got == status and told in json.loads(text)["error"]["message"], f"{status}: {told}{'' if told in text else ', got ' + text}")
        test.expect(server.ask("POST", "/v1/chat/completions", raw="{")[0] == 400, "400: no JSON")
        test.expect(server.ask("GET", "/v1/chat/completions")[0] == 405, "405: not a POST")

        # Clients that leave in the middle of a request, and of an answer: the others are served.
        half = socket.create_connection(("127.0.0.1", server.port))
        half.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Le")
        body = json.dumps({"messages": [{"role": "user", "content": "Why?"}], "stream": True, "max_tokens": 400})
        gone = socket.create_connection(("127.0.0.1", server.port))
        gone.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        gone.recv(10)
        gone.close()
        half.close()
        test.expect(json.loads(server.chat("Why?"))["choices"][0]["message"]["content"] == said["Why?"][0], "who leaves disturbs nobody")
        server.process.send_signal(signal.SIGTERM)
        test.expect(server.process.wait(20) == 130, "it ends when it is told to")
    finally:
        server.process.kill()
    return test.failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", type=Path)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        failures = run(arguments.tool, arguments.device, folder)
    print(failures, "failures")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
