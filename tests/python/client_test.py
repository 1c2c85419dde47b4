"""`nereid.Client`: a judge that is a server, with servers that are full, killed, away, or at fault.

tests/python/client_test.py PATH/TO/nereid
"""

import asyncio
import concurrent.futures
import http.server
import json
import multiprocessing
import os
import pathlib
import pickle
import signal
import sys
import tempfile
import threading
import time
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS.parent / "python"), str(TESTS)]

import nereid  # noqa: E402
from judge_server import GOOD, PROMPT, REFERENCE, RELU, WRONG, Server, quick, wrong  # noqa: E402

NEREID = str(pathlib.Path(sys.argv.pop(1)).resolve()) if len(sys.argv) > 1 else ""
TOKEN = "a-token-of-some-length"


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.server = Server(NEREID, cls.folder.name)
        cls.url = f"http://127.0.0.1:{cls.server.port}"

    @classmethod
    def tearDownClass(cls):
        code = cls.server.end()
        cls.folder.cleanup()
        assert code == 0, cls.server.stderr

    def test_verdicts(self):
        with nereid.Client(self.url) as judge:
            self.assertTrue(judge.verify("relu", RELU).verified)
            self.assertTrue(
                judge.verify(TESTS / "tasks/relu.py", TESTS / "honest/relu_one_kernel.py").verified
            )
            self.assertEqual(judge.verify(REFERENCE, WRONG, form="answer").verdict, "Mismatch")
            self.assertEqual(asyncio.run(judge.averify("relu", GOOD, policy="strict")).policy, "strict")
            self.assertEqual(judge.verify("relu", "\ud800").rule, "not-text")
            for reference, message in (
                ("no_such_task", "no_such_task"),
                (pathlib.Path("nothing.py"), "nothing.py"),
                (7, "source text"),
            ):
                with self.assertRaisesRegex(nereid.InputError, message):
                    judge.verify(reference, RELU)
            with self.assertRaisesRegex(nereid.InputError, "policy"):
                judge.verify("relu", RELU, policy="lax")
            with self.assertRaises(nereid.NereidError):
                judge.verify("relu", wrong(1), timeout=0)
        with self.assertRaisesRegex(nereid.NereidError, "closed"):
            judge.verify("relu", RELU)

    def test_objectives(self):
        rewards = {}
        for name in (None, "binary", "hierarchical", "uniform", "decoupled"):
            with nereid.Client(self.url, reward=name) as judge:
                (rewards[name],) = judge.rewards([PROMPT], [GOOD])
        self.assertEqual({one.reward for one in rewards.values()}, {1.0})
        self.assertEqual(rewards["decoupled"].reward_components, {"plan": 0.0, "code": 1.0})
        self.assertEqual(rewards[None].receipt["hardware"], "cpu")
        with self.assertRaises(nereid.InputError):
            nereid.Client(self.url, reward="most")
        with self.assertRaises(nereid.InputError):
            nereid.Client("judge:8000")

    def test_many_from_threads_and_from_asyncio(self):
        texts = [quick(number) for number in range(400)]
        with nereid.Client(self.url) as judge:
            rewards = judge.rewards([""] * len(texts), texts, ["relu"] * len(texts))
            self.assertEqual({one.status for one in rewards}, {"refused"})
            with concurrent.futures.ThreadPoolExecutor(32) as pool:
                found = list(
                    pool.map(lambda text: judge.rewards([""], [text], ["relu"])[0].reward, texts[:200])
                )
            self.assertEqual(found, [0.0] * 200)

            async def each():
                return await asyncio.gather(
                    *(judge.arewards([""], [text], ["relu"]) for text in [*texts[:300], GOOD])
                )

            self.assertEqual([one[0].reward for one in asyncio.run(each())], [0.0] * 300 + [1.0])

    def test_copies_and_forks(self):
        with nereid.Client(self.url) as judge:
            self.assertTrue(judge.verify("relu", RELU).verified)
            with pickle.loads(pickle.dumps(judge)) as copy:
                self.assertTrue(copy.verify("relu", RELU).verified)
            with multiprocessing.get_context("fork").Pool(2) as pool:
                self.assertEqual(pool.map(Forked(judge), range(4)), [True] * 4)


class Forked:
    def __init__(self, judge):
        self.judge = judge

    def __call__(self, _):
        return self.judge.verify("relu", RELU).verified


