"""`nereid serve`: what its routes answer, and what it does when it is overloaded, killed, lied to or left.

judge_service_test.py NEREID
"""

import base64
import concurrent.futures
import http.client
import json
import os
import pathlib
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import unittest
from random import Random

TESTS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))
from judge_server import (
    BROKEN,
    GOOD,
    KEYS,
    PLAN,
    PROMPT,
    REFERENCE,
    RELU,
    WRONG,
    Server,
    quick,
    wrong,
)  # noqa: E402

NEREID = str(pathlib.Path(sys.argv.pop(1)).resolve()) if len(sys.argv) > 1 else ""
TOKEN, OTHER = "a-token-of-some-length", "another-token-of-some-length"


class Case(unittest.TestCase):
    """One server for all tests of a class."""

    OPTIONS = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.server = Server(NEREID, cls.folder.name, *cls.OPTIONS)

    @classmethod
    def tearDownClass(cls):
        code = cls.server.end()
        cls.folder.cleanup()
        assert code == 0, (code, cls.server.stderr)


class Answers(Case):
    def test_one_object(self):
        status, answer = self.server.verify(GOOD)
        self.assertEqual((status, set(answer)), (200, KEYS))
        self.assertEqual((answer["reward"], answer["status"]), (1.0, "verified"))
        self.assertEqual(answer["reward_components"], {"plan": 1.0, "code": 1.0})
        self.assertEqual(answer["scores"], {"valid": 1.0, "correct": 1.0, "speedup": 1.0})
        spans = {span["name"]: GOOD[span["start"] : span["end"]] for span in answer["spans"]}
        self.assertEqual(spans["code"].strip(), RELU.strip())
        self.assertTrue(spans["plan"].startswith(PLAN.rstrip()))
        self.assertEqual(answer["verdict"]["verdict"], "Verified")
        self.assertEqual(answer["receipt"]["task"], "relu")
        self.assertRegex(answer["receipt"]["completion"], "^[0-9a-f]{64}$")

        status, answer = self.server.verify(WRONG)
        self.assertEqual((status, answer["reward"], answer["status"]), (200, 0.0, "refused"))
        self.assertEqual((answer["verdict"]["verdict"], answer["scores"]["valid"]), ("Mismatch", 1.0))
        self.assertTrue(answer["verdict"]["evidence"])
        status, answer = self.server.verify("I cannot do it.")
        self.assertEqual((status, answer["reward"], answer["scores"]["valid"]), (200, 0.0, 0.0))

    def test_references_and_chats(self):
        messages = [
            {"role": "assistant", "content": WRONG},
            {"role": "user", "content": "No."},
            {"role": "assistant", "content": [{"type": "text", "text": GOOD}]},
        ]
        for given in (
            {"reference": REFERENCE},
            {"reference": "relu.py"},
            {"prompt": PROMPT},
            {"prompt": [{"role": "user", "content": PROMPT}]},
        ):
            status, answer = self.server.ask("/v1/verify", {"completion": messages, **given})
            self.assertEqual((status, answer["reward"]), (200, 1.0), given)
        for given in (
            {},
            {"prompt": "Write a kernel."},
            {"reference": "no_such_task"},
            {"reference": "../honest/relu_one_kernel"},
        ):
            status, answer = self.server.ask("/v1/verify", {"completion": GOOD, **given})
            self.assertEqual(
                (status, answer["status"], answer["reward"], answer["blame"]), (422, "error", None, "input")
            )

    def test_the_same_pair_costs_once(self):
        self.server.verify(GOOD)
        before = self.server.metric("nereid_accepted_total")
        answers = [
            self.server.verify(GOOD, reward=name)[1]
            for name in ("binary", "hierarchical", "uniform", "decoupled")
        ]
        self.assertEqual([answer["reward"] for answer in answers], [1.0] * 4)
        self.assertEqual(answers[3]["reward_components"], {"plan": 0.0, "code": 1.0})
        self.assertEqual(self.server.metric("nereid_accepted_total"), before)
        # At the same time, too: one is judged, all are answered.
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: self.server.verify(wrong(1)), range(8)))
        self.assertEqual({(status, answer["receipt"]["answered"]) for status, answer in answers},
                         {(200, answers[0][1]["receipt"]["answered"])})  # fmt: skip
        self.assertEqual(self.server.metric("nereid_accepted_total"), before + 1)
        # Another question about the same pair is another pair.
        self.assertEqual(
            self.server.verify(GOOD, options={"policy": "strict"})[1]["verdict"]["policy"], "strict"
        )
        self.assertEqual(self.server.metric("nereid_accepted_total"), before + 2)

    def test_half_a_surrogate_pair_is_a_verdict(self):
        body = b'{"reference": "relu", "completion": "\\ud800```python\\nimport torch\\n```"}'
        status, _, text = self.server.raw("POST", "/v1/verify", body)
        answer = json.loads(text)
        self.assertEqual(
            (status, answer["verdict"]["verdict"], answer["verdict"]["rule"]), (200, "Malformed", "not-text")
        )
        status, _, text = self.server.raw(
            "POST", "/v1/verify", b'{"reference": "relu", "completion": "\xff\xfe"}'
        )
        self.assertEqual((status, json.loads(text)["verdict"]["rule"]), (200, "not-text"))

    def test_what_is_no_question(self):
        for body, status in (
            (b"{", 400), (b"[]", 400), (b"\xff", 400), (b'{"a": 1, "a": 2}', 400), (b"[" * 100000, 400),
            (b"{}", 422), (b'{"completion": 7, "reference": "relu"}', 422),
            (b'{"completion": "x", "reference": 7}', 422),
            (b'{"completion": "x", "reference": "relu", "candidate": "/etc/passwd"}', 422),
            (b'{"completion": "x", "reference": "relu", "options": {"reference": "/etc/passwd"}}', 422),
            (b'{"completion": "x", "reference": "relu", "options": {"policy": "lax"}}', 422),
            (b'{"completion": "x", "reference": "relu", "options": {"time_limit": 31}}', 422),
            (b'{"completion": "x", "reference": "relu", "reward": "most"}', 422),
            (b'{"completion": "x", "reference": "relu\\u0000"}', 422),
            (b'{"completion": {}, "reference": "relu"}', 422),
            (b'{"completion": [], "reference": "relu"}', 422),
            (b'{"completion": {"text": "x"}, "reference": "relu"}', 422),
            (b'{"completion": [7], "reference": "relu"}', 422),
            (b'{"completion": "x", "reference": "relu", "timeout_s": "5"}', 422),
            (b'{"completion": "x", "reference": "relu", "timeout_s": -1}', 422),
            (b'{"completion": "x", "reference": "relu", "speedup_limit": NaN}', 400),
            (b'{"completion": "x", "reference": "relu", "speedup_limit": 1e999}', 400),
        ):  # fmt: skip
            got, _, text = self.server.raw("POST", "/v1/verify", body)
            answer = json.loads(text)
            self.assertEqual((got, answer["status"], answer["reward"]), (status, "error", None), body[:80])
            self.assertTrue(answer["error"])
        self.assertEqual(self.server.ask("/v1/nothing")[0], 404)
        status, headers, _ = self.server.raw("GET", "/v1/verify")
        self.assertEqual((status, headers["Allow"]), (405, "POST"))
        self.assertEqual(self.server.raw("HEAD", "/health")[::2], (200, ""))
        text = self.server.raw("POST", "/v1/verify", b'{"timeout_s": NaN}')[2]
        self.assertIn("JSON has neither NaN nor infinities", text)
        self.assertEqual(self.server.verify("x", timeout_s=None)[0], 200)

    def raw(self, text):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=600) as client:
            client.sendall(text)
            return client.makefile("rb").read()

    def test_forms_of_http(self):
        close = b"Host: localhost\r\nConnection: close\r\n\r\n"
        healthy = b'{"status":"healthy"}'
        self.assertTrue(self.raw(b"GET /health HTTP/1.0\r\n\r\n").endswith(healthy))
        kept = self.raw(
            b"GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + b"GET /health HTTP/1.0\r\n\r\n"
        )
        self.assertEqual((kept.count(healthy), kept.lower().count(b"connection: keep-alive")), (2, 1))
        self.assertTrue(self.raw(b"GET http://localhost/health?x=1 HTTP/1.1\r\n" + close).endswith(healthy))
        self.assertIn(b" 403 ", self.raw(b"GET http://evil.example/health HTTP/1.1\r\n" + close))
        for target in (b"/v1/verify", b"/no_such_route"):  # no body follows the head, whatever the status
            self.assertTrue(self.raw(b"HEAD " + target + b" HTTP/1.1\r\n" + close).endswith(b"\r\n\r\n"))
        several = self.raw(
            b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3 + b"GET /health HTTP/1.1\r\n" + close
        )
        self.assertEqual(several.count(healthy), 4)

    def test_it_holds_no_connections_and_no_memory(self):
        def files():
            return len(os.listdir(f"/proc/{self.server.process.pid}/fd"))

        def kilobytes():
            status = pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text()
            return int(status.split("VmRSS:")[1].split()[0])

        def requests(first, count):
            for i in range(first, first + count):
                self.assertEqual(self.server.verify(quick(i))[0], 200)
                with socket.create_connection(("127.0.0.1", self.server.port)) as client:
                    client.sendall((b"", b"POST /v1/ver", b"\0\1\2")[i % 3])

        requests(20000, 300)
        before = files(), kilobytes()
        requests(21000, 700)
        deadline = time.monotonic() + 200
        while files() > before[0] + 4 and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertLessEqual(files(), before[0] + 4)
        self.assertLess(kilobytes(), before[1] + 8000)

    def test_a_task_at_fault_has_no_reward(self):
        status, answer = self.server.ask("/v1/verify", {"completion": GOOD, "reference": BROKEN})
        self.assertEqual(
            (status, answer["status"], answer["reward"], answer["blame"]), (422, "error", None, "input")
        )
        self.assertIn("empty", answer["error"])

    def test_many_at_once(self):
        items = [{"completion": text} for text in (GOOD, WRONG, quick(0))] + [
            {"completion": GOOD, "reference": "no_such_task"}
        ]
        for item in items:
            item["group"] = "relu"
        body = {"items": items, "reference": "relu", "advantages": {"objective": "grpo", "baseline": "mean"}}
        status, many = self.server.ask("/v1/verify/batch", body)
        self.assertEqual(status, 200)
        self.assertEqual(
            [answer["status"] for answer in many["answers"]], ["verified", "refused", "refused", "error"]
        )
        self.assertEqual([answer["reward"] for answer in many["answers"]], [1.0, 0.0, 0.0, None])
        plan = [one and round(one["plan"], 6) for one in many["advantages"]]
        self.assertEqual(plan, [0.666667, -0.333333, -0.333333, None])
        for bad in ({}, {"items": []}, {"items": [1], "advantages": {"objective": "drpo"}}):
            self.assertEqual(self.server.ask("/v1/verify/batch", bad)[0], 400)

    def test_tasks(self):
        status, task = self.server.ask("/v1/tasks", {"completion": wrong(2), "reference": "relu"})
        self.assertEqual((status, task["state"]), (202, "waiting"))
        status, again = self.server.ask("/v1/tasks", {"completion": wrong(2), "reference": "relu"})
        self.assertEqual(again["id"], task["id"])
        status, found = self.server.ask("/v1/tasks/wait", {"ids": [task["id"], "0" * 64], "timeout_s": 0})
        self.assertEqual((status, found["unknown"]), (200, ["0" * 64]))
        found = self.server.ask("/v1/tasks/wait", {"ids": [task["id"]], "timeout_s": 60})[1]
        self.assertEqual(found["answers"][task["id"]]["status"], "refused")
        status, found = self.server.ask(f"/v1/tasks/{task['id']}?reward=binary")
        self.assertEqual((status, found["state"], found["answer"]["reward"]), (200, "answered", 0.0))
        self.assertEqual(found["answer"]["verdict"]["reward"]["objective"], "binary")
        self.assertEqual(self.server.ask("/v1/tasks/" + "0" * 64)[0], 404)
        status, many = self.server.ask(
            "/v1/tasks", {"items": [{"completion": GOOD}, {}], "reference": "relu"}
        )
        self.assertEqual(
            (status, [task.get("state") or task["status"] for task in many["tasks"]]),
            (202, ["answered", "error"]),
        )

    def test_metrics_and_status(self):
        self.server.verify(GOOD)
        status, headers, text = self.server.raw("GET", "/metrics")
        self.assertTrue(headers["Content-Type"].startswith("text/plain"))
        for line in text.splitlines():
            self.assertRegex(
                line, r'^(# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"\n]*"(,\w+="[^"\n]*")*\})? [-+.\de]+)$'
            )
        self.assertGreater(self.server.metric('nereid_verdicts_total{verdict="Verified"}'), 0)
        self.assertGreater(self.server.metric('nereid_verdict_seconds_bucket{le="+Inf"}'), 0)
        page = self.server.ask("/v1/status")[1]
        self.assertEqual(
            (page["queue"]["limit"], page["judges"][0]["name"], page["judges"][0]["running"]),
            (1024, "cpu", True),
        )
        self.assertIn("Verified", [one["verdict"] for one in page["latest"]])
        self.assertIn("<title>nereid serve</title>", self.server.raw("GET", "/")[2])

    def test_bodies_of_any_shape(self):
        random = Random(5)
        message = {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": quick(1)}],
        }
        question = {
            "completion": quick(1),
            "reference": "relu",
            "options": {"seed": 1},
            "reward": "binary",
            "group": "g",
        }
        bodies = {
            "/v1/verify": {**question, "timeout_s": 5},
            "/v1/verify/batch": {"items": [question, {"completion": [message], "prompt": [message]}],
                "advantages": {"objective": "hrd"}},
            "/v1/tasks": {"items": [question]},
            "/v1/tasks/wait": {"ids": ["0" * 64], "timeout_s": 0},
            "/slime": {"prompt": [message], "response": quick(1), "label": "relu"},
            "/openrlhf": {"query": [quick(1)], "prompts": ["p"], "labels": ["relu"]},
            "/verify": {"response": {"output": [message]}, "responses_create_params": {"input": [message]},
                "label": "relu"},
            "/aggregate_metrics": {"verify_responses": [{"reward": 1}]},
            "/reset": {"task": "relu", "seed": 1, "max_turns": 2, "episode_id": "e"},
            "/step": {"action": {"code": quick(1), "reference": "relu"}, "timeout_s": 5},
            "/mcp": {"id": 1, "method": "tools/call", "params": {"name": "verify",
                "arguments": {"code": quick(1), "reference": "relu"}}},
        }  # fmt: skip
        statuses = set()
        for _ in range(60):
            for path, body in bodies.items():
                changed = json.loads(json.dumps(body))
                for _ in range(random.randrange(1, 4)):
                    changed = mutated(changed, random)
                statuses.add((path, self.server.raw("POST", path, json.dumps(changed))[0]))
        self.assertEqual({status for _, status in statuses} - {200, 202, 400, 404, 422}, set())
        self.assertLessEqual({(path, 200) for path in bodies if path != "/v1/tasks"}, statuses)
        self.assertEqual(self.server.ask("/health")[0], 200)

    def test_pages_of_other_sites(self):
        here = f"127.0.0.1:{self.server.port}"
        body = json.dumps({"completion": quick(3), "reference": "relu"})
        for headers, status in (
            ({"Origin": f"http://{here}"}, 200),
            ({"Origin": "http://elsewhere.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Host": f"elsewhere.example:{self.server.port}"}, 403),
            ({"Host": f"localhost:{self.server.port}"}, 200),
            ({"Host": "[::1]:80"}, 200),
        ):
            self.assertEqual(self.server.raw("POST", "/v1/verify", body, headers)[0], status, headers)

    def test_slime(self):
        status, answer = self.server.ask("/slime", {"prompt": "", "response": GOOD, "label": "relu"})
        self.assertEqual((status, answer["reward"]), (200, 1.0))
        chat = [{"role": "user", "content": PROMPT}]
        self.assertEqual(
            self.server.ask("/slime", {"prompt": chat, "response": WRONG, "label": None})[1]["reward"], 0.0
        )
        self.assertEqual(
            self.server.ask("/slime", {"prompt": "", "response": GOOD, "label": "no_such_task"})[0], 422
        )

    def test_openrlhf(self):
        body = {
            "query": [PROMPT + GOOD, PROMPT + WRONG],
            "prompts": [PROMPT, PROMPT],
            "labels": ["relu", REFERENCE],
        }
        status, answer = self.server.ask("/openrlhf", body)
        self.assertEqual((status, answer["rewards"], answer["scores"]), (200, [1.0, 0.0], [1.0, 0.0]))
        self.assertEqual(answer["extra_logs"]["valid"], [1.0, 1.0])
        span = answer["answers"][0]["spans"][0]
        self.assertTrue(GOOD[span["start"] : span["end"]].startswith(PLAN.rstrip()))
        status, answer = self.server.ask("/openrlhf", {**body, "labels": ["relu", "no_such_task"]})
        self.assertEqual((status, "rewards" in answer), (422, False))
        self.assertEqual(self.server.ask("/openrlhf", {**body, "labels": ["relu"]})[0], 400)

    def test_nemo_gym(self):
        self.assertEqual(self.server.ask("/seed_session", {}), (200, {}))
        message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": GOOD}]}
        body = {
            "responses_create_params": {"input": [{"role": "user", "content": PROMPT}]},
            "response": {"id": "r", "output": [{"type": "reasoning", "summary": []}, message]},
            "verifier_metadata": {"reference": "relu"},
        }
        answers = []
        for path in ("/verify", "/nemo_gym/verify"):
            status, answer = self.server.ask(path, body)
            self.assertEqual((status, answer["reward"], answer["reward_components"]["code"]), (200, 1.0, 1.0))
            self.assertEqual(answer["response"], body["response"])
            answers.append(answer)
        status, metrics = self.server.ask("/aggregate_metrics", {"verify_responses": answers})
        self.assertEqual((status, metrics["key_metrics"]["mean/reward"]), (200, 1.0))
        self.assertEqual(self.server.ask("/verify", {"response": {}})[0], 422)


