"""`nereid serve` whose judges have GPUs, alone and on a Ray cluster."""

import concurrent.futures
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from checks import CUDA, DEVICE, PROGRAM, Skipped, expect, run
from judge_server import GOOD, WRONG, Server, quick, wrong

TIMED = ["--time"] if CUDA else []
folder = tempfile.TemporaryDirectory()
servers = []


def start(*more, jobs=2, place=None):
    server = Server(PROGRAM, place or folder.name, *TIMED, *more, jobs=jobs, device=DEVICE)
    servers.append(server)
    return server


def right(answer, verdict):
    expect(answer["status"] != "error", f"{answer.get('error')}")
    expect(answer["verdict"]["verdict"] == verdict, f"expected {verdict}, got {answer['verdict']}")
    # 1 where it is verified, and the speed-up where there is a clock.
    expect((answer["reward"] > 0) == (verdict == "Verified"), f"reward {answer['reward']}")


def rewards_and_times():
    server = servers[0] if servers else start()
    status, answer = server.verify(GOOD)
    expect(status == 200, f"HTTP {status}: {answer}")
    right(answer, "Verified")
    right(server.verify(WRONG)[1], "Mismatch")
    if not CUDA:
        return ""
    times = answer["verdict"]["times"]
    expect(times["candidate_ms"] > 0 and times["reference_ms"] > 0, f"{times}")
    _, timed = server.verify(GOOD, reward="hierarchical", speedup_limit=2.0)
    expect(timed["reward"] == timed["reward_components"]["plan"], f"{timed}")
    status, body = server.ask("/step", {"action": {"code": GOOD, "reference": "relu"}})
    expect(status == 200 and body["done"], f"{body}")
    expect("cuda" in str(server.ask("/v1/status")[1]), "the page names no GPU")
    return f"speed-up {answer['scores']['speedup']:.2f}, {answer['receipt']['hardware']}"


def two_clients_at_once():
    server = servers[0]

    def client(name):
        found = []
        for i in range(6):
            completion = wrong(hash(name) % 1000 + i) if i % 3 else quick(i + ord(name))
            body = {"completion": completion, "reference": "relu"}
            found.append((i, server.ask("/v1/verify", body, headers={"X-Nereid-Client": name})))
        return found

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for found in pool.map(client, "ab"):
            for i, (status, answer) in found:
                expect(status == 200, f"HTTP {status}: {answer}")
                right(answer, "Mismatch" if i % 3 else "Malformed")


def a_server_that_is_killed_under_load():
    first = servers[0]
    items = [{"completion": wrong(5000 + i)} for i in range(6)] + [{"completion": GOOD + "\nagain"}]
    status, body = first.ask("/v1/tasks", {"items": items, "reference": "relu"})
    expect(status == 202, f"HTTP {status}: {body}")
    ids = [task["id"] for task in body["tasks"]]
    time.sleep(2)
    first.end(signal.SIGKILL)
    second = start()
    answers, deadline = {}, time.monotonic() + 150
    while len(answers) < len(ids) and time.monotonic() < deadline:
        rest = [one for one in ids if one not in answers]
        body = second.ask("/v1/tasks/wait", {"ids": rest, "timeout_s": 20})[1]
        expect(not body["unknown"], f"lost: {body['unknown']}")
        answers.update(body["answers"])
    expect(len(answers) == len(ids), f"{len(answers)} of {len(ids)} answered within 150 s")
    for one in ids:
        right(answers[one], "Verified" if one == ids[-1] else "Mismatch")
    right(second.verify(GOOD)[1], "Verified")


def it_ends_in_order():
    code = servers[-1].end()
    expect(code == 0, f"exit code {code}: {servers[-1].stderr[-400:]}")


def judges_on_ray():
    if importlib.util.find_spec("ray") is None:
        raise Skipped("no package ray")
    environ = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--port=0",
           "--num-cpus=8",
           f"--num-gpus={int(CUDA)}", "--include-dashboard=false",
           "--object-store-memory=80000000"]  # fmt: skip
    head = subprocess.Popen(
        ray, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        text = ""
        while not (found := re.search(r"--address='?([0-9.]+:\d+)", text)):
            line = head.stdout.readline()
            expect(line, f"Ray did not start: {text[-400:]}")
            text += line
        with tempfile.TemporaryDirectory() as place:
            server = start("--ray", found.group(1), "--ray-actors", "1:1", jobs=4, place=place)
            try:
                for completion, verdict in ((GOOD, "Verified"), (WRONG, "Mismatch")):
                    status, answer = server.verify(completion)
                    expect(status == 200, f"HTTP {status}: {answer}")
                    right(answer, verdict)
            finally:
                server.end()
    finally:
        os.killpg(head.pid, signal.SIGKILL)
        head.wait()


PARTS = {
    "serve": [rewards_and_times, two_clients_at_once, a_server_that_is_killed_under_load, it_ends_in_order],
    "ray": [judges_on_ray],
}

if __name__ == "__main__":
    try:
        run(sys.argv[1], PARTS[sys.argv[1]])
    finally:
        for one in servers:
            if one.process.poll() is None:
                one.end(signal.SIGKILL)
