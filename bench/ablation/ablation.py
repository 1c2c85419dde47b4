"""Runs the arms of a table (arms.toml; bench/ablation/README.md), each once for each seed: trained with equal
compute, then evaluated.

    ablation.py plan ARMS.toml [--gpus 2 --seconds 1500]   what would be run, and when
    ablation.py tasks ARMS.toml                            the tasks of all evaluations, and what the compiler
                                                           makes of them: once, beforehand
    ablation.py run ARMS.toml -o FOLDER [--slice SECONDS]  continues where the last call stopped: 0 all is
                                                           done, 75 there is more to do, 1 something failed
    ablation.py pack FOLDER -o HOME                        what the report needs and what people look at, in
                                                           few files of less than --most bytes
    ablation.py keep ARMS.toml FOLDER -o FILE.tar.xz       what the report needs of the units that are done,
                                                           for the repository; --known HOME: but for those
                                                           that are there
    ablation.py unpack HOME -o FOLDER                      of either
    ablation.py check ARMS.toml FOLDER                     whether what is in FOLDER was done with the
                                                           model, the data and the arms that are here: 1 and
                                                           why, if not
    report.py ARMS.toml FOLDER -o docs/ablation            tables and plots

Start one `run` for each GPU, all on one FOLDER: each takes the next free unit. A slice ends SECONDS after it
began, and a few more for what is being written. Everything a call needs to know of those before it is in
FOLDER, so it may be killed at any time. NEREID (the command; ./nereid) may be several words.
"""

import argparse
import collections
import ctypes
import fcntl
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

import fingerprint
import packing
from arms import Wrong, read_table
from files import FAILED, FINGERPRINT, MACHINE, TRAINED, is_done, lines_of, seconds_of, write
from schedule import lines as schedule_lines

MORE_TO_DO = 75  # EX_TEMPFAIL
ROOT = pathlib.Path(__file__).resolve().parents[2]
EVALUATE = next(
    path
    for path in (ROOT / "bench/small_model/evaluate.py", pathlib.Path(__file__).with_name("evaluate.py"))
    if path.exists()
)

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class SliceOver(Exception):
    pass


class Taken(Exception):
    """Another process is at this unit."""


def machine():
    cores = len(os.sched_getaffinity(0))
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            check=True,
        )
        return {"device": done.stdout.strip().splitlines()[0], "cores": cores}
    except (OSError, subprocess.CalledProcessError, IndexError):
        return {"device": "CPU", "cores": cores}


def task_files(evaluation):
    """(name, source) of an evaluation's tasks, named as evaluate.py does."""
    for level in evaluation.levels:
        for end, size, count in (("", "", evaluation.count), ("-large", "large", evaluation.large)):
            path = pathlib.Path(evaluation.tasks) / f"level{level}{end}.jsonl"
            found = lines_of(path)
            if len(found) < count:
                raise Wrong(
                    f"{path}: expected {count} tasks, got {len(found)}: `ablation.py tasks` makes them"
                )
            yield from ((f"L{level}_{size}{i:04}", task["code"]) for i, task in enumerate(found[:count]))