def mutated(value, random):
    """The same with one part, anywhere in it, of another type."""
    if isinstance(value, dict) and value and random.random() < 0.85:
        key = random.choice(sorted(value))
        return {**value, key: mutated(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.7:
        place = random.randrange(len(value))
        return [*value[:place], mutated(value[place], random), *value[place + 1 :]]
    return random.choice(
        [None, True, 0, -1, 1.5, 1e308, "", "x", "\ud800", [], [None], {}, {"a": 1}, [[]], "relu", value]
    )


class OpenEnv(Case):
    def test_http(self):
        status, begun = self.server.ask("/reset", {"task": "relu", "max_turns": 2, "episode_id": "e 1"})
        self.assertEqual((status, begun["done"], begun["reward"]), (200, False, None))
        self.assertEqual(begun["observation"]["reference"], REFERENCE)
        step = {"action": {"code": WRONG}, "timeout_s": 60, "request_id": "r", "episode_id": "e 1"}
        status, first = self.server.ask("/step", step)
        self.assertEqual((status, first["reward"], first["done"]), (200, 0.0, False))
        self.assertIn("Mismatch", first["observation"]["feedback"])
        self.assertEqual(self.server.ask("/step", {**step, "action": {"code": GOOD}})[1]["reward"], 1.0)
        self.assertEqual(self.server.ask("/step", step)[0], 422)
        state = self.server.ask("/state?episode_id=e 1".replace(" ", "%20"))
        self.assertEqual(state[0], 200)
        # Without an episode, as OpenEnv's own servers do it.
        status, only = self.server.ask("/step", {"action": {"code": RELU, "reference": "relu"}})
        self.assertEqual((status, only["reward"], only["done"]), (200, 1.0, True))
        for bad in ({}, {"action": {}}, {"action": {"code": RELU}}, {"action": 7}):
            self.assertEqual(self.server.ask("/step", bad)[0], 422)
        self.assertEqual(self.server.ask("/reset", {"task": "no_such_task"})[0], 422)
        drawn = [self.server.ask("/reset", {"seed": seed})[1]["observation"]["task"] for seed in (0, 1, 0)]
        self.assertEqual((drawn[0], drawn[0] != drawn[1]), (drawn[2], True))
        self.assertLessEqual({"action", "observation", "state"}, set(self.server.ask("/schema")[1]))
        self.assertEqual(self.server.ask("/metadata")[1]["name"], "nereid")
        self.assertIn("/step", self.server.ask("/openapi.json")[1]["paths"])
        self.assertEqual(self.server.ask("/mcp", {})[1]["jsonrpc"], "2.0")
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "verify", "arguments": {"code": GOOD, "reference": "relu"}}}  # fmt: skip
        self.assertEqual(self.server.ask("/mcp", call)[1]["result"]["structuredContent"]["reward"], 1.0)

    def test_websocket(self):
        with WebSocket(self.server.port) as ws:
            self.assertEqual(ws.ask({"type": "reset", "data": {"task": "relu"}})["data"]["done"], False)
            step = ws.ask({"type": "step", "data": {"code": GOOD}})
            self.assertEqual(
                (step["type"], step["data"]["reward"], step["data"]["done"]), ("observation", 1.0, True)
            )
            self.assertEqual(ws.ask({"type": "state"})["data"]["step_count"], 1)
            for text, code in (
                ("{", "INVALID_JSON"), ('{"type": "dance"}', "UNKNOWN_TYPE"),
                ('{"type": "step", "data": {"code": "x"}}', "SESSION_ERROR"),
                ('{"type": "reset", "data": {"task": "no_such_task"}}', "VALIDATION_ERROR"),
            ):  # fmt: skip
                self.assertEqual(ws.ask_raw(text)["data"]["code"], code)
            ws.ask({"type": "reset", "data": {"task": "relu"}})
            # Several at once are answered in order, and a ping between them at once.
            ws.send(json.dumps({"type": "step", "data": {"code": wrong(77)}}))
            ws.send(json.dumps({"type": "state"}))
            ws.frame(9, b"ping")
            kinds = [ws.receive() for _ in range(3)]  # the pong wherever it comes
            self.assertIn((10, b"ping"), kinds)
            kinds.remove((10, b"ping"))
            self.assertEqual([json.loads(text)["type"] for _, text in kinds], ["observation", "state"])
            ws.send(json.dumps({"type": "close"}))
            self.assertEqual(ws.receive()[0], 8)
        with WebSocket(self.server.port) as ws:  # gone in the middle of a step
            ws.ask({"type": "reset", "data": {"task": "relu"}})
            ws.send(json.dumps({"type": "step", "data": {"code": wrong(78)}}))
        self.assertEqual(self.server.raw("GET", "/ws")[0], 426)
        self.assertEqual(self.server.verify(wrong(78))[0], 200)


