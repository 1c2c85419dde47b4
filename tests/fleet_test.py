"""`nereid serve --ray` on clusters of several nodes on this machine, with nodes and judges killed under load.
Ray is installed into an environment of its own below the build folder, on first use.

fleet_test.py NEREID [TEST ...]
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TESTS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))
import processes  # noqa: E402
from environments import environment  # noqa: E402
from judge_server import BROKEN, GOOD, REFERENCE, RELU, WRONG, Server, quick, wrong  # noqa: E402

NEREID = str(pathlib.Path(sys.argv.pop(1)).resolve()) if len(sys.argv) > 1 else ""
PACKAGE = TESTS.parent / "python"
RAY = ["ray==2.60.0"]
BINARIES = None  # of the environment with Ray
OF_A_RUN = {"id", "line", "seconds", "phases", "machine"}  # of a verdict: not the pair's


def setUpModule():
    global BINARIES
    BINARIES = environment(
        pathlib.Path(NEREID).parents[1] / "trainers/ray", RAY, ["torch", "triton", "numpy"]
    )


def environ(package=PACKAGE, program=NEREID):
    return {
        **os.environ,
        "PYTHONPATH": str(package),
        "NEREID_PACKAGE": str(package / "nereid"),
        "NEREID_PROGRAM": str(program),
        "NEREID_PYTHON": str(BINARIES / "python"),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_raylet_start_wait_time_s": "120",
        "RAY_local_fs_capacity_threshold": "0.999",
        "RAY_health_check_period_ms": "1000",
        "RAY_health_check_failure_threshold": "5",
    }


def until(check, seconds=600, what=""):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := check():
            return found
        time.sleep(0.2)
    raise AssertionError(f"not within {seconds} s: {what}")


def come(pid, first):
    """Before others or like others, where that is allowed: a raylet gives its agents 15 s to start, whatever
    the machine's load. The scheduler shares processors among sessions (autogroups), and a node is one."""
    try:
        pathlib.Path(f"/proc/{pid}/autogroup").write_text("-15" if first else "0")
    except OSError:
        pass


class Node:
    """A process of `ray start --block`, with all of a node below it."""

    def __init__(self, *words, package=PACKAGE, program=NEREID):
        self.process = subprocess.Popen(
            [BINARIES / "ray", "start", "--block", "--disable-usage-stats", *words],
            preexec_fn=lambda: come("self", first=True),
            env=environ(package, program),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def wait(self, said):
        """Until it said that: a match."""
        text = ""
        while not (found := re.search(said, text)):
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"a node did not start: {text}")
            text += line
        return found

    def started(self, said="Ray runtime started"):
        """Like others from now on. What it said: a match."""
        found = self.wait(said)
        come(self.process.pid, first=False)
        return found

    def below(self, words):
        return [pid for pid, line in processes.descendants(self.process.pid).items() if words in line]

    def judges(self):
        return [
            pid
            for pid in self.below("verify --batch")
            if pathlib.Path(f"/proc/{pid}/exe").resolve().name == "nereid"
        ]

    def lose(self):
        """As a machine is lost: everything at once, without a word."""
        everything = [self.process.pid, *processes.descendants(self.process.pid)]
        for how in (signal.SIGSTOP, signal.SIGKILL):
            for pid in everything:
                try:
                    os.kill(pid, how)
                except OSError:
                    pass
        self.process.wait()


