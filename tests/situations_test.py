"""Every command of `nereid` where its surroundings fail: outputs that nothing reads or that do not fit,
inputs that are missing or of another kind, Ctrl-C.

    tests/situations_test.py PATH/TO/nereid [--all]

The rules, a test each. A command that is in no table fails the test.

* stdout closed or full: exit code 3 and the reason. A reader that went away (`| head`) is no error: exit code
  0, or 130 where there was more to make. A stream that the caller closed never becomes a file of ours.
* An input that is missing, unreadable, of another kind or endless: exit code 2 at once, a message with the
  path, and no output. One that is empty is never our error (3). A name that is no UTF-8 is a name.
* A full disk under an output: exit code 2 or 3 and the reason; no half of a file is left, what was there
  stays.
* Ctrl-C: exit code 130 within seconds (or what a command had to say, where it just ended), and no process, no
  temporary file is left. Training ends its step and keeps it; servers finish what they accepted, with 0.

--all: also what starts a tracer or a model for each case.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import processes

NEREID = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release/bin/nereid").resolve())
ALL = "--all" in sys.argv
ROOT = pathlib.Path(__file__).resolve().parents[1]
TASK = ROOT / "tests/tasks/relu.py"
SMALL = ROOT / "models/small"
SECONDS = 10  # for what is said at once, on a loaded machine

# Commands that print data and start nothing.
PRINT = {
    "--help": ["--help"],
    "--version": ["--version"],
    "generate": ["generate", "--help"],
    "synth": ["synth", "--operators", "2", "--count", "400"],
    "ops": ["ops"],
    "train keys": ["train", "keys"],
    "runs list": ["runs", "list", "{runs}"],
    "runs show": ["runs", "show", "{runs}/run"],
    "runs watch": ["runs", "watch", "{runs}/run"],
    "tokenize": ["tokenize", "-t", SMALL / "tokenizer.json", TASK],
    "store": ["store", "--store", "{store}"],
    "store check": ["store", "check", "--store", "{store}"],
    "skills list": ["skills", "list", "--store", "{skills}"],
    "skills add": ["skills", "add", ROOT / "examples/skills/fused-chain.md", "--store", "{skills}"],
    "skills show": ["skills", "show", "fused-chain", "--store", "{skills}"],
    "trace": ["trace", "{trace}"],
}
PRINT_SLOWLY = {
    "verify": ["verify", "{good}", "{answer}", "--device", "cpu"],
    "verify --batch": ["verify", "--batch", "{pairs}", "--device", "cpu"],
    "doctor": ["doctor"],
    "generate": ["generate", "--prompt", "a", "--max-tokens", "4", "--device", "cpu"],
    "optimize": ["optimize", "{good}", "-o", "{out}", "--device", "cpu", "--first", "--proposers", "compiler",
                 "--no-store", "--json"],
    "lower": ["lower", "{good}"],
}  # fmt: skip

# X is an input: a file, or a folder.
FILES = {
    "optimize": ["optimize", "X", "-o", "{out}", "--no-store"],
    "verify": ["verify", "X", "{good}"],
    "verify candidate": ["verify", "{good}", "X"],
    "verify --batch": ["verify", "--batch", "X", "-o", "{out}"],
    "lower": ["lower", "X", "-o", "{out}"],
    "trace": ["trace", "X", "-o", "{out}"],
    "trace --reference": ["trace", "{good}", "-r", "X", "-o", "{out}"],
    "mutate": ["mutate", "X", "--reference", "{good}", "-o", "{out}"],
    "mutate --reference": ["mutate", "{good}", "--reference", "X", "-o", "{out}"],
    "harvest": ["harvest", "--list", "X", "-o", "{out}"],
    "choices": ["choices", "X", "-o", "{out}", "--device", "cpu"],
    "import": ["import", "tritonbench", "X", "-o", "{out}"],
    "package": ["package", "X", "--format", "backendbench", "-o", "{out}"],
    "train data": ["train", "data", "X", "-o", "{out}", "-t", SMALL / "tokenizer.json"],
    "train data -t": ["train", "data", "{lines}", "-o", "{out}", "-t", "X"],
    "train pairs": ["train", "pairs", "X", "-o", "{out}.jsonl"],
    "train check": ["train", "check", "X"],
    "train sft": ["train", "sft", "X", "-o", "{out}", "--device", "cpu"],
    "train rl": ["train", "rl", "X", "-o", "{out}", "--device", "cpu"],
    "generate --prompts": ["generate", "--prompts", "X", "--device", "cpu"],
    "tokenize": ["tokenize", "-t", SMALL / "tokenizer.json", "X"],
    "tokenize -t": ["tokenize", "-t", "X", "{good}"],
    "tokenize --train": ["tokenize", "--train", "--vocab", "300", "X", "-o", "{out}"],
    "import-gguf": ["import-gguf", "X", "-o", "{out}"],
    "skills add": ["skills", "add", "X", "--store", "{skills}"],
    "skills learn": ["skills", "learn", "X", "{good}", "{good}", "--store", "{skills}", "--clock", "model"],
    "skills search": ["skills", "search", "--task", "X", "--store", "{skills}"],
    "serve --tokens": ["serve", "--port", "0", "--tokens", "X", "--store", "{out}.db"],
}
FOLDERS = {
    "eval": ["eval", "X", "-o", "{out}", "--no-store"],
    "runs list": ["runs", "list", "X"],
    "runs show": ["runs", "show", "X"],
    "runs page": ["runs", "page", "X", "-o", "{out}"],
    "runs watch": ["runs", "watch", "X"],
    "runs watch --port": ["runs", "watch", "X", "--port", "0"],
    "runs stop": ["runs", "stop", "X"],
    "runs move": ["runs", "move", "X", "{out}"],
    "export": ["export", "X", "-o", "{out}"],
    "generate": ["generate", "--model", "X", "--prompt", "a", "--device", "cpu"],
    "serve-model": ["serve-model", "--model", "X", "--port", "0", "--device", "cpu"],
    "serve --tasks": ["serve", "--port", "0", "--tasks", "X", "--store", "{out}.db"],
    "skills admit": ["skills", "admit", "fused-chain", "--tasks", "X", "--store", "{skills}", "--proposer",
        "http",
                     "--clock", "model"],
    "optimize --model": ["optimize", "{good}", "-o", "{out}", "--proposers", "model", "--model", "X",
        "--no-store"],
}  # fmt: skip
# A store that is not there, or empty, is one without records; one of another kind is no database.
STORES = {
    "store": ["store", "--store", "X"],
    "store list": ["store", "list", "--store", "X"],
    "store show": ["store", "show", "ab", "--store", "X"],
    "store prune": ["store", "prune", "--all", "--dry-run", "--store", "X"],
    "store check": ["store", "check", "--store", "X"],
    "store copy": ["store", "copy", "{out}", "--store", "X"],
    "skills remove": ["skills", "remove", "fused-chain", "--store", "X"],
}
# Outputs on a full disk.
FULL = {
    "trace": ["trace", "{trace}", "-o", "{disk}/out"],
    "synth": ["synth", "--operators", "2", "--count", "40", "-o", "{disk}/out.jsonl"],
    "import": ["import", "tritonbench", "{tritonbench}", "-o", "{disk}/out"],
    "package": ["package", "{answer}", "--format", "backendbench", "--operator", "relu.default", "-o",
        "{disk}/out"],
    "train data": ["train", "data", "{lines}", "-o", "{disk}/out", "-t", SMALL / "tokenizer.json"],
    "runs page": ["runs", "page", "{runs}/run", "-o", "{disk}/out"],
    "tokenize": ["tokenize", "--train", "--vocab", "300", TASK, "-o", "{disk}/out"],
    "export": ["export", SMALL, "-o", "{disk}/out"],
    "skills add": ["skills", "add", ROOT / "examples/skills/fused-chain.md", "--store", "{disk}/out"],
    "store copy": ["store", "copy", "{disk}/out", "--store", "{store}"],
    "serve": ["serve", "--port", "0", "--store", "{disk}/out.db"],
}  # fmt: skip
FULL_SLOWLY = {
    "lower": ["lower", "{good}", "-o", "{disk}/out"],
    "optimize": ["optimize", "{good}", "-o", "{disk}/out", "--no-store", "--device", "cpu", "--first",
        "--proposers", "compiler"],
    "eval": ["eval", "{tasks}", "-o", "{disk}/out", "--no-store", "--device", "cpu", "--proposer",
        "compiler", "--once"],
    "choices": ["choices", "{lines}", "-o", "{disk}/out", "--device", "cpu"],
    "mutate": ["mutate", "{answer}", "--reference", "{good}", "-o", "{disk}/out", "--each", "2"],
    "train pairs": ["train", "pairs", "{lines}", "-o", "{disk}/out.jsonl", "--verify-every", "0"],
    "verify --batch": ["verify", "--batch", "{pairs}", "--device", "cpu", "-o", "{disk}/out"],
}  # fmt: skip
# What takes long enough to be interrupted.
LONG = {
    "synth": ["synth", "--operators", "5", "--count", "1000000", "-o", "{out}.jsonl"],
    "tokenize": ["tokenize", "-t", SMALL / "tokenizer.json", "{many}"],
    "train data": ["train", "data", "{many}", "-o", "{out}", "-t", SMALL / "tokenizer.json"],
}
LONG_SLOWLY = {
    "synth folder": ["synth", "--operators", "5", "--count", "1000000", "-o", "{out}"],
    "synth --pairs": ["synth", "--operators", "1", "--count", "1000", "--pairs", "-o", "{out}.jsonl"],
    "tokenize --train": ["tokenize", "--train", "--vocab", "30000", "{many}", "-o", "{out}"],
    "optimize": ["optimize", "{good}", "-o", "{out}", "--no-store", "--device", "cpu", "--proposers",
        "compiler"],
    "verify": ["verify", "{good}", "{answer}", "--device", "cpu", "--trials", "1000"],
    "lower": ["lower", "{good}", "-o", "{out}"],
    "trace": ["trace", "{good}", "-o", "{out}"],
    "eval": ["eval", "{tasks}", "-o", "{out}", "--no-store", "--device", "cpu"],
    "mutate": ["mutate", "{answer}", "--reference", "{good}", "-o", "{out}"],
    "harvest": ["harvest", "--packages", "torch", "-o", "{out}"],
    "choices": ["choices", "{lines}", "-o", "{out}", "--device", "cpu"],
    "train pairs": ["train", "pairs", "{lines}", "-o", "{out}.jsonl"],
    "generate": ["generate", "--prompt", "a", "--max-tokens", "4000", "--ignore-end", "--device", "cpu"],
    "skills learn": ["skills", "learn", "{good}", "{answer}", "{answer}", "--store", "{skills}", "--clock",
        "model"],
    "doctor": ["doctor"],
}  # fmt: skip


def run(words, **more):
    return subprocess.run(
        list(map(str, words)),
        **{"capture_output": True, "text": True, "timeout": 120, "errors": "surrogateescape", **more},
    )


def slowly(table, more):
    return {**table, **more} if ALL else table


class Case(unittest.TestCase):
    folder = None

    @classmethod
    def setUpClass(cls):
        if Case.folder is not None:  # all classes share it
            return
        folder = tempfile.TemporaryDirectory()
        unittest.addModuleCleanup(folder.cleanup)
        Case.folder = folder = pathlib.Path(folder.name)
        Case.environment = {**os.environ, "NEREID_KEEP_WARM": "60", "NEREID_STORE": str(folder / "own.db"),
                           "NEREID_HTTP_BASE": "http://127.0.0.1:9/v1",
                           "NEREID_HTTP_MODEL": "none"}  # fmt: skip
        names = dict(runs="runs", store="store.db", skills="skills.db", trace="relu.trace", good="good.py",
                     answer="answer.py", pairs="pairs.jsonl", out="out", lines="lines.jsonl",
                     many="many.jsonl",
                     tritonbench="tritonbench", tasks="tasks", disk="disk")  # fmt: skip
        Case.names = {name: folder / file for name, file in names.items()}
        for made in ("runs/run", "tritonbench", "tasks", "disk"):
            (folder / made).mkdir(parents=True)
        lines = (json.dumps({"step": i, "loss": 1 / (i + 1)}) + "\n" for i in range(9))
        (folder / "runs/run/metrics.jsonl").write_text("".join(lines))
        shutil.copy(TASK, folder / "good.py")
        shutil.copy(TASK, folder / "tasks/relu.py")
        test = (
            f"def f(x):\n    return x\n\n{'#' * 146}\nimport torch\ndef test_f():\n    return"
            " f(torch.ones(3))\n"
        )
        (folder / "tritonbench/a.py").write_text(test)
        task = {"code": TASK.read_text(), "prompt": "a", "answer": TASK.read_text()}
        (folder / "lines.jsonl").write_text(
            "".join(json.dumps({"id": str(i), **task}) + "\n" for i in range(90))
        )
        many = json.dumps({"prompt": "a b c " * 400, "answer": " ".join(map(str, range(2000)))}) + "\n"
        (folder / "many.jsonl").write_text(many * 1500)
        pair = {"id": "a", "reference": str(TASK), "candidate": str(folder / "answer.py")}
        (folder / "pairs.jsonl").write_text(json.dumps(pair) + "\n")
        for words in (
            ["trace", "{good}", "-o", "{trace}"],
            ["lower", "{good}", "-o", "{answer}"],
            PRINT["skills add"],
            ["optimize", "{good}", "-o", "{out}", "--first", "--proposers", "compiler", "--device", "cpu",
             "--store", "{store}"],
        ):  # fmt: skip
            done = run(cls.words(words), env=cls.environment)
            assert done.returncode == 0, (words, done.stderr)
        (folder / "out").unlink()

    @classmethod
    def words(cls, words, given=None):
        filled = [w.format(**cls.names) if isinstance(w, str) else str(w) for w in words]
        return [NEREID, *(given if word == "X" else word for word in filled)]

    def cleared(self):
        """Removes what a command made; its names."""
        made = [path for path in self.folder.iterdir() if path.name.startswith("out")]
        for path in made:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return [path.name for path in made]


class Commands(unittest.TestCase):
    def test_every_command_is_in_a_table(self):
        tables = (PRINT, PRINT_SLOWLY, FILES, FOLDERS, STORES, FULL, FULL_SLOWLY, LONG, LONG_SLOWLY)
        tried = [list(map(str, words)) for table in tables for words in table.values()]

        def commands(*above):
            text = run([NEREID, *above, "--help"]).stdout
            listed = text[: text.index("Exit codes")] if not above else text.partition("Subcommands:\n")[2]
            listed = listed.partition("\n\nA ")[0] if above else listed
            return re.findall(r"(?m)^  ([a-z][a-z-]+)  +\S", listed)

        found = [[name] for name in commands()]
        for group in ("train", "runs", "store", "skills"):
            found.remove([group])
            found += [[group, name] for name in commands(group)]
        self.assertGreater(len(found), 35, found)
        missing = [name for name in found if not any(words[: len(name)] == name for words in tried)]
        self.assertEqual(missing, [])


class Output(Case):
    def shell(self, words, redirected):
        line = f"{shlex.join(self.words(words))} {redirected}"
        return run(["bash", "-c", line], env=self.environment, cwd=self.folder)

    def test_stdout_that_cannot_be_written(self):
        for name, words in slowly(PRINT, PRINT_SLOWLY).items():
            for redirected, reason in ((">/dev/full", "No space left"), (">&-", "Bad file descriptor")):
                with self.subTest(name, redirected=redirected):
                    done = self.shell(words, redirected)
                    self.assertEqual(done.returncode, 3, done.stderr)
                    self.assertIn(f"stdout: {reason}", done.stderr)
            with self.subTest(name, redirected="| true"):
                done = self.shell(words, "| true; exit ${PIPESTATUS[0]}")
                self.assertIn(done.returncode, (0, 130), done.stderr)
                self.assertNotIn("Traceback", done.stderr)
            self.cleared()

    def test_messages_that_cannot_be_written_change_nothing(self):
        for name, words in slowly(PRINT, PRINT_SLOWLY).items():
            for redirected in ("2>/dev/full", "2>&-"):
                with self.subTest(name, redirected=redirected):
                    want, got = self.shell(words, "2>/dev/null"), self.shell(words, redirected)
                    self.assertEqual((got.returncode, bool(got.stdout)), (want.returncode, bool(want.stdout)))
            self.cleared()
        self.assertEqual(self.shell(["lower", "/no/such/file.py"], "2>/dev/full").returncode, 2)

    def test_a_closed_stream_is_no_file_of_ours(self):
        for closed in (">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
            with self.subTest(closed):
                self.shell(FULL["tokenize"][:-1] + ["{out}"], closed)
                self.assertEqual(len(json.loads((self.folder / "out").read_text())["model"]["vocab"]), 300)
                done = self.shell(["synth", "--operators", "1", "--count", "9", "-o", "{out}.jsonl"], closed)
                self.assertEqual(done.returncode, 0)
                for line in (self.folder / "out.jsonl").read_text().splitlines():
                    json.loads(line)
            self.cleared()


class Input(Case):
    # What is no error of the input's, or is reported elsewhere: a candidate's fault is a verdict, a batch's
    # is in its answers, a format's folder may hold nothing of that format.
    OTHERWISE = {("verify candidate", "long"): 1, ("import", "folder"): 1, ("import", "long"): 1}

    def setUp(self):
        self.bad = self.folder / "bad"
        shutil.rmtree(self.bad, ignore_errors=True)
        self.bad.mkdir()
        (self.bad / "empty").write_text("")
        (self.bad / "folder").mkdir()
        with open(self.bad / "long", "w") as file:
            file.truncate(3 << 30)
        for name in ("unreadable", "closed"):
            (self.bad / name).write_text("x") if name == "unreadable" else (self.bad / name).mkdir()
            os.chmod(self.bad / name, 0)
        if os.geteuid() == 0:  # root reads what it may not, but for files of others without its capabilities
            for name in ("unreadable", "closed"):
                os.chown(self.bad / name, 65534, 65534)

    def tearDown(self):
        os.chmod(self.bad / "closed", 0o700)

    def given(self, words, kind):
        command = self.words(words, str(self.bad / kind))
        if kind in ("unreadable", "closed") and os.geteuid() == 0:
            command = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", *command]
        began = time.monotonic()
        done = run(command, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL)
        return done, time.monotonic() - began

    def test_inputs_that_cannot_be_read(self):
        more = ("unreadable", "long") if ALL else ()
        for table, kinds in ((FILES, ("missing", "folder", *more)),
            (FOLDERS, ("missing", "empty", *(("closed",) if ALL else ())))):  # fmt: skip
            for name, words in table.items():
                for kind in kinds:
                    with self.subTest(name, kind=kind):
                        done, seconds = self.given(words, kind)
                        code = self.OTHERWISE.get((name, kind), 2)
                        self.assertEqual(done.returncode, code, done.stderr)
                        most = 3 * SECONDS if name == "verify --batch" else SECONDS
                        self.assertTrue(processes.soon_enough(seconds, most), seconds)
                        self.assertNotIn("Traceback", done.stderr)
                        made = self.cleared()
                        if code == 2 and (name, kind) != ("verify --batch", "long"):
                            self.assertIn(kind, done.stderr)
                            if (name, kind) != ("train data", "long"):
                                self.assertEqual(made, [])

    @unittest.skipUnless(ALL, "starts tracers (--all)")
    def test_an_empty_file_is_never_our_error(self):
        for name, words in FILES.items():
            with self.subTest(name):
                done, _ = self.given(words, "empty")
                self.assertIn(done.returncode, (0, 1, 2), done.stderr)
                self.assertNotIn("Traceback", done.stderr)
            self.cleared()

    def test_a_store_is_a_database_or_begins_as_one(self):
        for name, words in STORES.items():
            with self.subTest(name):
                for kind in ("folder", "unreadable", "long"):
                    done, _ = self.given(words, kind)
                    self.assertEqual(done.returncode, 2, (kind, done.stderr))
                    self.assertIn(kind, done.stderr)
                done, _ = self.given(words, "missing")
                self.assertIn(done.returncode, (0, 1, 2), done.stderr)
            self.cleared()

    def test_names_that_are_no_utf8(self):
        name = os.fsdecode(os.fsencode(self.folder) + b"/out-\xff\xfe.py")
        shutil.copy(TASK, name)
        for words in (
            ["tokenize", "-t", SMALL / "tokenizer.json", "X"],
            ["lower", "X"],
            ["trace", "X", "--json"],
            ["verify", "X", "{answer}", "--device", "cpu", "--trials", "1", "--json"],
        ):
            with self.subTest(words[0]):
                done = run(self.words(words, name), env=self.environment)
                self.assertEqual(done.returncode, 0, done.stderr)
        self.cleared()


class Disk(Case):
    def test_a_full_disk_is_an_error_and_leaves_no_half(self):
        disk = self.folder / "disk"
        mount = f"mount -t tmpfs -o size=64k none {disk}"
        if run(["unshare", "-rm", "bash", "-c", mount]).returncode != 0:
            self.skipTest("no file system can be mounted here")
        for name, words in slowly(FULL, FULL_SLOWLY).items():
            with self.subTest(name):
                command = shlex.join(self.words(words))
                line = (
                    f"{mount} && {{ head -c 100000 /dev/zero > {disk}/filled; }} 2> /dev/null; {command};"
                    f" code=$?; find {disk} -type f -size +0 ! -name filled; exit $code"
                )
                done = run(["unshare", "-rm", "bash", "-c", line], env=self.environment, cwd=self.folder)
                self.assertIn(done.returncode, (2, 3), done.stdout + done.stderr)
                self.assertRegex(done.stderr, "No space left|full|disk I/O")
                self.assertNotIn("Traceback", done.stderr)
                self.assertNotIn(str(disk), done.stdout)


class Interrupt(Case):
    def test_ctrl_c_ends_it_within_seconds_and_leaves_nothing(self):
        scratch = self.folder / "scratch"
        environment = {**self.environment, "TMPDIR": str(scratch)}
        del environment["NEREID_KEEP_WARM"]
        for name, words in slowly(LONG, LONG_SLOWLY).items():
            for delay in (0.05, 0.4, 1.5, 4) if ALL else (0.4,):
                with self.subTest(name, delay=delay):
                    scratch.mkdir()
                    process = subprocess.Popen(
                        self.words(words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                        env=environment, cwd=self.folder, start_new_session=True,
                    )  # fmt: skip
                    time.sleep(delay)
                    ended = process.poll() is not None
                    process.send_signal(signal.SIGINT)
                    began = time.monotonic()
                    _, errors = process.communicate(timeout=1200)  # until none of its processes holds stderr
                    self.assertTrue(processes.soon_enough(time.monotonic() - began, SECONDS))
                    # Before main it is the signal itself, which a shell counts as 130, too.
                    if not ended and name not in (
                        "optimize",
                        "doctor",
                        "lower",
                        "trace",
                    ):  # may have just ended
                        self.assertIn(process.returncode, (130, -signal.SIGINT), errors)
                    self.assertNotIn("Traceback", errors)
                    self.assertEqual([path.name for path in scratch.rglob("*")], [])
                    self.assertEqual(
                        [path.name for path in self.folder.rglob("*.tmp") if "out" not in str(path)], []
                    )
                    scratch.rmdir()
                self.cleared()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + [word for word in sys.argv[2:] if word != "--all"])