class Runner:
    def __init__(self, arguments):
        self.table = read_table(arguments.arms)
        self.folder, self.nereid, self.device, self.patience = (
            pathlib.Path(arguments.output),
            arguments.nereid,
            arguments.device,
            arguments.patience,
        )
        self.ranks = ["--ranks", arguments.ranks] if arguments.ranks > 1 else []
        self.ends, self.whole_ones = time.monotonic() + arguments.slice, arguments.whole
        self.prints = fingerprint.Prints(self.table)
        self.units = units_but(self.table, arguments.leave)

    def run(self):
        failed = []
        if strangers := fingerprint.strangers(self.folder, self.table):
            raise Wrong("; ".join(strangers) + ": name another folder")
        # What failed in an earlier call comes last.
        units = sorted(self.units, key=lambda unit: (self.folder / unit.name / FAILED).exists())
        try:
            while units := [
                unit
                for unit in units
                if unit.name not in failed and not is_done(unit, self.folder / unit.name)
            ]:
                if not self.any_of(units, failed):
                    self.check_slice("all that is left is other processes'")
                    if not any(self.fits(unit, self.folder / unit.name) for unit in units):
                        raise SliceOver(
                            f"{units[0].name} and what comes after it would take longer than the"
                            f" {max(self.ends - time.monotonic(), 0):.0f} s that are left"
                        )
                    time.sleep(0.2)
        except SliceOver as over:
            print(f"the slice is over: {over}; the same command continues", flush=True)
            return MORE_TO_DO
        done = sum(is_done(unit, self.folder / unit.name) for unit in self.units)
        print(
            f"{done} of {len(self.units)} units are done" + "".join(f"; {name} failed" for name in failed),
            flush=True,
        )
        return 1 if failed else 0

    def any_of(self, units, failed):
        """One of them is gone on with, or has failed. False: others have them all."""
        for unit in units:
            folder = self.folder / unit.name
            if not self.fits(unit, folder):
                continue
            try:
                self.one(unit, folder)
                return True
            except Taken:
                pass
            except (Wrong, OSError, ValueError) as error:  # whatever it is, the others go on
                failed.append(unit.name)
                why = error if isinstance(error, Wrong) else repr(error)
                write(folder / FAILED, f"{why}\n")
                print(f"{unit.name}: {why}", file=sys.stderr, flush=True)
                return True
        return False

    def fits(self, unit, folder):
        """Whether a unit would end within the slice, by the table's estimate and by how estimates came true
        here."""
        if not self.whole_ones:
            return True
        needed = unit.takes - (unit.compute.seconds or 0) * (
            unit.program != "none" and (folder / TRAINED).exists()
        )
        return time.monotonic() + needed * self.pace() <= self.ends

    def pace(self):
        """The median ratio of units' times to their estimates; at least 1."""
        ratios = sorted(
            json.loads((self.folder / unit.name / MACHINE).read_text()).get("seconds", 0) / unit.takes
            for unit in self.table.units
            if unit.takes
            and is_done(unit, self.folder / unit.name)
            and (self.folder / unit.name / MACHINE).exists()
        )
        return max(1, ratios[len(ratios) // 2]) if ratios else 1

    def check_slice(self, why):
        if time.monotonic() >= self.ends:
            raise SliceOver(why)

    def one(self, unit, folder):
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            try:  # what a killed call began holds it, too, until it has stopped
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Taken from None
            self.lock = lock.fileno()
            (folder / FAILED).unlink(missing_ok=True)
            self.locked(unit, folder)

    def locked(self, unit, folder):
        write(folder / FINGERPRINT, json.dumps(self.prints.of(unit)))
        write(folder / "run.toml", unit.run_file())
        before = (
            json.loads((folder / MACHINE).read_text()).get("seconds", 0) if (folder / MACHINE).exists() else 0
        )
        self.began = time.monotonic() - before
        self.note_machine(folder)
        model = self.trained(unit, folder)
        for evaluation in unit.evaluations:
            if not (folder / f"eval-{evaluation.name}" / "summary.json").exists():
                self.evaluate(unit, folder, evaluation, model)
                self.note_machine(folder)

    def note_machine(self, folder):
        """And how many seconds it has taken, by the wall's clock."""
        write(folder / MACHINE, json.dumps({**machine(), "seconds": round(time.monotonic() - self.began, 1)}))

    def ended(self, unit, process, log, enough=lambda: False, fine=(0,)):
        """Its exit code, one of `fine`; or None where it was interrupted because it had done `enough`. At the
        slice's end it is interrupted, and killed where it does not stop: what it writes can be gone on from
        either way."""
        stopped, given_up = None, time.monotonic() + self.table.wall
        while process.poll() is None:
            now = time.monotonic()
            if stopped is None and (now >= min(self.ends, given_up) or enough()):
                stopped, late = now, now >= self.ends
                process.send_signal(signal.SIGINT)
            elif stopped is not None and now >= stopped + self.patience:
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(0.05)
        if stopped is not None and process.returncode != 0:
            if not enough():
                if late:
                    raise SliceOver(f"{unit.name} continues ({log.name})")
                raise Wrong(f"{log.name}: given up after {self.table.wall:g} s, the table's wall")
            return None
        if process.returncode not in fine:
            said = log.read_text(errors="replace").strip().splitlines() or ["it said nothing"]
            raise Wrong(
                f"{' '.join(map(str, process.args))} ended with {process.returncode}: {' / '.join(said[-3:])}"
            )
        return process.returncode

    def start(self, log, command, **more):
        self.check_slice(f"nothing new is begun ({log.parent})")
        # It is interrupted where this process dies.
        with log.open("ab") as out:
            return subprocess.Popen(
                [*map(str, command)],
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=[self.lock],
                preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGINT),
                **more,
            )

    def trained(self, unit, folder):
        """The folder of the model to evaluate."""
        if unit.program == "none":
            return (
                pathlib.Path(unit.run["model"]["start_from"])
                if "start_from" in unit.run.get("model", {})
                else None
            )
        if (folder / TRAINED).exists() and (
            model := pathlib.Path(json.loads((folder / TRAINED).read_text())["model"])
        ).exists():
            return model  # it does not come home
        run, most, ended = folder / "run", unit.compute.seconds, False

        def spent(steps=None):
            return sum(seconds_of(line) for line in lines_of(run / "metrics.jsonl")[:steps])

        def kept():
            """A killed run does the steps after its last checkpoint again; what was being written is
            step-N.incomplete."""
            return max(
                (
                    int(path.name.removeprefix("step-"))
                    for path in (run / "checkpoints").glob("step-" + 8 * "[0-9]")
                ),
                default=0,
            )

        def enough():
            return most is not None and not unit.ends_itself and spent() >= most

        def done():
            if unit.ends_itself:  # asked again, a run that has ended has nothing to do
                return ended
            return spent(kept()) >= most if most is not None else kept() >= unit.run["schedule"]["steps"]

        if not done():
            if (run / "metrics.jsonl").exists():  # what a killed run does again is no time spent
                write(
                    run / "metrics.jsonl",
                    "".join(json.dumps(line) + "\n" for line in lines_of(run / "metrics.jsonl")[: kept()]),
                )
            print(f"{unit.name}: trains ({kept()} steps are done)", flush=True)
            log = folder / "train.log"
            process = self.start(
                log,
                [
                    *self.nereid,
                    "train",
                    unit.program,
                    folder / "run.toml",
                    "-o",
                    run,
                    "--device",
                    self.device,
                    *self.ranks,
                ],
            )
            ended = self.ended(unit, process, log, enough) == 0
            if ended and not done():
                raise Wrong(
                    f"schedule.steps ({unit.run['schedule'].get('steps')}) were over after {spent():g} of"
                    f" {most:g} s: set more"
                )
        if not done():
            raise Wrong(f"{log}: killed, as it did not stop; the next call continues after step {kept()}")
        model = run / "checkpoints" / f"step-{kept():08}" / "model"
        write(
            folder / TRAINED,
            json.dumps(
                {
                    "model": str(model),
                    "steps": kept(),
                    "seconds": spent(kept()),
                    "rollouts": kept() * unit.rollouts_a_step if unit.program == "rl" else 0,
                }
            ),
        )
        return model

    def whole(self, folder, model):
        """The checkpoint with the tokenizer and the prompts of all models: what training leaves has
        neither."""
        if model is None or not (model / "config.json").exists():
            raise Wrong(f"{model}: expected a folder with a checkpoint")
        assets, whole = pathlib.Path(self.table.assets), folder / "model"
        if not (assets / "tokenizer.json").exists():
            raise Wrong(f"{assets}: expected a folder with tokenizer.json and prompts")
        whole.mkdir(exist_ok=True)
        for old in whole.iterdir():
            old.unlink()
        own = [file for file in model.iterdir() if file.name not in ("tokenizer.json", "prompts")]
        for file in [
            *own,
            *(path for name in ("tokenizer.json", "prompts") if (path := assets / name).exists()),
        ]:
            (whole / file.name).symlink_to(file.resolve())
        return whole

    def evaluate(self, unit, folder, evaluation, model):
        print(f"{unit.name}: is evaluated ({evaluation.name})", flush=True)
        out, log = folder / f"eval-{evaluation.name}", folder / f"eval-{evaluation.name}.log"
        tasks = list(task_files(evaluation))  # made before: here several runs would make them at once
        asked = self.whole(folder, model) if evaluation.model else "-"
        if evaluation.program == "search":
            own = folder / f"eval-{evaluation.name}-tasks"
            own.mkdir(exist_ok=True)
            for name, source in tasks:
                write(own / f"{name}.py", source)
            # A store of its own: answers of another arm's model are not this one's.
            command = [
                *self.nereid,
                "eval",
                own,
                "-o",
                out,
                "--proposer",
                "model" if evaluation.model else "compiler",
                *(["--model", asked] if evaluation.model else []),
                "--samples",
                evaluation.samples,
                "--policy",
                "strict",
                "--store",
                folder / "store.sqlite",
                "--device",
                self.device,
                *evaluation.options,
            ]
        else:
            command = [
                sys.executable,
                EVALUATE,
                asked,
                out,
                "--go-on",
                "--device",
                "cpu" if self.device == "cpu" else "cuda",
                "--tasks",
                evaluation.tasks,
                "--operators",
                ",".join(map(str, evaluation.levels)),
                "--count",
                evaluation.count,
                "--samples",
                evaluation.samples,
                "--large",
                evaluation.large,
                *(["--no-compiler"] if evaluation.model else []),
                *evaluation.options,
            ]
        process = self.start(log, command, env={**os.environ, "NEREID": shlex.join(self.nereid)})
        self.ended(
            unit, process, log, fine=(0, 1) if evaluation.program == "search" else (0,)
        )  # 1: of some tasks there is no verdict
        if not (out / "summary.json").exists():
            raise Wrong(f"{log}: ended without {out / 'summary.json'}")


def units_but(table, left):
    names = [name for name in left.split(",") if name]
    if unknown := set(names) - {arm.name for arm in table.arms}:
        raise Wrong(
            f"--leave: expected arms, of {', '.join(arm.name for arm in table.arms)}, got"
            f" {', '.join(sorted(unknown))}"
        )
    return [unit for unit in table.units if unit.arm not in names]


def plan(arguments):
    units = units_but(read_table(arguments.arms), arguments.leave)
    print(f"{len(units)} units")
    for unit in units:
        what = f"{unit.program}: {unit.compute}" if unit.program != "none" else "no training"
        print(f"  {unit.name:28} {what:20} then {', '.join(e.name for e in unit.evaluations)}")
    if arguments.seconds:
        print("\n".join(schedule_lines(units, arguments.gpus, arguments.seconds)))
    return 0


def make_tasks(arguments):
    table = read_table(arguments.arms)
    for tasks, evaluations in sorted(folders_of_tasks(table).items()):
        for level in sorted({level for e in evaluations for level in e.levels}):
            count, large = (
                max(getattr(e, key) for e in evaluations if level in e.levels) for key in ("count", "large")
            )
            subprocess.run(
                [
                    sys.executable,
                    EVALUATE,
                    "-",
                    tasks,
                    "--only-tasks",
                    "--tasks",
                    tasks,
                    "--operators",
                    str(level),
                    "--count",
                    str(count),
                    "--large",
                    str(large),
                ],
                check=True,
                env={**os.environ, "NEREID": shlex.join(arguments.nereid)},
            )
            print(f"{tasks}: {count} of level {level}" + f", {large} large ones" * (large > 0), flush=True)
    return 0


def folders_of_tasks(table):
    found = collections.defaultdict(list)
    for evaluation in (e for arm in table.arms for unit in arm.units for e in unit.evaluations):
        found[evaluation.tasks].append(evaluation)
    return found


def check(arguments):
    strangers = fingerprint.strangers(pathlib.Path(arguments.folder), read_table(arguments.arms))
    print("".join(f"{line}\n" for line in strangers), end="")
    return 1 if strangers else 0


def pack(arguments):
    packing.pack(
        pathlib.Path(arguments.folder), pathlib.Path(arguments.output), arguments.most, arguments.files
    )
    return 0


def keep(arguments):
    packing.keep(
        pathlib.Path(arguments.folder),
        read_table(arguments.arms),
        pathlib.Path(arguments.output),
        pathlib.Path(arguments.known) if arguments.known else None,
    )
    return 0


def unpack(arguments):
    packing.unpack(pathlib.Path(arguments.home), pathlib.Path(arguments.output))
    return 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(nereid=shlex.split(os.environ.get("NEREID", str(ROOT / "nereid"))))
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="train and evaluate; again to go on")
    run.add_argument("arms")
    run.add_argument("-o", "--output", required=True, help="a folder for each arm and seed below it")
    run.add_argument("--slice", type=float, default=float("inf"), help="seconds")
    run.add_argument(
        "--whole",
        action="store_true",
        help=(
            "begin nothing that would not be over within the slice, by the table's `takes`: where no later"
            " run continues in this folder"
        ),
    )
    run.add_argument(
        "--patience", type=float, default=45, help="seconds that what is interrupted has to stop"
    )
    run.add_argument("--ranks", type=int, default=1, help="GPUs that train one unit together")
    run.add_argument("--leave", default="", metavar="ARM,ARM", help="arms that are left to another call")
    run.add_argument("--device", default="auto")
    run.set_defaults(go=lambda arguments: Runner(arguments).run())
    planned = commands.add_parser("plan", help="what would be run")
    planned.add_argument("arms")
    planned.add_argument("--leave", default="", metavar="ARM,ARM", help="as `run` has it")
    planned.add_argument("--gpus", type=int, default=1)
    planned.add_argument("--seconds", type=float, help="when each would be run, by the table's `takes`")
    planned.set_defaults(go=plan)
    tasks = commands.add_parser("tasks", help="the tasks of all evaluations")
    tasks.add_argument("arms")
    tasks.set_defaults(go=make_tasks)
    packed = commands.add_parser("pack", help="what the report needs, in few small files")
    packed.add_argument("folder")
    packed.add_argument("-o", "--output", required=True)
    packed.add_argument("--most", type=int, default=15_000_000, help="bytes of a part")
    packed.add_argument("--files", type=int, default=8, help="parts; what is needed least is left out")
    packed.set_defaults(go=pack)
    kept = commands.add_parser("keep", help="the units that are done, for the repository")
    kept.add_argument("arms")
    kept.add_argument("folder")
    kept.add_argument("-o", "--output", required=True, help="FILE.tar.xz")
    kept.add_argument("--known", help="a folder with archives: units that stand there are left out")
    kept.set_defaults(go=keep)
    checked = commands.add_parser("check", help="whether the folder's units go together with what is here")
    checked.add_argument("arms")
    checked.add_argument("folder")
    checked.set_defaults(go=check)
    unpacked = commands.add_parser("unpack", help="the folder again, as far as the report needs it")
    unpacked.add_argument("home")
    unpacked.add_argument("-o", "--output", required=True)
    unpacked.set_defaults(go=unpack)
    arguments = parser.parse_args()
    try:
        return arguments.go(arguments)
    except Wrong as error:
        print(f"ablation: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
