"""Runs the arms of a table (arms.toml; docs/ablation.md), each once for each seed: trained with equal compute, then evaluated.

    ablation.py plan ARMS.toml                             what would be run
    ablation.py run ARMS.toml -o FOLDER [--slice SECONDS]  goes on where the last call stopped: 0 all is done, 75 there is more to do, 1 something failed
    ablation.py pack FOLDER -o HOME                        what the report needs, as files of less than --most bytes; ablation.py unpack HOME -o FOLDER
    report.py ARMS.toml FOLDER -o docs/ablation            tables and plots

A slice ends SECONDS after it began, and a few more for what is being written. Everything a call needs to know of those before it is in FOLDER, so
it may be killed at any time.
"""
import argparse
import collections
import ctypes
import fcntl
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import time

from arms import Wrong, read_table

MORE_TO_DO = 75  # EX_TEMPFAIL
TRAINED = "trained.json"
PACKED = ("run.toml", TRAINED, "run/metrics.jsonl", "run/some_rollouts.jsonl", "eval-*/results.jsonl", "eval-*/summary.json")
MOST_REFUSED = 200  # rollouts of a run that are packed because only a rule refused what was rewarded
END = "<|im_end|>"


PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class SliceOver(Exception):
    pass


def lines_of(path):
    """Whole lines alone: the last may be half written."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.split("\n")[:-1] if line]


def write(path, text):
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.replace(path)


def seconds_of(figures):
    """Of one step, as the run itself measured them: of reinforcement learning, or of fine-tuning."""
    return figures.get("step_s") or figures.get("seconds") or 0


def pick_rollouts(run):
    """What people look at of all that a run wrote: the last step's, and the latest of those that cheated and were paid for it."""
    step, last, refused = None, [], collections.deque(maxlen=MOST_REFUSED)
    try:
        with (run / "rollouts.jsonl").open() as lines:
            for line in lines:
                if not line.endswith("\n"):
                    break
                rollout = json.loads(line)
                if rollout["step"] != step:
                    step = rollout["step"]
                    last.clear()
                last.append(line)
                if rollout["verdict"] == "Disallowed" and rollout["reward"] > 0:
                    refused.append(line)
    except FileNotFoundError:
        return
    write(run / "some_rollouts.jsonl", "".join([*(line for line in refused if line not in last), *last]))