class Servers(unittest.TestCase):
    """Each test with servers of its own."""

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

    def test_a_full_queue_is_waited_for(self):
        server = self.start("--queue", 8, warm=False)
        with nereid.Client(f"http://127.0.0.1:{server.port}") as judge:
            texts = [wrong(number) for number in range(24)]
            rewards = judge.rewards([""] * 24, texts, ["relu"] * 24)
        self.assertEqual({one.status for one in rewards}, {"refused"}, [one.error for one in rewards])
        self.assertGreater(
            server.metric('nereid_refused_total{reason="queue"}')
            + server.metric('nereid_refused_total{reason="client"}'),
            0,
        )

    def test_a_server_that_is_killed_and_comes_back(self):
        server = self.start(jobs=1)
        port = server.port
        with nereid.Client(f"http://127.0.0.1:{port}") as judge:
            texts = [wrong(number) for number in range(8)]
            found = []
            asked = threading.Thread(
                target=lambda: found.extend(judge.rewards([""] * 8, texts, ["relu"] * 8))
            )
            asked.start()
            while server.metric('nereid_verdicts_total{verdict="Mismatch"}') < 2:
                time.sleep(0.05)
            server.end(signal.SIGKILL)
            time.sleep(0.5)
            self.start(jobs=1, port=port)
            asked.join(1200)
        self.assertEqual([one.status for one in found], ["refused"] * 8, [one.error for one in found])

    def test_a_fault_of_the_judge_is_no_reward(self):
        server = self.start(warm=False)
        stop = threading.Event()

        def kill():
            while not stop.is_set():
                for pid in server.judges():
                    if server.ask("/v1/status")[1]["queue"]["under_way"] > 0:
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.05)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            with nereid.Client(f"http://127.0.0.1:{server.port}", retries=0) as judge:
                (reward,) = judge.rewards([""], [GOOD], ["relu"])
        finally:
            stop.set()
            killer.join()
        self.assertEqual((reward.reward, reward.status), (None, "error"))
        self.assertIn("judge ended", reward.error)

    def test_tokens(self):
        tokens = pathlib.Path(self.folder.name) / "tokens.txt"
        tokens.write_text(f"ada {TOKEN}\n")
        url = f"http://127.0.0.1:{self.start('--tokens', tokens).port}"
        with nereid.Client(url, TOKEN, name="tests") as judge:
            self.assertTrue(judge.verify("relu", RELU).verified)
        with nereid.Client(url.replace("//", f"//ada:{TOKEN}@")) as judge:
            self.assertTrue(judge.verify("relu", RELU).verified)
        with nereid.Client(url) as judge, self.assertRaisesRegex(nereid.InputError, "Bearer"):
            judge.verify("relu", RELU)

    def test_a_server_of_another_kind_is_an_error_and_never_waited_for(self):
        task, strange = {"tasks": [{"id": "a"}]}, "not one of `nereid serve`"
        found = {}

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                first, then = found["answers"]
                status, body = (202, first) if self.path == "/v1/tasks" else (200, then)
                text = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        answer = {"answers": {"a": {}}, "waiting": [], "unknown": []}
        for first, then, says in (
            ({}, {}, strange), ({"tasks": []}, {}, strange), ({"tasks": [None]}, {}, strange),
            ({"tasks": [{"id": [1]}]}, {}, strange),
            (b"<html>", {}, "HTTP status 202"), (task, {}, strange),
            (task, {**answer, "answers": {"a": None}}, strange),
            (task, {**answer, "unknown": None}, strange), (task, answer, strange),
            (task, b"<html>", "HTTP status 200"),
        ):  # fmt: skip
            with self.subTest(first=first, then=then):
                found["answers"] = (first, then)
                with nereid.Client(f"http://127.0.0.1:{server.server_port}", patience=0.3) as judge:
                    with self.assertRaisesRegex(nereid.NereidError, says):
                        judge.verify("relu", "x", timeout=300)
                    with self.assertRaisesRegex(nereid.NereidError, says):  # its threads are still there
                        judge.verify("relu", "y", timeout=300)

    def test_no_server(self):
        with nereid.Client("http://127.0.0.1:9", patience=1) as judge:
            start = time.monotonic()
            (reward,) = judge.rewards([""], [GOOD], ["relu"])
            self.assertEqual((reward.reward, reward.status), (None, "error"))
            self.assertLess(time.monotonic() - start, 200)


if __name__ == "__main__":
    unittest.main()
