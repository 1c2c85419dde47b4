"""`nereid harvest` over the packages in tests/harvest/packages: what is collected is a task, new, labelled
and on the right side; modules that write files, never end or exit cost nothing but themselves.

    harvest_test.py NEREID               the small packages (make test)
    harvest_test.py NEREID --all         ... and runs that are resumed and limited (make slow)
    harvest_test.py NEREID --packages    installs real packages of runs/harvest.txt and collects from them
                                         (make slow)
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ROOT / "tests" / "harvest" / "packages"
ESCAPED = Path("/tmp/nereid_harvest_escaped")
ALL = "harvest-other,harvest-sample,harvest-third"


def command(nereid, output, *arguments):
    # Of processor time, and ten times what the slowest honest module needs. Modules that compute for ever
    # take three times the limit alone, and five times in a batch.
    return [nereid, "harvest", "-o", str(output), "--json", "--time-limit", "0.5", *map(str, arguments)]


def harvest(nereid, output, *arguments, check=True):
    done = subprocess.run(
        command(nereid, output, *arguments),
        capture_output=True,
        text=True,
        timeout=1200,
        env={**os.environ, "PYTHONPATH": str(PACKAGES)},
    )
    if check:
        assert done.returncode == 0, (arguments, done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout)
    return done


def lines_of(folder, *sides):
    found = []
    for side in sides or ("train", "held_out"):
        found += [json.loads(line) for line in (folder / f"{side}.jsonl").read_text().splitlines()]
    return found


def collects(nereid, folder):
    """All three packages, the third held out, and with it the other one of its author."""
    report = harvest(nereid, folder, "--packages", ALL, "--hold-out", "harvest-third")
    lines = lines_of(folder)
    assert report["tasks"] == len(lines) > 20, report
    assert not ESCAPED.exists() and not (PACKAGES / "harvest_sample" / ESCAPED.name).exists()

    by_package = {package["package"]: package for package in report["packages"]}
    assert {name: package["split"] for name, package in by_package.items()} == {
        "harvest-sample": "train", "harvest-other": "held-out",
        "harvest-third": "held-out"}, by_package  # fmt: skip
    sample = by_package["harvest-sample"]
    assert sample["next"] == sample["entries"] and sample["done"], sample
    failures = " ".join(sample["failures"])
    for cause in ("no such weights", "SystemExit", "EntryTimeout", "took longer than"):
        assert cause in failures, (cause, sample)
    assert sample["failed"] == 5, sample  # Unbuildable, Endless, Deaf, Ends, Exits
    assert sample["dropped"]["draws random numbers"] >= 1, sample

    # Labels are those of the task itself.
    for line in lines:
        assert line["split"] == ("held-out" if line["package"] != "harvest-sample" else "train")
        assert 1 <= len(line["operators"]) <= 12 and len(line["operators"]) == len(line["classes"])
        assert line["difficulty"] in ("easy", "medium", "hard")
        assert line["licence"] == {"harvest-sample": "MIT", "harvest-other": "Apache-2.0",
            "harvest-third": "BSD-3-Clause"}[line["package"]]  # fmt: skip
        for part in ("class Model(", "def get_inputs():", "def get_init_inputs():"):
            assert part in line["code"], line["code"]
        assert not re.search(r"harvest_(sample|other|third)", line["code"]), line["code"]
    digests = [line["digest"] for line in lines]
    assert len(set(digests)) == len(digests)

    # In the author's own words, with names, options and style.
    author = {line["class"].split(":")[1]: line for line in lines if line["form"] == "author"}
    gate = author.get("Gate") or author["SameGate"]
    assert gate["operators"][:1] == ["linear"] and gate["difficulty"] == "medium", gate
    assert ("halved(value) * torch.sigmoid(gate)" in gate["code"]) == ("Gate" in author), gate["code"]
    assert (
        "nn.Conv2d(in_channels, out_channels, kernel_size=3, stride=2, padding=1)"
        in author["ConvBlock"]["code"]
    )
    assert 'register_buffer("order"' in author["Table"]["code"].replace("'", '"')
    # One computation in three texts is one task, and a held-out package's is dropped where training has it.
    assert ("Gate" in author) + ("SameGate" in author) == 1, author.keys()
    assert "GateAgain" not in author and "Own" in author and "Waves" in author, author.keys()
    assert sample["dropped"]["equal canonical trace"] >= 1, sample

    # Every task runs as it is, and is traced and lowered by the commands.
    for line in lines:
        names = {"__name__": "task"}
        exec(compile(line["code"], line["id"], "exec"), names)
        given = names["get_init_inputs"]()
        model = names["Model"](**given) if isinstance(given, dict) else names["Model"](*given)
        inputs = names["get_inputs"]()
        model(**inputs) if isinstance(inputs, dict) else model(*inputs)
    task = folder / "task.py"
    task.write_text(author["ConvBlock"]["code"])
    subprocess.run([nereid, "lower", task, "-o", folder / "fast.py"], check=True, capture_output=True)
    return report


def resumes(nereid, folder, whole):
    """An interrupted run continues, to the same files."""
    arguments = ("--packages", ALL, "--hold-out", "harvest-third")
    running = subprocess.Popen(
        command(nereid, folder, *arguments),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(PACKAGES)},
    )
    deadline = time.monotonic() + 600
    train = folder / "train.jsonl"
    while (
        time.monotonic() < deadline
        and running.poll() is None
        and not (train.exists() and train.stat().st_size)
    ):
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    assert running.wait(60) in (0, 130)
    with train.open("a") as file:
        file.write('{"cut')  # as a killed run leaves it
    report = harvest(nereid, folder, *arguments)
    for side in ("train", "held_out"):
        assert (folder / f"{side}.jsonl").read_text() == (whole / f"{side}.jsonl").read_text(), side
    before = {file.name: file.read_bytes() for file in folder.glob("*.jsonl")}
    assert harvest(nereid, folder, *arguments)["tasks"] == report["tasks"]
    assert before == {file.name: file.read_bytes() for file in folder.glob("*.jsonl")}
    changed = harvest(nereid, folder, *arguments, "--seed", 1, check=False)
    assert changed.returncode == 2 and "other options" in changed.stderr, changed


def limits(nereid, folder):
    report = harvest(nereid, folder, "--packages", "harvest-other", "--max-operators", 1, "--limit", 3)
    lines = lines_of(folder)
    assert lines and all(len(line["operators"]) == 1 for line in lines), lines
    assert all(line["split"] == "train" for line in lines)
    assert report["max_operators"] == 1


def holds_out_by_the_whole_list(nereid, folder):
    """A package of a held-out author is held out, also where that author's listed one is not collected."""
    names = folder / "list.txt"
    names.write_text("harvest-other==0.1\nharvest-third==3  # held out\nnot-there==1  # held out\n")
    done = harvest(nereid, folder / "part", "--list", names, "--packages", "harvest-other", "--limit", 1,
                   "--max-operators", 1, "--per-module", 1, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    (package,) = json.loads(done.stdout)["packages"]
    assert (package["package"], package["split"]) == ("harvest-other", "held-out"), package
    assert "not-there is held out and not installed" in done.stderr, done.stderr


def refuses(nereid, folder):
    """Errors name what is missing and how to mend it."""
    for arguments, words in (
        (("--packages", "harvest-sample,no-such-thing==9.1"),
            ("no-such-thing==9.1", "-m pip install no-such-thing==9.1")),
        (("--packages", "harvest-sample==7"), ("harvest-sample==7 (installed: 1.2)",)),
        (("--packages", "KernelBench"), ("benchmark",)),
        (("--packages", "flag_gems"), ("benchmark",)),
        (("--packages", "flash.linear-attention==0.1"), ("benchmark",)),
        (("--packages", "../x"), ("expected the name of a package",)),
        ((), ("--packages", "--list")),
        (("--packages", "harvest-sample", "--hold-out", "timm"), ("--hold-out timm",)),
        (("--packages", "harvest-sample", "--python", "/no/python"), ("/no/python",)),
    ):  # fmt: skip
        done = harvest(nereid, folder, *arguments, check=False)
        text = done.stderr + done.stdout
        assert done.returncode == 2 and all(word in text for word in words), (
            arguments,
            done.returncode,
            text,
        )


def real_packages(nereid, folder):
    """Three packages of the list, in an environment of their own."""
    pins = {}
    for line in (ROOT / "runs" / "harvest.txt").read_text().splitlines():
        name, _, version = line.split("#")[0].strip().partition("==")
        if version:
            pins[name] = version
    names = [name for name in ("conformer", "entmax", "rtdl-num-embeddings") if name in pins]
    subprocess.run([sys.executable, "-m", "venv", folder / "venv", "--system-site-packages"], check=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "--no-deps", *(f"{n}=={pins[n]}" for n in names), "einops"],
        check=True,
    )
    report = harvest(nereid, folder / "out", "--python", python, "--list", ROOT / "runs" / "harvest.txt",
                     "--packages", ",".join(names))  # fmt: skip
    for package in report["packages"]:
        assert package["tasks"] > 5, package


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("nereid")
    parser.add_argument("--packages", action="store_true")
    parser.add_argument("--all", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nereid-harvest-") as name:
        folder = Path(name)
        if given.packages:
            real_packages(given.nereid, folder)
            return
        refuses(given.nereid, folder / "refused")
        holds_out_by_the_whole_list(given.nereid, folder)
        collects(given.nereid, folder / "all")
        if given.all:
            resumes(given.nereid, folder / "again", folder / "all")
            limits(given.nereid, folder / "few")


if __name__ == "__main__":
    main()