class Cluster:
    """A head without processors, and nodes."""

    def __init__(self, nodes, cpus=1):
        self.nodes = []
        self.folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
        self.head = Node("--head", "--port=0", "--num-cpus=0", "--include-dashboard=false",
                         f"--temp-dir={self.folder}", "--object-store-memory=80000000")  # fmt: skip
        self.address = self.head.started(r"--address='?([0-9.]+:\d+)").group(1)
        for _ in range(nodes):
            self.add(cpus)

    def add(self, cpus=1, gpus=0, **more):
        """One after the other: two that start at once may take the same socket."""
        node = Node(f"--address={self.address}", f"--num-cpus={cpus}", f"--num-gpus={gpus}",
                    "--object-store-memory=80000000",
                    **more)  # fmt: skip
        self.nodes.append(node)
        node.started()
        return node

    def judges(self):
        return [pid for node in self.nodes for pid in node.judges()]

    def end(self):
        for node in (*self.nodes, self.head):
            node.lose()
            node.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Case(unittest.TestCase):
    NODES, ACTORS = 2, "1:4"

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.cluster = Cluster(self.NODES)
        self.addCleanup(self.cluster.end)

    def serve(self, *more, folder=None):
        server = Server(NEREID, folder or self.folder.name, "--ray", self.cluster.address, "--ray-actors",
                        self.ACTORS, *more, jobs=1, environ=environ())  # fmt: skip
        self.addCleanup(lambda: server.process.poll() is None and server.end(signal.SIGKILL))
        return server

    def status(self, server):
        return server.ask("/v1/status")[1]

    def running(self, server):
        return [judge for judge in self.status(server)["judges"] if judge["jobs"] and judge["running"]]

    def judge_all(self, server, completions):
        items = [{"completion": completion, "reference": "relu"} for completion in completions]
        status, body = server.ask("/v1/verify/batch", {"items": items, "timeout_s": 900}, timeout=920)
        self.assertEqual(status, 200, [one for one in body["answers"] if one["status"] == "error"])
        return body["answers"]

    def check(self, completions, answers):
        """Nothing is lost, nothing is judged wrongly."""
        for completion, answer in zip(completions, answers, strict=True):
            expected = "Verified" if completion.startswith(GOOD[:20]) and "0.0)" in completion else None
            expected = expected or ("Malformed" if "cannot" in completion else "Mismatch")
            self.assertEqual(answer["verdict"]["verdict"], expected, answer)
            self.assertEqual(answer["reward"], 1.0 if expected == "Verified" else 0.0)


def right(number):
    """An answer that is Verified; each number is another."""
    return GOOD.replace("That is all.", f"That is all, {number}.")


class Verdicts(Case):
    def test_they_are_those_without_ray(self):
        completions = [GOOD, WRONG, wrong(3), quick(1), RELU, GOOD.replace("tl.load", "tl.lod"),
                       GOOD.replace("import torch\n", "import torch\nimport os\n")]  # fmt: skip
        found = []
        with tempfile.TemporaryDirectory() as other:
            for server in (Server(NEREID, other), self.serve()):
                items = [{"completion": completion, "reference": REFERENCE} for completion in completions]
                items.append({"completion": GOOD, "reference": BROKEN})
                status, body = server.ask("/v1/verify/batch", {"items": items, "timeout_s": 900}, timeout=920)
                self.assertEqual(status, 200, body)
                found.append(
                    [
                        {key: value for key, value in answer.items() if key != "receipt"}
                        for answer in body["answers"]
                    ]
                )
                for answer in found[-1]:
                    for key in OF_A_RUN:
                        (answer["verdict"] or {}).pop(key, None)
                if server.process.args.count("--ray"):
                    # The same pair costs once, and ends in order: no judge is left.
                    before = server.metric("nereid_accepted_total")
                    server.ask("/v1/verify/batch", {"items": items})
                    self.assertEqual(server.metric("nereid_accepted_total"), before)
                    began = time.monotonic()
                    self.assertEqual(server.end(signal.SIGINT), 0, server.stderr)
                    self.assertLess(time.monotonic() - began, 60)
                    until(lambda: not self.cluster.judges(), 20, "judges end with their server")
                else:
                    server.end()
        self.assertEqual(found[0], found[1])


