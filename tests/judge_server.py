"""`nereid serve` as tests start, ask and end it, and answers to judge."""

import http.client
import json
import os
import pathlib
import re
import signal
import subprocess

import processes

TESTS = pathlib.Path(__file__).resolve().parent
REFERENCE, RELU = (TESTS / "tasks/relu.py").read_text(), (TESTS / "honest/relu_one_kernel.py").read_text()
PLAN = "One program handles 1024 elements; ünïcode 🙂 must not shift the spans.\n"
GOOD = f"{PLAN}```python\n{RELU}```\nThat is all."
WRONG = GOOD.replace("0.0", "0.25")
PROMPT = f"Write Triton for\n```python\n{REFERENCE}```\n"
BROKEN = (
    "class Model:\n    pass\n\n\ndef get_inputs():\n    raise ValueError('empty')\n\n\ndef"
    " get_init_inputs():\n    return []\n"
)
KEYS = {"reward", "scores", "reward_components", "spans", "status", "verdict", "receipt"}


def wrong(number):
    """An answer that takes the judge a while; each number is another."""
    return GOOD.replace("0.0", f"0.{number + 1000}")


def quick(number):
    """An answer that is refused at once."""
    return f"I cannot do it: {number}."


class Server:
    def __init__(
        self,
        nereid,
        folder,
        *more,
        tasks=True,
        jobs=2,
        port=0,
        warm=True,
        store=None,
        environ=None,
        device="cpu",
    ):
        self.folder = folder
        words = [
            nereid,
            "serve",
            "--port",
            str(port),
            "--device",
            device,
            "--trials",
            "1",
            "--seed",
            "3",
            "--jobs",
            str(jobs),
        ]
        words += ["--store", store or str(pathlib.Path(folder) / "serve.db"), *map(str, more)]
        words += ["--tasks", str(TESTS / "tasks")] if tasks else []
        self.process = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NEREID_KEEP_WARM": "60" if warm else "0", **(environ or {})},
        )
        line = self.process.stdout.readline()
        if not line.startswith("http://"):
            self.end(None)
            raise RuntimeError(f"{line}{self.stderr}")
        self.port = int(line.rsplit(":", 1)[1])
        self.headers = {}

    def raw(self, method, path, body=None, headers=None, timeout=900):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            headers = {**self.headers, **(headers or {})}
            connection.request(method, path, body, headers, encode_chunked="Transfer-Encoding" in headers)
            response = connection.getresponse()
            return response.status, dict(response.headers), response.read().decode()
        finally:
            connection.close()

    def ask(self, path, body=None, method=None, **more):
        status, _, text = self.raw(
            method or ("GET" if body is None else "POST"),
            path,
            None if body is None else json.dumps(body),
            **more,
        )
        return status, json.loads(text)

    def verify(self, completion, **more):
        return self.ask("/v1/verify", {"completion": completion, "reference": "relu", **more})

    def metric(self, name):
        text = self.raw("GET", "/metrics")[2]
        found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.M)
        return float(found.group(1)) if found else 0.0

    def judges(self):
        return [
            pid for pid, line in processes.descendants(self.process.pid).items() if "verify --batch" in line
        ]

    def end(self, how=signal.SIGTERM, timeout=600):
        if self.process.poll() is None and how is not None:
            self.process.send_signal(how)
        code = self.process.wait(timeout)
        self.stderr = self.process.stderr.read()
        self.process.stdout.close(), self.process.stderr.close()
        return code
