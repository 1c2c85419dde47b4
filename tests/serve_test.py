"""`nereid serve-model`: completions over HTTP, one at a time and many at once, are what `nereid generate`
says, to the `openai` package too; a client that comes when the queue is full is refused; requests that run at
the first signal are served.

    serve_test.py NEREID [--device cpu|cuda]
"""

import argparse
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import openai

sys.path.insert(0, str(Path(__file__).resolve().parent))
import generate_test
import torch

QUESTIONS = ["Why?", "def add(a, b):", "import torch", "1 2 3", "über", "x" * 100]


class Server:
    def __init__(self, tool, folder, device, *more, sequences=4):
        words = [
            tool,
            "serve-model",
            "--model",
            folder,
            "--port",
            "0",
            "--device",
            device,
            "--sequences",
            str(sequences),
            "--max-tokens",
            "12",
            *map(str, more),
        ]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split(":")[2].split("/")[0])

    def ask(self, method, path, body=None, raw=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(
            method, path, raw if raw is not None else json.dumps(body) if body is not None else None
        )
        response = connection.getresponse()
        return response.status, response.read().decode()

    def headers(self, method, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode()

    def open(self, path, body):
        """A request that is sent, its answer not read."""
        raw = json.dumps(body)
        client = socket.create_connection(("127.0.0.1", self.port), timeout=600)
        client.sendall(f"POST {path} HTTP/1.1\r\nContent-Length: {len(raw)}\r\n\r\n{raw}".encode())
        return client

    def stopped(self, action):
        """`action`, while the server stands still."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            return action()
        finally:
            self.process.send_signal(signal.SIGCONT)

    def chat(self, question, **more):
        status, text = self.ask(
            "POST",
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": question}], "temperature": 0, **more},
        )
        assert status == 200, text
        return text


def events(text):
    lines = [line for line in text.split("\n\n") if line]
    assert lines[-1] == "data: [DONE]" and all(line.startswith("data: ") for line in lines), lines
    return [json.loads(line[6:]) for line in lines[:-1]]


def joined(chunks, index=0):
    choices = [c for chunk in chunks for c in chunk["choices"] if c["index"] == index]
    return "".join(c["delta"].get("content", "") for c in choices), choices[-1]["finish_reason"]


def rest_of(client):
    text = b""
    while chunk := client.recv(1 << 16):
        text += chunk
    return text.decode()


LONG = {"prompt": "def add(a, b):", "max_tokens": 400, "temperature": 0, "stream": True}


def likeliest(test, prompt, tokens, count):
    """By transformers: for each of `tokens` after `prompt`, {token: its log-probability}."""
    ids = torch.tensor([test.tokenizer.encode(prompt).ids + tokens])
    with torch.no_grad():
        logs = test.model(ids).logits[0, -len(tokens) - 1 : -1].log_softmax(-1)
    top = logs.topk(count)
    return [dict(zip(t.tolist(), v.tolist())) for t, v in zip(top.indices, top.values)]


def spelled(test, token):
    """A token as /v1/completions returns it: its text, or its bytes where it is no whole characters."""
    raw = test.raw[token]
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)


def close_to(a, b):
    return a.keys() == b.keys() and all(abs(a[k] - b[k]) < 1e-4 for k in a)


def near(a, b):
    """Log-probabilities of the same tokens, in other company on a GPU."""
    return len(a) == len(b) and all(abs(x - y) < 1e-5 for x, y in zip(a, b))


def openai_package(test, server):
    """The `openai` package as a client."""
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0)
    model = client.models.list().data[0].id
    prompt = "def add(a, b):"
    said = json.loads(test.run("--prompt", prompt, "--temperature", 0, "--max-tokens", 16, "--json").stdout)
    # As bytes: the characters that byte-level vocabularies write for them.
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    byte_of = {chr(b): b for b in shown} | {
        chr(256 + i): b for i, b in enumerate(b for b in range(256) if b not in shown)
    }
    test.raw = {
        i: t.encode() if i == 0 else bytes(byte_of[c] for c in t)
        for t, i in test.tokenizer.get_vocab().items()
    }
    body = [token for token in said["tokens"] if token != 0]
    expected = [{spelled(test, t): v for t, v in top.items()} for top in likeliest(test, prompt, body, 3)]
    for top, token, logprob in zip(expected, body, said["logprobs"]):
        top[spelled(test, token)] = logprob

    whole = client.completions.create(model=model, prompt=prompt, temperature=0, logprobs=3)
    choice = whole.choices[0]
    test.expect(
        choice.text == said["text"]
        and whole.usage.completion_tokens == len(said["tokens"])
        and whole.object == "text_completion",
        "completions: generate's text, 16 tokens where nothing is said",
    )
    logs = choice.logprobs
    begins = [choice.text.find(t, at) for at, t in zip(logs.text_offset, logs.tokens)]
    test.expect(
        logs.tokens == [spelled(test, t) for t in body]
        and all(
            t.startswith("bytes:") or at == begin
            for at, t, begin in zip(logs.text_offset, logs.tokens, begins)
        )
        and logs.text_offset == sorted(logs.text_offset),
        f"completions: tokens and where they begin: {logs.tokens} {logs.text_offset}",
    )
    test.expect(near(logs.token_logprobs, said["logprobs"]), "completions: log-probabilities are generate's")
    test.expect(
        all(close_to(a, b) for a, b in zip(logs.top_logprobs, expected, strict=True)),
        "completions: the likeliest are transformers'",
    )

    by_tokens = client.completions.create(
        model=model, prompt=test.tokenizer.encode(prompt).ids, temperature=0, echo=True
    )
    test.expect(
        by_tokens.choices[0].text == prompt + said["text"] and by_tokens.choices[0].logprobs is None,
        "completions: of tokens, with an echo",
    )
    several = client.completions.create(
        model=model, prompt=[prompt, "x", prompt], n=2, temperature=1.2, seed=4, max_tokens=9
    )
    again = client.completions.create(
        model=model,
        prompt=[test.tokenizer.encode(p).ids for p in (prompt, "x")],
        n=2,
        temperature=1.2,
        seed=4,
        max_tokens=9,
    )
    texts = [c.text for c in several.choices]
    test.expect(
        [c.index for c in several.choices] == list(range(6))
        and texts[:2] == texts[4:]
        and texts[:4] == [c.text for c in again.choices]
        and texts[0] != texts[1],
        "completions: several prompts of several samples each",
    )
    text, logprobs, last = {0: "", 1: ""}, {0: [], 1: []}, {}
    for chunk in client.completions.create(
        model=model,
        prompt=[prompt, "über "],
        temperature=0,
        logprobs=0,
        stream=True,
        echo=False,
        stream_options={"include_usage": True},
    ):
        for c in chunk.choices:
            text[c.index] += c.text
            logprobs[c.index] += c.logprobs.token_logprobs if c.logprobs else []
            last[c.index] = c.finish_reason
        usage = chunk.usage
    test.expect(
        text[0] == choice.text
        and near(logprobs[0], logs.token_logprobs)
        and last[0] == choice.finish_reason
        and usage.prompt_tokens > 2,
        "completions: the same in a stream",
    )
    echoed = "".join(
        c.text
        for chunk in client.completions.create(
            model=model, prompt=prompt, temperature=0, stream=True, echo=True
        )
        for c in chunk.choices
    )
    test.expect(echoed == prompt + choice.text, "completions: an echo in a stream")
    stop = choice.text[6:8]
    stopped = client.completions.create(
        model=model, prompt=prompt, temperature=0, stop=stop, logprobs=1
    ).choices[0]
    count = len(stopped.logprobs.tokens)
    test.expect(
        stopped.text == choice.text[: choice.text.find(stop)]
        and stopped.finish_reason == "stop"
        and 0 < count < len(logs.tokens)
        and stopped.logprobs.tokens == logs.tokens[:count]
        and stopped.logprobs.text_offset[-1] < len(stopped.text) <= logs.text_offset[count],
        "completions: what a stop string cuts off has no log-probabilities",
    )

    messages = [{"role": "user", "content": "Why?"}]
    chat = client.chat.completions.create(
        model=model, messages=messages, temperature=0, logprobs=True, top_logprobs=2
    ).choices[0]
    rendered = "<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n"
    content = chat.logprobs.content
    test.expect(
        bytes(b for t in content for b in t.bytes).decode(errors="replace") == chat.message.content,
        f"chat: tokens and bytes of {chat.message.content!r}",
    )
    test.expect(
        near([t.logprob for t in content], [t.top_logprobs[0].logprob for t in content]),
        f"chat: a greedy token is the likeliest: {[(t.logprob, t.top_logprobs[0].logprob) for t in content]}",
    )
    ids = json.loads(
        test.run("--chat", "--prompt", "Why?", "--temperature", 0, "--max-tokens", 12, "--json").stdout
    )["tokens"]
    expected = [sorted(top.values()) for top in likeliest(test, rendered, [t for t in ids if t != 0], 2)]
    got = [sorted(t.logprob for t in token.top_logprobs) for token in content]
    test.expect(
        len(got) == len(expected)
        and all(abs(a - b) < 1e-4 for x, y in zip(got, expected) for a, b in zip(x, y)),
        "chat: the likeliest are transformers'",
    )
    streamed = [
        c
        for chunk in client.chat.completions.create(
            model=model, messages=messages, temperature=0, logprobs=True, top_logprobs=2, stream=True
        )
        for c in chunk.choices
    ]
    test.expect(
        "".join(c.delta.content or "" for c in streamed) == chat.message.content
        and [t for c in streamed if c.logprobs for t in c.logprobs.content] == content,
        "chat: log-probabilities in a stream",
    )
    # As other clients put the same: parts of a text, members that are null.
    parts = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "Wh"}, {"type": "text", "text": "y?"}],
            "tool_calls": None,
        }
    ]
    test.expect(
        client.chat.completions.create(model=model, messages=parts, temperature=0).choices[0].message.content
        == chat.message.content,
        "chat: a text in parts",
    )
    system, developer = (
        [{"role": role, "content": "Be brief."}, *messages] for role in ("system", "developer")
    )
    test.expect(
        len(
            {
                client.chat.completions.create(model=model, messages=m, temperature=0)
                .choices[0]
                .message.content
                for m in (system, developer)
            }
        )
        == 1,
        "chat: a developer's message is the system's",
    )
    more = client.chat.completions.create(
        model=model, messages=[*messages, chat.message, *messages], temperature=0, max_tokens=3
    )
    test.expect(more.usage.prompt_tokens > len(content), "chat: an answer continues in the next question")
    test.expect(client.models.retrieve(model).id == model, "the model by its name")
    plain = client.chat.completions.create(model=model, messages=messages, n=2, seed=1)
    test.expect(
        plain.choices[0].logprobs is None and len(plain.choices) == 2, "chat: none where none are requested"
    )

    for words, message in [
        ({"frequency_penalty": 1}, "body.frequency_penalty: expected a number from 0 to 0, got 1"),
        ({"suffix": "x"}, "body.suffix"),
        ({"best_of": 3}, "body.best_of"),
        ({"logprobs": 2, "echo": True}, "body.logprobs: expected no echo"),
        ({"prompt": []}, "body.prompt: expected at least one"),
        ({"prompt": [[1], "x", 5]}, "body.prompt[2]"),
        ({"prompt": [1, "x"]}, "body.prompt[1]"),
        ({"prompt": [10**6]}, "token 1000000"),
        ({"prompt": "", "max_tokens": 3}, "without tokens"),
        ({"max_tokens": 0}, "body.max_tokens"),
        (
            {"prompt": ["x"] * 33, "n": 32},
            "body.n: expected at most 1024 answers to a request, got 32 to each of 33 prompts",
        ),
        ({"prompt": 5}, "body.prompt: expected a text, a list of tokens"),
        ({"stop": 3}, "body.stop: expected a text or a list of texts, got 3"),
    ]:
        try:
            client.completions.create(**{"model": model, "prompt": "x", **words})
            test.expect(False, f"{words}: refused")
        except openai.BadRequestError as e:
            test.expect(message in e.message, f"{words}: {e.message[:90]}")
    for other in ("gpt-4o", model + "x", "/nowhere/" + model):
        for ask in (
            lambda: client.completions.create(model=other, prompt="x"),
            lambda: client.chat.completions.create(model=other, messages=messages, stream=True),
            lambda: client.models.retrieve(other.replace("/", "-")),
        ):
            try:
                ask()
                test.expect(False, f"model {other}: refused")
            except openai.NotFoundError as e:
                test.expect(
                    e.code == "model_not_found" and e.param == "model" and f"expected '{model}'" in e.message,
                    f"model {other}: {e.message[:120]}",
                )
    for same in ("", str(test.folder)):
        test.expect(
            client.completions.create(model=same, prompt=prompt, temperature=0).choices[0].text
            == choice.text,
            f"model {same!r}: the one that is served",
        )
    try:
        client.chat.completions.create(model=model, messages=messages, top_logprobs=2)
        test.expect(False, "top_logprobs alone is refused")
    except openai.BadRequestError as e:
        test.expect(
            "body.top_logprobs: expected logprobs: true with it" in e.message, "top_logprobs wants logprobs"
        )


def full_queue(test, tool, folder, device):
    """One place and a queue of two: of eight that come together, five are refused with 429; those three are
    served."""
    server = Server(tool, folder, device, "--queue", 2, "--name", "small-one", sequences=1)
    try:
        clients = server.stopped(lambda: [server.open("/v1/completions", LONG) for _ in range(8)])
        answers = [rest_of(client) for client in clients]
        refused = [a for a in answers if a.startswith("HTTP/1.1 429 Too Many Requests\r\n")]
        test.expect(
            len(refused) == 5
            and all(
                "\r\nRetry-After: 1\r\n" in a and '"rate_limit_error"' in a and "--queue 2" in a
                for a in refused
            ),
            f"{len(refused)} are refused with 429",
        )
        served = [a for a in answers if a not in refused]
        test.expect(
            len(served) == 3
            and all(a.endswith("data: [DONE]\n\n") and a.count("data: ") > 50 for a in served),
            "the others are served",
        )
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=5)
        test.expect(
            client.completions.create(model="", prompt="x", temperature=0).usage.completion_tokens > 0,
            "then there is room again",
        )
        test.expect(
            [m.id for m in client.models.list().data] == ["small-one"]
            and {
                client.completions.create(model=name, prompt="x", max_tokens=1).model
                for name in ("small-one", Path(folder).name)
            }
            == {"small-one"},
            "a name that was given, and the folder's all the same",
        )
        # Eight clients that do come again are all served.
        texts = []
        threads = [
            threading.Thread(
                target=lambda: texts.append(
                    client.completions.create(model="", prompt="x", temperature=0).choices[0].text
                )
            )
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        test.expect(len(texts) == 8 and len(set(texts)) == 1, "a client that comes again is served")
    finally:
        server.process.kill()


def ends_gracefully(test, tool, folder, device, grace, signals, code, expected):
    """Signalled while an answer is being written, and a request is half here."""
    server = Server(tool, folder, device, "--grace", grace)
    try:
        half = socket.create_connection(("127.0.0.1", server.port))
        half.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Le")
        client = server.open("/v1/completions", {**LONG, "n": 8})
        text = client.recv(100).decode()

        def interrupt():
            client.setblocking(False)
            time.sleep(0.1)
            try:
                so_far = client.recv(1 << 20).decode()
            except BlockingIOError:
                so_far = ""
            client.setblocking(True)
            for one in signals:
                server.process.send_signal(one)
            return so_far

        text += server.stopped(interrupt)
        test.expect("[DONE]" not in text, "the signal comes in the middle of an answer")
        try:
            text += rest_of(client)
        except ConnectionError:
            pass
        test.expect(
            expected in text and ("[DONE]" in text) == (code == 0),
            f"grace {grace}, {len(signals)} signals: {expected}",
        )
        test.expect(server.process.wait(20) == code, f"exit code {code}, got {server.process.returncode}")
        errors = server.process.stderr.read()
        test.expect(
            ("1 request was not finished within 0 s (--grace)" in errors) == (grace == 0),
            f"it says what was cut: {errors.strip()!r}",
        )
        try:
            socket.create_connection(("127.0.0.1", server.port)).close()
            test.expect(False, "no request is accepted any more")
        except ConnectionRefusedError:
            pass
    finally:
        server.process.kill()


def ends_while_it_loads(test, tool, folder):
    """Signalled as soon as it catches signals. Where this comes too late, it serves, and is tried again."""
    words = [tool, "serve-model", "--model", folder, "--port", "0", "--device", "cpu"]
    codes = []
    while len(codes) < 10 and 130 not in codes:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while process.poll() is None:
            # The name first: `nereid` catches signals too, before it becomes nereid-lm.
            name = os.path.basename(os.readlink(f"/proc/{process.pid}/exe"))
            status = Path(f"/proc/{process.pid}/status").read_text()
            catches = int(status.partition("SigCgt:")[2].split()[0], 16)
            if name == "nereid-lm" and catches >> (signal.SIGTERM - 1) & 1:
                break
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=1200)
        codes.append(process.returncode)
    test.expect(codes[-1] == 130 and set(codes[:-1]) <= {0}, f"exit code 130, got {codes}")
    test.expect((out, errors) == ("", "nereid: interrupted\n"), f"it says so: {out!r}, {errors!r}")


def many_requests(test, server):
    """Nothing is kept of what is over."""

    def resident():
        return int(
            next(
                line
                for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
                if line.startswith("VmRSS")
            ).split()[1]
        )

    def ask(count):
        for at in range(count):
            rest_of(
                server.open(
                    "/v1/completions",
                    {"prompt": "x", "max_tokens": 1, "n": 4, "stream": at % 2 == 0, "logprobs": 3},
                )
            )

    ask(200)
    before = resident()
    ask(1500)
    test.expect(resident() - before < 1500, f"1,500 requests leave {resident() - before} kB")


def other_conversations(test, tool, folder, device):
    """A checkpoint with Llama 3's template is prompted that way; one whose template is not known still
    continues texts."""
    template = Path(folder) / "chat_template.jinja"
    template.write_text("{{ bos_token }}<|start_header_id|>...<|eot_id|>")
    server = Server(tool, folder, device)
    try:
        rendered = (
            "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nWhy?<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n"
        )
        text = json.loads(
            server.ask("POST", "/v1/completions", {"prompt": rendered, "temperature": 0, "max_tokens": 12})[1]
        )["choices"][0]["text"]
        test.expect(
            json.loads(server.chat("Why?"))["choices"][0]["message"]["content"] == text,
            "a conversation is the template's",
        )
    finally:
        server.process.kill()
    template.write_text("[INST]")
    server = Server(tool, folder, device)
    try:
        status, text = server.ask(
            "POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}
        )
        test.expect(
            status == 400 and "chat_template.jinja: expected the chat template of" in text,
            "an unknown template is reported",
        )
        test.expect(
            server.ask("POST", "/v1/completions", {"prompt": "x"})[0] == 200,
            "and texts are continued all the same",
        )
    finally:
        server.process.kill()
        template.unlink()


def run(tool, device, folder):
    test = generate_test.Test(tool, device, folder, "qwen3")
    said = {}
    for question in QUESTIONS:
        line = json.loads(
            test.run("--chat", "--prompt", question, "--temperature", 0, "--max-tokens", 12, "--json").stdout
        )
        said[question] = (
            line["text"],
            "length" if line["finish_reason"] == "length" else "stop",
            len(line["tokens"]),
        )
    server = Server(tool, folder, device)
    try:
        test.expect(json.loads(server.ask("GET", "/health")[1]) == {"status": "ok"}, "it is healthy")
        test.expect(
            json.loads(server.ask("GET", "/v1/models")[1])["data"][0]["id"] == Path(folder).name,
            "it names its model",
        )
        whole, streamed = {}, {}

        def ask(question):
            whole[question] = json.loads(server.chat(question))
            streamed[question] = events(
                server.chat(question, stream=True, stream_options={"include_usage": True})
            )

        threads = [threading.Thread(target=ask, args=(q,)) for q in QUESTIONS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for question in QUESTIONS:
            text, finish, tokens = said[question]
            choice = whole[question]["choices"][0]
            test.expect(
                (
                    choice["message"]["content"],
                    choice["finish_reason"],
                    whole[question]["usage"]["completion_tokens"],
                )
                == (text, finish, tokens),
                f"{question[:20]!r}: the answer is generate's",
            )
            test.expect(
                joined(streamed[question]) == (text, finish)
                and streamed[question][-1]["usage"] == whole[question]["usage"],
                f"{question[:20]!r}: and in a stream",
            )
        both = json.loads(server.chat("Why?", n=3, temperature=1.5, seed=5))["choices"]
        again = events(server.chat("Why?", n=3, temperature=1.5, seed=5, stream=True))
        test.expect(
            [c["message"]["content"] for c in both] == [joined(again, i)[0] for i in range(3)]
            and len({c["message"]["content"] for c in both}) > 1,
            "samples are their seed's",
        )
        text = said["Why?"][0]
        stopped = json.loads(server.chat("Why?", stop=[text[3:5]]))["choices"][0]
        test.expect(
            stopped["message"]["content"] == text[: text.find(text[3:5])]
            and stopped["finish_reason"] == "stop",
            "a stop string ends an answer",
        )

        # The answer continues from its beginning: what follows is the rest of a completion of the same text.
        begun = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "No "}]
        more = {"messages": begun, "continue_final_message": True, "add_generation_prompt": False}
        got = json.loads(server.chat("Why?", **more, max_tokens=6))["choices"][0]["message"]["content"]
        prompt = "<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\nNo "
        status, text = server.ask(
            "POST", "/v1/completions", {"prompt": prompt, "temperature": 0, "max_tokens": 6}
        )
        test.expect(
            status == 200 and json.loads(text)["choices"][0]["text"] == got,
            f"continue_final_message continues from the last message: {got!r}",
        )

        for path, body, status, message in [
            ("/v1/chat/completions", {"messages": []}, 400, "messages"),
            (
                "/v1/chat/completions",
                {"messages": [{"role": "user", "content": "x"}], "continue_final_message": True},
                400,
                "expected an assistant's message",
            ),
            ("/v1/chat/completions", {}, 400, "body: expected an object with 'messages'"),
            (
                "/v1/chat/completions",
                {"messages": [{"role": "user", "content": "x"}], "temperature": -1},
                400,
                "body.temperature: expected a number from 0 to 100, got -1",
            ),
            (
                "/v1/chat/completions",
                {"messages": [{"role": "user", "content": "word " * 600}]},
                400,
                "as many as the model's context has",
            ),
            ("/v2", {}, 404, "expected POST"),
        ]:
            got, text = server.ask("POST", path, body)
            test.expect(
                got == status and message in json.loads(text)["error"]["message"],
                f"{status}: {message}{'' if message in text else ', got ' + text}",
            )
        test.expect(server.ask("POST", "/v1/chat/completions", raw="{")[0] == 400, "400: no JSON")
        test.expect(server.ask("GET", "/v1/chat/completions")[0] == 405, "405: not a POST")
        for path, method, allowed in [
            ("/health", "PUT", "GET, HEAD"),
            ("/v1/models/x", "DELETE", "GET, HEAD"),
            ("/v1/completions", "PATCH", "POST"),
        ]:
            status, headers, body = server.headers(method, path)
            test.expect(
                status == 405 and headers["Allow"] == allowed and path in body, f"405: {method} {path}"
            )
        head = server.headers("GET", "/health")
        status, headers, body = server.headers("HEAD", "/health")
        test.expect(
            head[0] == 200 and (status, headers["Content-Length"], body) == (200, str(len(head[2])), ""),
            "HEAD is as GET, without a body",
        )
        test.expect(server.headers("HEAD", "/v1/models/x")[0] == 404, "HEAD of another model")

        # Clients that leave in the middle of a request, and of an answer: the others are served.
        half = socket.create_connection(("127.0.0.1", server.port))
        half.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Le")
        body = json.dumps(
            {"messages": [{"role": "user", "content": "Why?"}], "stream": True, "max_tokens": 400}
        )
        gone = socket.create_connection(("127.0.0.1", server.port))
        gone.sendall(
            f"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        gone.recv(10)
        gone.close()
        half.close()
        test.expect(
            json.loads(server.chat("Why?"))["choices"][0]["message"]["content"] == said["Why?"][0],
            "a client that leaves disturbs no other",
        )
        openai_package(test, server)
        many_requests(test, server)
        server.process.send_signal(signal.SIGTERM)
        test.expect(server.process.wait(20) == 0, "it ends on the signal")
    finally:
        server.process.kill()
    full_queue(test, tool, folder, device)
    ends_gracefully(test, tool, folder, device, 30, [signal.SIGTERM], 0, "data: [DONE]")
    ends_gracefully(
        test, tool, folder, device, 0, [signal.SIGTERM], 130, "this server ended before the answer was whole"
    )
    ends_gracefully(test, tool, folder, device, 30, [signal.SIGTERM, signal.SIGINT], 130, "HTTP/1.1 200 OK")
    ends_while_it_loads(test, tool, folder)
    other_conversations(test, tool, folder, device)
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