class Losses(Case):
    NODES = 3

    def test_nodes_lost_under_load(self):
        server = self.serve()
        completions = [make(number) for number in range(20) for make in (right, wrong, quick)]
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answers = pool.submit(self.judge_all, server, completions)
            until(
                lambda: sum(judge["under_way"] > 1 for judge in self.running(server)) >= 2,
                what="two judges are busy",
            )
            busy = next(node for node in self.cluster.nodes if node.judges())
            busy.lose()
            until(lambda: server.metric("nereid_fleet_lost_total") > 0, what="the loss is seen")
            # Its raylet alone, of another: the actors that it leaves end by themselves.
            other = until(lambda: next((node for node in self.cluster.nodes if node.process.poll() is None
                                        and node.judges()), None))  # fmt: skip
            for pid in other.below("raylet/raylet"):
                os.kill(pid, signal.SIGKILL)
            self.cluster.add()
            # And judges, of the nodes that are left: a third death under a pair would be a fault.
            for _ in range(2):
                time.sleep(2)
                for pid in self.cluster.judges():
                    os.kill(pid, signal.SIGKILL)
            self.check(completions, answers.result(950))
        self.assertEqual(server.metric("nereid_faults_total"), 0, self.status(server)["errors"])
        self.assertEqual(server.end(), 0, server.stderr)

    def test_all_nodes_and_the_process_that_asks(self):
        server = self.serve()
        completions = [make(number) for number in range(5) for make in (right, wrong)]
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answers = pool.submit(self.judge_all, server, completions)
            until(self.cluster.judges, what="a judge runs")
            for node in self.cluster.nodes:
                node.lose()
            fleet = [
                pid for pid, line in processes.descendants(server.process.pid).items() if "_fleet" in line
            ]
            self.assertEqual(len(fleet), 1)
            os.kill(fleet[0], signal.SIGKILL)
            self.cluster.add()
            self.check(completions, answers.result(950))
        self.assertEqual(server.metric("nereid_faults_total"), 0)
        self.assertEqual(server.raw("GET", "/health")[0], 200)

    def test_a_server_that_is_killed_leaves_nothing(self):
        server = self.serve()
        server.ask("/v1/tasks", {"items": [{"completion": right(n), "reference": "relu"} for n in range(6)]})
        until(self.cluster.judges, what="a judge runs")
        server.end(signal.SIGKILL)
        until(lambda: not self.cluster.judges(), 30, "judges end with their server")
        again = self.serve()
        until(lambda: again.metric('nereid_verdicts_total{verdict="Verified"}') == 6, what="all are judged")


class Placement(Case):
    NODES, ACTORS = 1, "0:2"

    def test_a_node_with_another_nereid(self):
        with tempfile.TemporaryDirectory() as folder:
            other = pathlib.Path(folder) / "python"
            shutil.copytree(PACKAGE / "nereid", other / "nereid")
            (other / "nereid/_reward.py").write_text("changed = True\n")
            self.cluster.end()
            self.cluster = Cluster(0)
            self.addCleanup(self.cluster.end)
            self.cluster.add(package=other)
            server = self.serve()
            asked = [{"completion": right(number), "reference": "relu"} for number in range(4)]
            server.ask("/v1/tasks", {"items": asked})
            message = until(lambda: [e["message"] for e in self.status(server)["errors"]
                                     if "cannot judge" in e["message"]],
                            120)[0]  # fmt: skip
            self.assertRegex(
                message, "node .* cannot judge: program [0-9a-f]{12} \\(the server has [0-9a-f]{12}\\)"
            )
            self.assertEqual(server.metric('nereid_verdicts_total{verdict="Verified"}'), 0)
            self.cluster.add()
            until(
                lambda: server.metric('nereid_verdicts_total{verdict="Verified"}') == 4, what="all are judged"
            )

    def test_as_many_judges_as_the_queue_asks_for(self):
        """The process by itself: so that its patience with idle judges is short."""
        self.cluster.add()
        words = [BINARIES / "python", "-m", "nereid._fleet", "--address", self.cluster.address, "--actors",
                 "0", "2",
                 "--idle", "2", "--", "verify", "--batch", "-", "--device", "cpu", "--trials", "1", "--jobs",
                 "1"]  # fmt: skip
        fleet = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ()
        )
        reports, answers = [], []

        def read(done):
            for line in fleet.stdout:
                line = json.loads(line)
                (reports if "fleet" in line else answers).append(line)
                if done(line):
                    return line

        read(lambda line: "fleet" in line)
        self.assertEqual((reports[0]["fleet"]["wanted"], self.cluster.judges()), (0, []))
        for number in range(6):
            pair = {"id": str(number), "reference_source": REFERENCE, "candidate_source": right(number)}
            fleet.stdin.write(json.dumps(pair) + "\n")
        fleet.stdin.flush()
        read(lambda line: len(answers) == 6)
        self.assertEqual({answer["verdict"] for answer in answers}, {"Verified"})
        self.assertEqual(max(report["fleet"]["wanted"] for report in reports), 2)
        self.assertEqual(max(len(report["fleet"]["actors"]) for report in reports), 2)
        read(
            lambda line: "fleet" in line and line["fleet"]["actors"] == [] and line["fleet"]["starting"] == 0
        )
        until(lambda: not self.cluster.judges(), 20, "idle judges end")
        fleet.stdin.close()
        began = time.monotonic()
        self.assertEqual(fleet.wait(30), 0)
        self.assertLess(time.monotonic() - began, 60)
        fleet.stdout.close()


