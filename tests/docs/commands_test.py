"""Runs the commands that a documentation page shows, and compares what they print with what the page shows.

    commands_test.py NEREID PAGE.md... [--slow] [--update]

* A fenced block that begins with ```console holds commands (`$ ...`, continued by a backslash) and their
  output. A command must exit with 0, or with N where it ends with `# exit code N`.
* Output is compared with numbers masked and white space collapsed: a line `...` stands for any number of
  lines.
* A block that begins with ```python file=NAME (any language) is written to NAME before the commands after it
  run.
* `<!-- test: skip -->` before a block: it is not run. `<!-- test: slow -->`: it is run with --slow alone.
* --update rewrites the output in the page. Around `...` it keeps as many lines as there were.

All commands of a page run in one temporary folder, in which the repository's folders are found under their
names."""

import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINKED = ("nereid", "examples", "tests", "models", "runs", "docs", "bench", "python", "tools")
# Scripts that a page shows import torch: tests/preloaded.py.
PYTHON = """#!/bin/sh
case "$1" in
  -* | */*) exec {python} "$@" ;;
  *.py) exec {python} {preloaded} torch "$@" ;;
  *) exec {python} "$@" ;;
esac
"""
BLOCK = re.compile(
    r"(?:<!-- test: (?P<mark>\w+) -->\n)?^```(?P<info>\w+[^\n]*)\n(?P<body>.*?)^```$", re.M | re.S
)
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
REMAINING = re.compile(r"\b(?:s|min|h) left\b")  # a slower machine counts minutes
# A distribution of inputs that a verdict counts only where the seed's infinities leave the reference numbers.
SOMETIMES = re.compile(r"\binfinities, ")


def commands(body):
    """[[command as shown, [output lines]]] of a console block."""
    found = []
    continued = False
    for line in body.splitlines():
        if line.startswith("$ ") or continued:
            if continued:
                found[-1][0] += "\n" + line
            else:
                found.append([line[2:], []])
            continued = line.endswith("\\")
        elif found:
            found[-1][1].append(line)
    return found


def masked(line):
    return re.sub(r"\s+", " ", NUMBER.sub("#", REMAINING.sub("left", SOMETIMES.sub("", line)))).strip()


def matches(expected, actual):
    """Whether the lines agree; `...` matches any number of lines."""
    expected, actual = [masked(line) for line in expected], [masked(line) for line in actual]

    def from_here(i, j):
        if i == len(expected):
            return j == len(actual)
        if expected[i] == "...":
            return any(from_here(i + 1, k) for k in range(j, len(actual) + 1))
        return j < len(actual) and expected[i] == actual[j] and from_here(i + 1, j + 1)

    return from_here(0, 0)


def refreshed(expected, actual):
    """The actual lines, shortened where the page has `...`: as many before the first and after the last as
    before."""
    if "..." not in expected:
        return actual
    head, tail = (
        expected.index("..."),
        len(expected) - 1 - max(i for i, line in enumerate(expected) if line == "..."),
    )
    return actual[:head] + ["..."] + actual[len(actual) - tail :] if tail else actual[:head] + ["..."]


class Page:
    def __init__(self, path, nereid, slow):
        self.path, self.slow, self.failures = path, slow, []
        self.folder = tempfile.TemporaryDirectory()
        work = pathlib.Path(self.folder.name)
        for name in LINKED:
            (work / name).symlink_to(ROOT / name)
        (work / ".bin").mkdir()
        python = work / ".bin/python3"
        python.write_text(PYTHON.format(python=sys.executable, preloaded=ROOT / "tests/preloaded.py"))
        python.chmod(0o755)
        self.env = {
            **os.environ,
            "NEREID_BUILD": str(pathlib.Path(nereid).resolve().parents[1]),
            "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": "1",
            "NEREID_KEEP_WARM": os.environ.get("NEREID_KEEP_WARM", "60"),
            "XDG_DATA_HOME": str(work / ".data"),
            "PATH": f"{work}/.bin:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
        }

    def run(self, shown, expected):
        """The command's output; failures are collected."""
        code = re.search(r"#\s*exit code (\d+)\s*$", shown)
        begin = time.time()
        done = subprocess.run(
            ["bash", "-c", shown],
            cwd=self.folder.name,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        print(
            f"{self.path.name}: {time.time() - begin:5.1f} s  {shlex.join([shown.splitlines()[0]])}",
            flush=True,
        )
        actual = done.stdout.splitlines()
        if done.returncode != int(code[1] if code else 0):
            self.failures.append(f"{self.path}: `{shown}` exited with {done.returncode}:\n{done.stdout}")
        elif not matches(expected, actual):
            self.failures.append(
                f"{self.path}: `{shown}` printed\n{done.stdout}\nwhere the page shows\n" + "\n".join(expected)
            )
        return actual

    def block(self, match):
        """The block's text with the output that its commands gave."""
        info, body = match["info"].split(), match["body"]
        if match["mark"] == "skip" or (match["mark"] == "slow" and not self.slow):
            return match[0]
        files = [word[5:] for word in info if word.startswith("file=")]
        if files:
            path = pathlib.Path(self.folder.name, files[0])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body)
        if info[0] != "console":
            return match[0]
        lines = []
        for shown, expected in commands(body):
            end = expected[:]
            while end and not end[-1]:
                end.pop()
            actual = self.run(shown, end)
            lines += [f"$ {shown}", *refreshed(end, actual), *[""] * (len(expected) - len(end))]
        return match[0].replace(body, "\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nereid")
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    assert (
        matches(["a 1", "...", "b"], ["a 2.5", "x", "y", "b"])
        and not matches(["a", "..."], ["b"])
        and matches([], [])
        and matches(["outliers, wide"], ["outliers, infinities, wide"])
    )
    failures, ran = [], 0
    for path in options.pages:
        page = Page(path, options.nereid, options.slow)
        text = path.read_text()
        new = BLOCK.sub(page.block, text)
        ran += len(re.findall(r"^\$ ", text, re.M))
        if options.update:
            path.write_text(new)
        failures += page.failures
    assert ran, "no commands found"
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures and not options.update else 0


if __name__ == "__main__":
    sys.exit(main())