class WebSocket:
    """As much of RFC 6455 as a test needs."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=600)
        key = base64.b64encode(os.urandom(16)).decode()
        head = (
            "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection:"
            f" Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
        )
        self.socket.sendall((head + "Sec-WebSocket-Version: 13\r\n\r\n").encode())
        self.stream = self.socket.makefile("rb")
        assert b"101" in self.stream.readline()
        while self.stream.readline().strip():
            pass

    def frame(self, opcode, payload):
        size = len(payload)
        head = bytes([0x80 | opcode]) + (
            bytes([0x80 | size])
            if size < 126
            else struct.pack("!BH", 0xFE, size)
            if size < 1 << 16
            else struct.pack("!BQ", 0xFF, size)
        )
        mask = os.urandom(4)
        self.socket.sendall(head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload)))

    def send(self, text):
        self.frame(1, text.encode())

    def receive(self):
        first, second = self.stream.read(2)
        size = second & 127
        size = (
            size
            if size < 126
            else struct.unpack("!H" if size == 126 else "!Q", self.stream.read(2 if size == 126 else 8))[0]
        )
        return first & 15, self.stream.read(size)

    def ask_raw(self, text):
        self.send(text)
        return json.loads(self.receive()[1])

    def ask(self, message):
        return self.ask_raw(json.dumps(message))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.socket.close()


class Limits(Case):
    OPTIONS = ("--max-body", 100000, "--request-timeout", 1.5)

    def test_large_bodies(self):
        body = json.dumps({"completion": "x" * 200000, "reference": "relu"}).encode()
        self.assertEqual(self.server.raw("POST", "/v1/verify", body)[0], 413)
        self.assertEqual(
            self.server.raw(
                "POST", "/v1/verify", iter([body[:50000], body[50000:]]), {"Transfer-Encoding": "chunked"}
            )[0],
            413,
        )
        self.assertEqual(self.server.raw("POST", "/v1/verify", b"x" * 20_000_000)[0], 413)
        small = json.dumps({"completion": quick(1), "reference": "relu"}).encode()
        self.assertEqual(
            self.server.raw(
                "POST", "/v1/verify", iter([small[:10], small[10:]]), {"Transfer-Encoding": "chunked"}
            )[0],
            200,
        )
        self.assertEqual(self.server.raw("GET", "/health", headers={"X": "y" * 70000})[0], 431)
        with WebSocket(self.server.port) as ws:
            ws.send("x" * 200000)
            self.assertEqual(ws.receive()[0], 8)

    def test_expect_100(self):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=600) as client:
            body = json.dumps({"completion": quick(2), "reference": "relu"}).encode()
            head = (
                f"POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\nExpect:"
                " 100-continue\r\n\r\n"
            )
            client.sendall(head.encode())
            self.assertTrue(client.recv(100).startswith(b"HTTP/1.1 100"))
            client.sendall(body)
            self.assertTrue(client.recv(100).startswith(b"HTTP/1.1 200"))

    def test_slow_clients(self):
        for begun in (
            b"",
            b"POST /v1/ver",
            b"POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
        ):
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=600) as client:
                start = time.monotonic()
                client.sendall(begun)
                self.assertEqual(client.recv(1000), b"")
                self.assertLess(time.monotonic() - start, 200)  # the client gives up after 600
        # One that sends a byte now and then has no more time.
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=600) as client:
            start = time.monotonic()
            try:
                for byte in b"POST /v1/verify HTTP/1.1\r\nX: " + 2000 * b"y":  # 400 s of them
                    client.sendall(bytes([byte]))
                    time.sleep(0.2)
            except OSError:
                pass
            self.assertLess(time.monotonic() - start, 200)
        self.assertEqual(self.server.ask("/health")[0], 200)

    def test_a_client_that_leaves(self):
        body = json.dumps({"completion": wrong(3), "reference": "relu"}).encode()
        before = self.server.metric("nereid_accepted_total")
        with socket.create_connection(("127.0.0.1", self.server.port)) as client:
            client.sendall(
                f"POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            while self.server.metric("nereid_accepted_total") == before:
                time.sleep(0.05)
        accepted = before + 1
        status, answer = self.server.verify(wrong(3))
        self.assertEqual((status, answer["status"]), (200, "refused"))
        self.assertEqual(self.server.metric("nereid_accepted_total"), accepted)

    def test_garbage(self):
        for garbage in (b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/9.9\r\n\r\n", b"\r\n\r\n\r\n\r\n",
                        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                        b"POST /v1/verify HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                        b"POST /v1/verify HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"
                        b"xx"):  # fmt: skip
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=600) as client:
                client.sendall(garbage)
                self.assertNotIn(b" 200 ", client.recv(1000))
        self.assertEqual(self.server.ask("/health")[0], 200)

    def test_a_verdict_that_is_late(self):
        status, answer = self.server.verify(wrong(4), timeout_s=0)
        self.assertEqual(
            (status, answer["status"], answer["reward"], answer["blame"]), (503, "error", None, "ours")
        )
        self.assertEqual(self.server.verify(wrong(4))[1]["status"], "refused")


class Load(Case):
    OPTIONS = ("--queue", 4000, "--queue-per-client", 4000)

    def test_many_clients(self):
        count, each = 100, 10
        self.server.verify(quick(0))  # the judge is there
        failures = []

        def client(number):
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=600)
            for i in range(each):
                body = json.dumps({"completion": quick(number * each + i + 10), "reference": "relu"})
                connection.request("POST", "/v1/verify", body)
                response = connection.getresponse()
                answer = json.loads(response.read())
                if response.status != 200 or answer["status"] != "refused":
                    failures.append((response.status, answer))
            connection.close()

        start = time.monotonic()
        threads = [threading.Thread(target=client, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - start
        self.assertEqual(failures, [])
        print(
            f"{count * each} pairs of {count} clients in {seconds:.1f} s: {count * each / seconds:.0f} a"
            " second"
        )
        items = [{"completion": quick(i + 5000)} for i in range(2000)]
        start = time.monotonic()
        status, many = self.server.ask("/v1/verify/batch", {"items": items, "reference": "relu"})
        self.assertEqual((status, len(many["answers"])), (200, 2000))
        self.assertEqual({answer["status"] for answer in many["answers"]}, {"refused"})
        print(f"2000 pairs in one request in {time.monotonic() - start:.1f} s")


class Faults(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.servers = []

    def tearDown(self):
        for server in self.servers:
            if server.process.returncode is None:
                server.end(signal.SIGKILL)
        self.folder.cleanup()

    def start(self, *more, **options):
        self.servers.append(Server(NEREID, self.folder.name, *more, **options))
        return self.servers[-1]

    def test_tokens(self):
        tokens = pathlib.Path(self.folder.name) / "tokens.txt"
        tokens.write_text(f"# clients\nada {TOKEN}\nbob {OTHER}\n")
        server = self.start("--tokens", tokens)
        body = json.dumps({"completion": quick(0), "reference": "relu"})
        for given in ({}, {"Authorization": "Bearer "}, {"Authorization": f"Bearer {TOKEN}x"},
                      {"Authorization": f"bearer{TOKEN}"},
                      {"Authorization": "Basic !!!"}):  # fmt: skip
            status, headers, text = server.raw("POST", "/v1/verify", body, given)
            self.assertEqual(
                (status, headers["WWW-Authenticate"], json.loads(text)["reward"]), (401, "Bearer", None)
            )
        self.assertEqual(server.raw("POST", "/v1/verify", b"x" * 10_000_000)[0], 401)
        basic = base64.b64encode(f"x:{OTHER}".encode()).decode()
        for given in (f"Bearer {TOKEN}", f"Basic {basic}"):
            self.assertEqual(server.raw("POST", "/v1/verify", body, {"Authorization": given})[0], 200)
        for path, status in (
            ("/health", 200),
            ("/", 200),
            ("/metadata", 200),
            ("/metrics", 401),
            ("/v1/status", 401),
            ("/ws", 401),
        ):
            self.assertEqual(server.raw("GET", path)[0], status, path)
        self.assertEqual(server.end(), 0)
        for text in (
            "ada short\n",
            "ada\n",
            f"ada {TOKEN} more\n",
            f"ada {TOKEN}\nbob {TOKEN}\n",
            "# none\n",
        ):
            tokens.write_text(text)
            with self.assertRaisesRegex(RuntimeError, "tokens.txt"):
                self.start("--tokens", tokens)
        with self.assertRaisesRegex(RuntimeError, "--tokens"):
            self.start("--address", "0.0.0.0")

    def test_a_full_queue_and_fair_turns(self):
        tokens = pathlib.Path(self.folder.name) / "tokens.txt"
        tokens.write_text(f"ada {TOKEN}\nbob {OTHER}\n")
        server = self.start("--tokens", tokens, "--queue", 16, "--queue-per-client", 12, jobs=1, warm=False)
        ada, bob = ({"Authorization": f"Bearer {token}"} for token in (TOKEN, OTHER))

        def submit(client, numbers):
            body = {"items": [{"completion": wrong(number)} for number in numbers], "reference": "relu"}
            status, headers, text = server.raw("POST", "/v1/tasks", json.dumps(body), client)
            return status, headers, json.loads(text)

        status, _, first = submit(ada, range(12))
        self.assertEqual(status, 202)
        status, headers, answer = submit(ada, range(100, 112))
        self.assertEqual((status, answer["status"], answer["reward"]), (429, "error", None))
        self.assertGreaterEqual(int(headers["Retry-After"]), 1)
        self.assertEqual(submit(ada, range(12))[0], 202)  # these wait already, and take no place
        status, _, second = submit(bob, range(200, 202))
        self.assertEqual(status, 202)
        self.assertEqual(submit(bob, range(300, 312))[0], 429)

        def answered(client, tasks):
            left, times = [task["id"] for task in tasks["tasks"]], []
            while left:
                found = server.ask("/v1/tasks/wait", {"ids": left}, headers=client)[1]
                times += [answer["receipt"]["answered"] for answer in found["answers"].values()]
                left = found["waiting"]
            return times

        of_bob, of_ada = answered(bob, second), answered(ada, first)
        self.assertEqual((len(of_ada), len(of_bob)), (12, 2))
        later = sum(time > max(of_bob) for time in of_ada)
        self.assertGreaterEqual(later, 6, "bob's two pairs waited for ada's twelve")

    def test_nothing_is_lost_to_kill_9(self):
        server = self.start(jobs=1)
        items = [{"completion": wrong(number)} for number in range(10)]
        tasks = server.ask("/v1/tasks", {"items": items, "reference": "relu"})[1]["tasks"]
        ids, before = [task["id"] for task in tasks], {}
        while len(before) < 3:
            before.update(
                server.ask("/v1/tasks/wait", {"ids": [id for id in ids if id not in before]})[1]["answers"]
            )
        judges = server.judges()
        server.end(signal.SIGKILL)
        server = self.start(jobs=1)
        after = {}
        while len(after) < len(ids):
            after.update(
                server.ask("/v1/tasks/wait", {"ids": [id for id in ids if id not in after]})[1]["answers"]
            )
        self.assertEqual({answer["status"] for answer in after.values()}, {"refused"})
        for id, answer in before.items():
            self.assertEqual(after[id], answer)  # not judged again
        self.assertLessEqual(
            server.metric('nereid_verdicts_total{verdict="Mismatch"}'), len(ids) - len(before)
        )
        self.assertFalse([pid for pid in judges if os.path.exists(f"/proc/{pid}") and is_running(pid)])
        self.assertEqual(server.end(), 0)

    def test_it_ends_with_what_it_accepted(self):
        server = self.start()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            asked = pool.submit(server.verify, GOOD)
            while server.metric("nereid_accepted_total") < 1:
                time.sleep(0.05)
            server.process.send_signal(signal.SIGTERM)
            status, answer = asked.result()
        self.assertEqual((status, answer["reward"], server.end(None)), (200, 1.0, 0))
        # Without time left the answer is that there is no verdict yet, and the next server has it.
        server = self.start("--grace", 0, warm=False)  # its judge needs seconds to start
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            asked = pool.submit(server.verify, WRONG)
            while server.metric("nereid_accepted_total") < 1:
                time.sleep(0.05)
            server.process.send_signal(signal.SIGINT)
            status, answer = asked.result()
        self.assertEqual(
            (status, answer["status"], answer["reward"], server.end(None)), (503, "error", None, 0)
        )
        server = self.start()
        self.assertEqual(server.ask(f"/v1/tasks/{answer['receipt']['id']}")[0] // 100, 2)  # it is known
        self.assertEqual(server.verify(WRONG)[1]["status"], "refused")
        self.assertEqual(server.metric("nereid_accepted_total"), 0)

    def test_a_fault_of_the_judge_has_no_reward(self):
        server = self.start(warm=False)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            asked = pool.submit(
                server.raw, "POST", "/v1/verify", json.dumps({"completion": GOOD, "reference": "relu"})
            )
            killed = set()
            while len(killed) < 3:
                for pid in set(server.judges()) - killed:
                    if server.ask("/v1/status")[1]["queue"]["under_way"] > 0:
                        os.kill(pid, signal.SIGKILL)
                        killed.add(pid)
                time.sleep(0.02)
            status, headers, text = asked.result()
        answer = json.loads(text)
        self.assertEqual(
            (status, answer["status"], answer["reward"], answer["blame"]), (503, "error", None, "ours")
        )
        self.assertEqual((set(answer) - KEYS, "Retry-After" in headers), ({"error", "blame"}, True))
        self.assertEqual(server.ask(f"/v1/tasks/{answer['receipt']['id']}")[0], 503)
        status, answer = server.verify(GOOD)
        self.assertEqual((status, answer["reward"]), (200, 1.0))
        self.assertEqual(
            (server.metric("nereid_faults_total"), server.metric("nereid_judge_restarts_total")), (1, 3)
        )
        # One death costs nothing: what was under way is judged again, each alone.
        tasks = server.ask(
            "/v1/tasks", {"items": [{"completion": wrong(i)} for i in range(4)], "reference": "relu"}
        )[1]["tasks"]
        for pid in server.judges():
            os.kill(pid, signal.SIGKILL)
        left = [task["id"] for task in tasks]
        while left:
            found = server.ask("/v1/tasks/wait", {"ids": left})[1]
            self.assertEqual({one["status"] for one in found["answers"].values()}, {"refused"})
            left = found["waiting"]

    def test_one_server_a_store(self):
        self.start()
        with self.assertRaisesRegex(RuntimeError, "another server"):
            self.start()
        (pathlib.Path(self.folder.name) / "other").mkdir()
        (pathlib.Path(self.folder.name) / "other/serve.db").write_bytes(b"no database, " * 1000)
        with self.assertRaisesRegex(RuntimeError, "serve.db"):
            Server(NEREID, pathlib.Path(self.folder.name) / "other")

    def test_without_a_folder_of_tasks(self):
        server = self.start(tasks=False)
        status, answer = server.verify(GOOD)
        self.assertEqual((status, "--tasks" in answer["error"]), (422, True))
        self.assertEqual(server.ask("/v1/verify", {"completion": quick(0), "reference": REFERENCE})[0], 200)


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


if __name__ == "__main__":
    unittest.main()