# A judge that dies under some pairs, and fails for others: the real one, with this before it.
WRAPPER = """#!{python}
import json, os, subprocess, sys
child = subprocess.Popen([{nereid!r}, *sys.argv[1:]], stdin=subprocess.PIPE)
for line in sys.stdin.buffer:
    if b"kill the judge" in line:
        child.kill()
        sys.exit("killed")
    if b"fail the judge" in line:
        answer = dict(id=json.loads(line)["id"], verdict="Error", blame="ours", reason="it failed")
        os.write(1, json.dumps(answer).encode() + b"\\n")
        continue
    child.stdin.write(line)
    child.stdin.flush()
child.stdin.close()
sys.exit(child.wait())
"""


# A clock without a GPU: it times what it is given the trace of, and refuses what it is not; judges are the
# real program.
CLOCK = """#!{python}
import hashlib, json, os, pathlib, sys, time
if "--time-only" not in sys.argv:
    os.execv({nereid!r}, [{nereid!r}, *sys.argv[1:]])
folder = pathlib.Path(sys.argv[sys.argv.index("--traces") + 1])
for line in sys.stdin.buffer:
    asked = json.loads(line)
    answer = dict(id=asked["id"], verdict="Verified", reason="timed", blame=None, errors=None,
                  phases=dict(gpu=0.25))
    if asked["id"] != "known":
        time.sleep(0.3)
        trace = folder / (asked["trace"] + ".trace")
        digest = hashlib.sha256(trace.read_bytes()).hexdigest()
        if digest != asked["trace"] or "refuse" in asked["candidate_source"]:
            answer = dict(answer, verdict="Disallowed", reason="refused", rule="another-trace")
        trace.unlink()
    answer["times"] = dict(speedup=1.5, candidate_ms=1, reference_ms=1.5)
    os.write(1, json.dumps(answer).encode() + b"\\n")
"""


class Clocks(Case):
    """Judges on processors verify, and actors with a GPU time; the nodes' GPUs are resources alone."""

    NODES = 0

    def setUp(self):
        super().setUp()
        program = pathlib.Path(self.folder.name) / "program/judge"
        program.parent.mkdir()
        program.write_text(CLOCK.format(python=sys.executable, nereid=NEREID))
        program.chmod(0o755)
        for file in pathlib.Path(NEREID).parent.iterdir():  # so that it is the server's program by content
            (program.parent / file.name).symlink_to(file)
        for _ in range(2):
            self.cluster.add(cpus=1, program=program)
        self.with_gpus = [self.cluster.add(cpus=1, gpus=1, program=program) for _ in range(2)]

    def clocks(self, node):
        return node.below("--time-only")

    def test_what_is_verified_is_timed_and_a_lost_clocks_work_goes_elsewhere(self):
        server = Server(NEREID, self.folder.name, "--ray", self.cluster.address, "--ray-actors", "1:2",
                        "--time",
                        "--ray-clocks", "0:1", jobs=1, environ=environ(), device="cuda")  # fmt: skip
        self.addCleanup(lambda: server.process.poll() is None and server.end(signal.SIGKILL))
        completions = [make(number) for number in range(8) for make in (right, wrong, quick)]
        completions.append(right("refuse"))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answers = pool.submit(self.judge_all, server, completions)
            busy = until(
                lambda: next((node for node in self.with_gpus if self.clocks(node)), None), what="a clock"
            )
            self.assertEqual([node for node in self.cluster.nodes if self.clocks(node)], [busy])
            until(
                lambda: [j for j in self.status(server)["judges"] if " GPU " in j["name"] and j["under_way"]],
                what="the clock has a pair",
            )
            busy.lose()
            answers = answers.result(950)
        refused = answers.pop()
        self.assertEqual((refused["verdict"]["verdict"], refused["reward"]), ("Disallowed", 0.0))
        for completion, answer in zip(completions, answers):
            expected = "Verified" if "That is all" in completion and "0.0)" in completion else None
            expected = expected or ("Malformed" if "cannot" in completion else "Mismatch")
            verdict = answer["verdict"]
            self.assertEqual(verdict["verdict"], expected, answer)
            self.assertEqual(verdict["times"] is not None, expected == "Verified", verdict)
            if expected == "Verified":
                self.assertEqual(answer["scores"]["speedup"], 1.5)
                self.assertEqual(verdict["coverage"]["device"], "cpu")  # the judge's own verdict
                self.assertEqual(verdict["phases"]["gpu"], 0.25)
                self.assertIn("candidate", verdict["phases"])
        self.assertEqual(server.metric("nereid_faults_total"), 0, self.status(server)["errors"])
        self.assertGreater(server.metric("nereid_fleet_lost_total"), 0)
        self.assertEqual(server.end(), 0, server.stderr)
        until(lambda: not any(map(self.clocks, self.cluster.nodes)), 20, "clocks end with their server")

    def test_options_that_need_each_other(self):
        for words, said in (
            (["--ray", self.cluster.address, "--ray-clocks", "0:1"], "--ray and --time"),
            (
                ["--ray", self.cluster.address, "--time", "--ray-clocks", "2:1"],
                "--ray-clocks: expected MIN:MAX",
            ),
            (["--ray", self.cluster.address, "--time", "--ray-compile-for", "90"], "expected --ray-clocks"),
        ):
            with self.assertRaisesRegex(RuntimeError, re.escape(said)):
                Server(NEREID, self.folder.name, *words, environ=environ(), device="cuda")


