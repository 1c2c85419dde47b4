"""A warmed tracer that forks for every file, as the product's zygote does: how corpora are traced in tests
and measurements."""

import json
import os
import pathlib
import resource
import select
import signal
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from nereid._tracer import tracer  # noqa: E402
from nereid._tracer.command import reference_inputs  # noqa: E402


def forked(request, seconds=60):
    """(the answer, wall seconds of fork, trace, JSON and pipe)."""
    started = time.perf_counter()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
        null = os.open("/dev/null", os.O_RDWR)
        os.dup2(null, 1)
        if not os.environ.get("KEEP_STDERR"):
            os.dup2(null, 2)
        try:
            answer = json.dumps(tracer.handle(request)).encode()
            while answer:
                answer = answer[os.write(writer, answer) :]
        finally:
            os._exit(0)
    os.close(writer)
    chunks, deadline = [], started + seconds
    while True:
        ready, _, _ = select.select([reader], [], [], max(0, deadline - time.perf_counter()))
        chunk = os.read(reader, 1 << 20) if ready else None
        if not chunk:
            break
        chunks.append(chunk)
    took = time.perf_counter() - started
    os.close(reader)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    os.waitpid(child, 0)
    if chunk is None:
        return {"killed": f"no answer within {seconds} s"}, took
    try:
        return json.loads(b"".join(chunks)), took
    except ValueError:
        return {"killed": f"{sum(map(len, chunks))} bytes of half an answer"}, took


def request(path, class_name, reference=None, draw=0):
    path = pathlib.Path(path)
    return {"source": path.read_text(errors="replace"), "path": path.name, "class": class_name, "draw": draw,
            "globals": {}, "calls": 3,
            "reference": reference}  # fmt: skip


class References:
    """Each task's trace, made once."""

    def __init__(self):
        self._made = {}

    def answer(self, path):
        if path not in self._made:
            self._made[path] = forked(request(path, "Model"))
        return self._made[path]

    def inputs(self, path):
        answer, _ = self.answer(path)
        return reference_inputs(answer["trace"]) if "trace" in answer else None


def word(answer):
    """The answer in one line."""
    kind = next(iter(answer))
    body = answer[kind]
    if kind == "trace":
        return (
            f"{sum(len(p['steps']) for p in body['phases'])} steps, {len(body['kernels'])} kernels,"
            f" {body['seconds'] * 1e3:.1f} ms"
        )
    return f"{kind}: {json.dumps(body)}"
