"""The actor: one judge, a `nereid verify --batch -`, on a node of the cluster.

Ray gets this module by value (`fleet.py`), so that the actor is the server's on nodes with another nereid,
too: it imports nothing of the package but the node's own `nereid._program`.
"""

import asyncio
import hashlib
import json
import os
import platform
import signal
import sys
import tempfile
from pathlib import Path

LONGEST_LINE = 1 << 28  # bytes
LONGEST_LAST_WORDS = 2000  # bytes of stderr
PROGRAMS = ("nereid", "nereid-replay", "nereid-replay-cuda", "libnereid_jail.so")

# What a judge has to verify before it gets others' pairs: so a node on which nothing can be judged is found
# out.
KNOWN_REFERENCE = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 128)]


def get_init_inputs():
    return []
"""
KNOWN_CANDIDATE = """\
import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, tl.maximum(x, 0.0), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
"""


def identity():
    """What verdicts depend on besides a pair, as {name: text}: equal on nodes with the same wheel.

    Raises ImportError or NereidError where this Python has no nereid.
    """
    import importlib.metadata

    import nereid
    from nereid import _program

    folder = Path(_program.command()[0]).resolve().parent
    package = Path(nereid.__file__).resolve().parent
    digest = hashlib.sha256()
    for root, names in (
        (folder, PROGRAMS),
        (package, sorted(str(file.relative_to(package)) for file in package.rglob("*.py"))),
    ):
        for name in names:
            if (root / name).exists():
                digest.update(f"{name}\n".encode() + (root / name).read_bytes())
    found = {"program": digest.hexdigest()[:12], "python": platform.python_version()}
    for name in ("torch", "triton"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "none"
    return found


def end_with_parent(parent):
    """For a child, before its program starts: the kernel kills it when the actor's process ends."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


class Judge:
    """Methods run in one event loop. `words` follow the program's name, and "{traces}" in them is a folder of
    this actor's; `patience` is in seconds."""

    def __init__(self, words, patience):
        self.patience = patience
        self.folder = tempfile.TemporaryDirectory(prefix="nereid-traces-") if "{traces}" in words else None
        self.words = [self.folder.name if word == "{traces}" else word for word in words]
        self.child, self.children = None, 0
        self.starting = asyncio.Lock()
        self.asked = {}  # id: future of its answer
        self.last_line = 0.0  # loop time

    async def start(self, wanted):
        """{"node", "node_id", "gpus"}, or {"unfit": why this node cannot judge, "node_id"}."""
        import ray

        context = ray.get_runtime_context()
        place = {"node": ray.util.get_node_ip_address(), "node_id": context.get_node_id()}
        place["gpus"] = [str(gpu) for gpu in ray.get_gpu_ids()]
        try:
            own = identity()
        except Exception as error:  # whatever the node's package raises
            return {**place, "unfit": f"no nereid in {sys.executable}: {error}"}
        if own != wanted:
            differs = [name for name in wanted if own.get(name) != wanted[name]]
            listed = ", ".join(f"{name} {own.get(name)} (the server has {wanted[name]})" for name in differs)
            return {**place, "unfit": f"{listed}: install the server's wheel there"}
        line = {
            "id": "known",
            "reference_source": KNOWN_REFERENCE,
            "candidate_source": KNOWN_CANDIDATE,
            "form": "source",
        }
        answered = await self.judge("known", json.dumps(line).encode())
        if "answer" not in answered:
            return {**place, "unfit": f"its judge died: {answered['died']}"}
        verdict = json.loads(answered["answer"])
        if verdict.get("verdict") != "Verified":
            what = f"{verdict.get('verdict')}: {verdict.get('reason')}"
            return {**place, "unfit": f"a kernel that is right got {what}"}
        return place

    async def judge(self, id, line, trace=None):
        """{"answer": the answer line}, with {"trace": (name, bytes)} of what is Verified where there is a
        folder of traces; or {"died": why, "child": its number}: of the judge, not of this actor. `trace`:
        such a file, for a clock."""
        if trace is not None and self.folder is not None:
            Path(self.folder.name, Path(trace[0]).name).write_bytes(trace[1])
        answered = await self.answer(id, line)
        if self.folder is not None and trace is None and "answer" in answered:
            answered["trace"] = self.take_trace(answered["answer"])
        return answered

    def take_trace(self, line):
        """Files are named as src/nereid/verify/stages/kept_traces.h says."""
        path = Path(self.folder.name, f"{json.loads(line.decode('utf-8', 'replace')).get('trace')}.trace")
        try:
            found = path.read_bytes()
        except OSError:  # none of what is not Verified
            return None
        path.unlink()
        return path.name, found

    async def answer(self, id, line):
        async with self.starting:
            if self.child is None:
                try:
                    await self.start_child()
                except OSError as error:
                    return {"died": str(error), "child": self.children}
        future = asyncio.get_running_loop().create_future()
        if not self.asked:
            self.last_line = asyncio.get_running_loop().time()
        self.asked[id] = future
        try:
            self.child.stdin.write(line + b"\n")
            await self.child.stdin.drain()
        except (OSError, AttributeError):  # it is dead: `follow` answers
            pass
        return await future

    async def start_child(self):
        from nereid import _program

        self.children += 1
        program, environment = _program.command()
        environment.pop("OMP_NUM_THREADS", None)  # Ray's guess: the judge makes its own
        parent = os.getpid()
        self.child = await asyncio.create_subprocess_exec(
            program,
            *self.words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=LONGEST_LINE,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: end_with_parent(parent),
        )
        said = bytearray()
        tasks = [asyncio.ensure_future(work) for work in (self.listen(said), self.watch(self.child))]
        self.following = asyncio.ensure_future(self.follow(self.child, said, tasks))

    async def listen(self, said):
        stream = self.child.stderr
        while some := await stream.read(4096):
            said += some
            del said[:-LONGEST_LAST_WORDS]

    async def watch(self, child):
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(1)
            if self.asked and loop.time() - self.last_line > self.patience:
                child.kill()

    async def follow(self, child, said, tasks):
        """Answers come in; what the child has at its end gets no answer but that."""
        try:
            while line := await child.stdout.readline():
                self.last_line = asyncio.get_running_loop().time()
                future = self.asked.pop(json.loads(line.decode("utf-8", "replace")).get("id"), None)
                if future is not None and not future.done():
                    future.set_result({"answer": line.rstrip(b"\n")})
        except ValueError as error:
            said += f"\nits answer cannot be read: {error}".encode()
        number = self.children
        if child.returncode is None:
            child.kill()
        code = await child.wait()
        for task in tasks:
            task.cancel()
        self.child = None
        asked, self.asked = self.asked, {}
        why = f"exit code {code}: {said.decode(errors='replace').strip()[-LONGEST_LAST_WORDS:]}"
        for future in asked.values():
            if not future.done():
                future.set_result({"died": why, "child": number})