class Runner:
    def __init__(self, told):
        self.table = read_table(told.arms)
        self.folder, self.nereid, self.device, self.patience = pathlib.Path(told.output), told.nereid, told.device, told.patience
        self.ranks = ["--ranks", told.ranks] if told.ranks > 1 else []
        self.ends = time.monotonic() + told.slice
        part, parts = (int(number) for number in told.share.split("/"))
        if not 0 <= part < parts:
            raise Wrong(f"--share: expected I/N with I from 0 to N - 1, got {told.share}")
        self.units = self.table.units[part::parts]

    def run(self):
        failed = []
        try:
            for unit in self.units:
                try:
                    self.one(unit)
                except Wrong as error:
                    failed.append(unit.name)
                    print(f"{unit.name}: {error}", file=sys.stderr, flush=True)
        except SliceOver as over:
            print(f"the slice is over: {over}; the same command goes on", flush=True)
            return MORE_TO_DO
        print(f"{len(self.units) - len(failed)} of {len(self.units)} units are done" + "".join(f"; {name} failed" for name in failed), flush=True)
        return 1 if failed else 0

    def one(self, unit):
        folder = self.folder / unit.name
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            self.wait_for(lock, unit)
            self.locked(unit, folder, lock)

    def wait_for(self, lock, unit):
        """What a killed call began holds the lock, too, until it has stopped."""
        while True:
            try:
                return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= self.ends:
                    raise SliceOver(f"{unit.name} is another process's") from None
                time.sleep(0.1)

    def locked(self, unit, folder, lock):
        self.lock = lock.fileno()
        text = unit.run_file()
        if (folder / "run.toml").exists() and (folder / "run.toml").read_text() != text:
            raise Wrong(f"{folder / 'run.toml'} is of another table of arms: name another folder")
        write(folder / "run.toml", text)
        model = self.trained(unit, folder)
        for evaluation in unit.evaluations:
            if not (folder / f"eval-{evaluation.name}" / "summary.json").exists():
                self.evaluate(unit, folder, evaluation, model)

    def ended(self, unit, process, log, enough=lambda: False):
        """Its exit code; or None where it was interrupted because it had done `enough`. At the slice's end it is interrupted, and
        killed where it does not stop: what it writes can be gone on from either way."""
        stopped = None
        while process.poll() is None:
            now = time.monotonic()
            if stopped is None and (now >= self.ends or enough()):
                stopped, late = now, now >= self.ends
                process.send_signal(signal.SIGINT)
            elif stopped is not None and now >= stopped + self.patience:
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(0.05)
        if stopped is not None and process.returncode != 0:
            if late and not enough():
                raise SliceOver(f"{unit.name} goes on ({log.name})")
            return None
        if process.returncode not in (0, 1):
            said = log.read_text(errors="replace").strip().splitlines()
            raise Wrong(f"{' '.join(map(str, process.args))} ended with {process.returncode}: {' / '.join(said[-3:])}")
        return process.returncode

    def start(self, log, *arguments, **more):
        if time.monotonic() >= self.ends:
            raise SliceOver(f"nothing new is begun ({log.parent})")
        # It is interrupted where this process dies.
        with log.open("wb") as err:
            return subprocess.Popen([self.nereid, *map(str, arguments)], stderr=err, stdin=subprocess.DEVNULL, start_new_session=True,
                                    pass_fds=[self.lock], preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGINT), **more)

    def trained(self, unit, folder):
        """The folder of the model to evaluate."""
        if unit.program == "none":
            return pathlib.Path(unit.run.get("model", {}).get("start_from", "")) if "model" in unit.run else None
        if (folder / TRAINED).exists():
            return pathlib.Path(json.loads((folder / TRAINED).read_text())["model"])
        run = folder / "run"

        def spent(steps=None):
            return sum(seconds_of(line) for line in lines_of(run / "metrics.jsonl")[:steps])

        def kept():
            """A killed run does the steps behind its last checkpoint again."""
            return max((int(path.name.removeprefix("step-")) for path in (run / "checkpoints").glob("step-*")), default=0)

        def enough():
            return self.table.seconds is not None and spent() >= self.table.seconds

        def done():
            return spent(kept()) >= self.table.seconds if self.table.seconds is not None else kept() >= unit.run["schedule"]["steps"]

        if not done():
            print(f"{unit.name}: trains ({len(lines_of(run / 'metrics.jsonl'))} steps are done)", flush=True)
            log = folder / "train.log"
            process = self.start(log, "train", unit.program, folder / "run.toml", "-o", run, "--device", self.device, *self.ranks, stdout=subprocess.DEVNULL)
            code = self.ended(unit, process, log, enough)
            if code == 1:
                raise Wrong(f"nereid train ended with 1: {log.read_text(errors='replace')[-500:]}")
            if code == 0 and not done():
                raise Wrong(f"schedule.steps ({unit.run['schedule'].get('steps')}) were over after {spent():g} of {self.table.seconds:g} s: set more")
        if not done():
            raise SliceOver(f"{unit.name} goes on after step {kept()}")
        model = run / "checkpoints" / f"step-{kept():08}" / "model"
        write(folder / TRAINED, json.dumps({"model": str(model), "steps": kept(), "seconds": spent(kept()),
                                            "rollouts": kept() * unit.rollouts_a_step if unit.program == "rl" else 0}))
        return model

    def tokenizer_of(self, unit, model):
        return pathlib.Path(unit.run.get("rl", {}).get("tokenizer") or model / "tokenizer.json")

    def served_folder(self, unit, folder, model):
        """The checkpoint with its tokenizer, and the token that ends an answer: what training leaves has neither."""
        if not (model / "config.json").exists():
            raise Wrong(f"{model}: expected a folder with a checkpoint")
        tokenizer = self.tokenizer_of(unit, model)
        served = folder / "served"
        served.mkdir(exist_ok=True)
        for old in served.iterdir():
            old.unlink()
        for file in model.iterdir():
            if file.name not in ("tokenizer.json", "generation_config.json"):
                (served / file.name).symlink_to(file.resolve())
        try:
            ids = {token["content"]: token["id"] for token in json.loads(tokenizer.read_text())["added_tokens"]}
        except (OSError, ValueError, KeyError) as error:
            raise Wrong(f"{tokenizer}: expected a tokenizer.json with added_tokens, got {error!r}") from None
        if END not in ids:
            raise Wrong(f"{tokenizer}: expected a token {END}, got none")
        (served / "tokenizer.json").symlink_to(tokenizer.resolve())
        (served / "generation_config.json").write_text(json.dumps({"eos_token_id": ids[END]}))
        return served

    def evaluate(self, unit, folder, evaluation, model):
        print(f"{unit.name}: is evaluated ({evaluation.name})", flush=True)
        server, environment = None, dict(os.environ)
        try:
            if evaluation.model:
                if model is None:
                    raise Wrong(f"evaluation {evaluation.name}: expected model.start_from in the run file, got nothing to serve")
                served = self.served_folder(unit, folder, model)
                server = self.start(folder / "serve.log", "serve-model", "--model", served, "--port", 0, "--device", self.device, *evaluation.serve,
                                    stdout=subprocess.PIPE, text=True)
                address = server.stdout.readline().strip()
                if not address:
                    raise Wrong(f"nereid serve-model ended: {(folder / 'serve.log').read_text(errors='replace')[-500:]}")
                environment |= {"NEREID_HTTP_BASE": address, "NEREID_HTTP_MODEL": unit.name.replace("/", "-")}
                prompts = self.tokenizer_of(unit, model).parent / "prompts"
                if prompts.is_dir():  # what training asked with
                    environment["NEREID_HTTP_PROMPTS"] = str(prompts)
            log = folder / f"eval-{evaluation.name}.log"
            # A store of its own: answers of another arm's model are not this one's.
            process = self.start(log, "eval", evaluation.tasks, "-o", folder / f"eval-{evaluation.name}", "--store", folder / "store.sqlite",
                                 "--device", self.device, *evaluation.options, stdout=subprocess.DEVNULL, env=environment)
            self.ended(unit, process, log)
        finally:
            if server is not None:
                server.terminate()
                try:
                    server.wait(self.patience)
                except subprocess.TimeoutExpired:
                    os.killpg(server.pid, signal.SIGKILL)
                    server.wait()