class Killer(Case):
    """A pair under which judges die is a fault of ours, and the pairs next to it are judged."""

    NODES = 0

    def test_it_is_found_out(self):
        program = pathlib.Path(self.folder.name) / "judge"
        program.write_text(WRAPPER.format(python=sys.executable, nereid=NEREID))
        program.chmod(0o755)
        for file in pathlib.Path(NEREID).parent.iterdir():  # so that it is the server's program by content
            (program.parent / file.name).symlink_to(file)
        for _ in range(2):
            self.cluster.add(program=program)
        server = self.serve()
        completions = [
            right(1),
            wrong(1),
            right("kill the judge"),
            right(2),
            right("fail the judge"),
            wrong(2),
        ]
        items = [{"completion": completion, "reference": "relu"} for completion in completions]
        status, body = server.ask("/v1/verify/batch", {"items": items, "timeout_s": 900}, timeout=920)
        self.assertEqual(status, 503)
        answers = body["answers"]
        for at, said in ((2, "judges ended under it"), (4, "it failed")):
            self.assertEqual(
                (answers[at]["status"], answers[at]["reward"], answers[at]["blame"]), ("error", None, "ours")
            )
            self.assertIn(said, answers[at]["error"])
        self.check(*zip(*((completions[at], answers[at]) for at in (0, 1, 3, 5)), strict=True))
        self.assertEqual(server.metric("nereid_faults_total"), 2)


class Refusals(unittest.TestCase):
    def refused(self, *words, python=None):
        done = subprocess.run(
            [NEREID, "serve", "--port", "0", "--device", "cpu", *words],
            capture_output=True, text=True, timeout=1200,
            env={**environ(), **({"NEREID_PYTHON": python} if python else {})},
        )  # fmt: skip
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr

    def test_no_cluster_no_ray_no_range(self):
        self.assertIn("--ray 127.0.0.1:9: ", self.refused("--ray", "127.0.0.1:9"))
        self.assertIn("expected auto or HOST:PORT", self.refused("--ray", "ray://127.0.0.1:10001"))
        for text in ("2:1", "0:0", "a:b", "1:99999", "-1:2", ":"):
            self.assertIn(
                "--ray-actors: expected MIN:MAX", self.refused("--ray", "auto", f"--ray-actors={text}")
            )
        python = str(TESTS.parent / ".venv/bin/python")
        self.assertIn("has no package `ray`", self.refused("--ray", "auto", python=python))


if __name__ == "__main__":
    unittest.main()
