"""What `nereid lower` writes is a file that people keep: ruff finds nothing in it, and no line is longer than
110 columns.

python tests/lower/written_files_test.py NEREID RUFF [--tasks FOLDER] [--parts N]
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from sample import sampled  # noqa: E402

WIDTH = 110
RULES = "F,E,W,I,UP"  # besides ruff's own
CHECKED = (
    "import os\nimport sys\n\ndef f():\n    a = 1\n    return sys == False\n"  # what the check must find
)
FOUND = {"I001", "F401", "F841", "E712"}


def findings(ruff, files):
    """(file, line, rule, message) of each."""
    command = [
        ruff,
        "check",
        "--isolated",
        "--no-cache",
        "--line-length",
        str(WIDTH),
        "--output-format",
        "json",
    ]
    done = subprocess.run([*command, "--extend-select", RULES, *files], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"ruff: {done.stderr}")
    return [
        (found["filename"], found["location"]["row"], found["code"], found["message"])
        for found in json.loads(done.stdout)
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nereid")
    parser.add_argument("ruff")
    parser.add_argument("--tasks", type=pathlib.Path, default=HERE.parent / "tasks")
    parser.add_argument("--parts", type=int, default=1, help="run one of so many parts (tests/sample.py)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        checked = folder / "checked.py"
        checked.write_text(CHECKED)
        assert {rule for _, _, rule, _ in findings(options.ruff, [checked])} >= FOUND
        tasks = sampled(sorted(options.tasks.glob("*.py")), options.parts, lambda task: task.name)
        command = [options.nereid, "lower", *tasks, "-o", folder / "written", "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        declined = [json.loads(line) for line in done.stdout.splitlines() if "not_lowered" in line]
        written = sorted((folder / "written").glob("*.py"))
        assert len(written) + len(declined) == len(tasks), done.stderr[-2000:]
        bad = findings(options.ruff, written)
        for file in written:
            for number, line in enumerate(file.read_text().splitlines(), 1):
                if len(line) > WIDTH:
                    bad.append((file, number, "width", f"{len(line)} columns"))
        for file, line, rule, message in bad:
            print(f"{pathlib.Path(file).name}:{line}: {rule} {message}")
        print(f"{len(written)} of {len(tasks)} files written, {len(bad)} findings")
        assert len(written) > 0.9 * len(tasks)
        sys.exit(bool(bad))


main()