def plan(told):
    table = read_table(told.arms)
    compute = f"{table.rollouts} rollouts" if table.rollouts else f"{table.seconds:g} s"
    print(f"{len(table.units)} units, {compute} each")
    for unit in table.units:
        steps = f"{unit.run['schedule']['steps']} steps" if unit.program != "none" and table.rollouts else unit.program
        print(f"  {unit.name:28} {steps:12} then {', '.join(e.name for e in unit.evaluations)}")
    return 0


def pack(told):
    """Files in the order of their names, as many in a part as fit."""
    folder, home = pathlib.Path(told.folder), pathlib.Path(told.output)
    home.mkdir(parents=True, exist_ok=True)
    for old in home.glob("ablation-*.tar.gz"):
        old.unlink()
    for run in folder.glob("*/*/run"):
        pick_rollouts(run)
    files = sorted(file for pattern in PACKED for file in folder.glob(f"*/*/{pattern}"))
    parts, held = [], []

    def archive(some):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            for file in some:
                tar.add(file, arcname=file.relative_to(folder))
        return buffer.getvalue()

    def close():
        if held:
            parts.append(archive(held))
            held.clear()

    room = 0
    for file in files:
        size = len(archive([file]))  # of each alone: together they are no larger
        if size > told.most:
            print(f"left out: {file} takes {size} bytes, more than {told.most}", file=sys.stderr)
            continue
        if room + size > told.most:
            close()
            room = 0
        held.append(file)
        room += size
    close()
    for i, part in enumerate(parts):
        (home / f"ablation-{i:03}.tar.gz").write_bytes(part)
    print(f"{len(files)} files in {len(parts)} parts of at most {max(map(len, parts), default=0)} bytes")
    return 0


def unpack(told):
    for part in sorted(pathlib.Path(told.home).glob("ablation-*.tar.gz")):
        with tarfile.open(part) as tar:
            tar.extractall(told.output, filter="data")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="train and evaluate; again to go on")
    run.add_argument("arms")
    run.add_argument("-o", "--output", required=True, help="a folder for each arm and seed below it")
    run.add_argument("--slice", type=float, default=float("inf"), help="seconds")
    run.add_argument("--patience", type=float, default=45, help="seconds that what is interrupted has to stop")
    run.add_argument("--share", default="0/1", help="I/N: of all units every Nth from I on; one process a GPU")
    run.add_argument("--ranks", type=int, default=1, help="GPUs that train one unit together")
    run.add_argument("--device", default="auto")
    run.add_argument("--nereid", default=str(pathlib.Path(__file__).resolve().parents[2] / "nereid"))
    run.set_defaults(go=lambda told: Runner(told).run())
    planned = commands.add_parser("plan", help="what would be run")
    planned.add_argument("arms")
    planned.set_defaults(go=plan)
    packed = commands.add_parser("pack", help="what the report needs, in small files")
    packed.add_argument("folder")
    packed.add_argument("-o", "--output", required=True)
    packed.add_argument("--most", type=int, default=15_000_000, help="bytes of a part")
    packed.set_defaults(go=pack)
    unpacked = commands.add_parser("unpack", help="the folder again, as far as the report needs it")
    unpacked.add_argument("home")
    unpacked.add_argument("-o", "--output", required=True)
    unpacked.set_defaults(go=unpack)
    told = parser.parse_args()
    try:
        return told.go(told)
    except Wrong as error:
        print(f"ablation: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
