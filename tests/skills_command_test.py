"""`nereid skills`: files, retrieval, admission, eviction, learning and use, with a model whose answers really
depend on the skills in its prompt (examples/skills/endpoint.py) and the real judge on a CPU.

    skills_command_test.py NEREID
"""

import json
import math
import os
import pathlib
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest

NEREID = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release/bin/nereid").resolve()
EXAMPLE = pathlib.Path(__file__).resolve().parents[1] / "examples" / "skills"
sys.dont_write_bytecode = True
sys.path.insert(0, str(EXAMPLE))
import endpoint


class Skills(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server, cls.base = endpoint.started()

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.library = self.folder / "data" / "nereid" / "skills.db"
        self.environment = {
            **self.base,
            "XDG_DATA_HOME": str(self.folder / "data"),
            "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": "1",
        }
        for name in ("NEREID_SKILLS", "NEREID_STORE"):
            self.environment.pop(name, None)
        endpoint.Endpoint.prompts.clear()
        endpoint.Endpoint.counts.clear()

    def tearDown(self):
        self.temporary.cleanup()

    def nereid(self, *arguments, code=0):
        done = subprocess.run(
            [NEREID, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=1200,
            env=self.environment,
            cwd=self.folder,
        )
        self.assertEqual(done.returncode, code, (arguments, done.stdout, done.stderr))
        return done

    def skills(self, *arguments, code=0):
        done = self.nereid("skills", *arguments, "--json", code=code)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def admit(self, name, *arguments, code=0):
        return self.skills(
            "admit", name, "--tasks", EXAMPLE / "tasks", "--proposer", "http", "--clock", "model", "--device",
            "cpu", "--jobs", 2, *arguments, code=code,
        )[0]  # fmt: skip

    def set_state(self, state):
        base = sqlite3.connect(self.library)
        base.execute("UPDATE skills SET state = ?", (state,))
        base.commit()
        base.close()

    def file(self, name, operators=(), tags=(), when="Always.", text="Do it."):
        path = self.folder / f"{name}.md"
        path.write_text(
            f'+++\nname = "{name}"\noperators = {json.dumps(list(operators))}\ntags ='
            f' {json.dumps(list(tags))}\nwhen = "{when}"\n+++\n{text}\n\n```python\nx = 1\n```\n'
        )
        return path

    def test_files_and_versions(self):
        self.assertEqual(self.nereid("skills").stdout, "")
        added = self.skills("add", EXAMPLE / "fused-chain.md", self.file("other"))
        self.assertEqual([(one["name"], one["version"], one["state"]) for one in added],
                         [("fused-chain", 1, "candidate"), ("other", 1, "candidate")])  # fmt: skip
        again = self.skills("add", EXAMPLE / "fused-chain.md", self.file("other", text="Do it twice."))
        self.assertEqual([one["version"] for one in again], [1, 2])
        self.assertEqual([one["version"] for one in self.skills("list")], [1, 2])
        self.assertEqual(len(self.skills("list", "--all")), 3)
        self.assertEqual(self.skills("show", "other", "--version", 1)[0]["text"], "Do it.")
        shown = self.nereid("skills", "show", "fused-chain").stdout
        self.assertTrue(shown.endswith((EXAMPLE / "fused-chain.md").read_text()), shown)
        self.skills("remove", "other")
        self.assertEqual(self.skills("show", "other")[0]["state"], "removed")
        self.assertIn("removed already", self.nereid("skills", "remove", "other", code=2).stderr)
        self.assertEqual(self.skills("remove", "other", "--purge")[0]["purged"], 2)
        self.assertIn("has no skill 'other'", self.nereid("skills", "show", "other", code=2).stderr)
        self.assertIn(
            "of version 7", self.nereid("skills", "show", "fused-chain", "--version", 7, code=2).stderr
        )

    def test_wrong_files_are_refused_whole(self):
        bad = self.folder / "bad.md"
        for text, expected in [
            ("no front matter", "bad.md:1: expected +++"),
            ('+++\nname = "a"\nwhen = 7\n+++\nx\n```python\nx\n```\n', "bad.md:3: expected when: a text"),
            (
                '+++\nname = "A b"\nwhen = "w"\n+++\nx\n```python\nx\n```\n',
                "bad.md:2: name: expected 1 to 64",
            ),
            (
                '+++\nname = "a"\nwhen = "w"\n+++\nx \x1b]0;y\x07\n```python\nx\n```\n',
                "bad.md:5: expected UTF-8",
            ),
            (
                '+++\nname = "a"\nwhen = "\\u001b[2J"\n+++\nx\n```python\nx\n```\n',
                "bad.md:3: when: expected one",
            ),
        ]:
            bad.write_text(text)
            error = self.nereid("skills", "add", self.file("good"), bad, code=2).stderr
            self.assertIn(expected, error)
            self.assertNotIn("\x1b", error)
        self.assertEqual(self.skills("list"), [])
        (self.folder / "text.db").write_text("no database, but a text of more than a hundred bytes. " * 10)
        self.nereid("skills", "--store", "text.db", code=2)
        self.assertIn("expected a QUERY or --task", self.nereid("skills", "search", code=2).stderr)

    def test_search_is_bm25_of_admitted_skills(self):
        """Against a few lines of Python."""
        rng = random.Random(5)
        vocabulary = ["softmax", "layer_norm", "gelu", "rows", "conv2d", "bf16", "block", "a", "mask", "add"]
        documents = {}
        for i in range(12):
            pick = lambda most: [rng.choice(vocabulary) for _ in range(rng.randint(1, most))]
            operators, tags, when, text = pick(3), pick(2), " ".join(pick(5)), " ".join(pick(30))
            name = f"s{i}-{rng.choice(['softmax', 'gelu', 'x'])}"
            self.skills("add", self.file(name, operators, tags, when, text))
            documents[name] = " ".join([name, when, text, *operators, *tags])

        def words(text):
            found = []
            for run in re.findall(r"[a-z0-9_]+", text.lower()):
                run = run.strip("_")
                found += [run] * bool(run) + ([part for part in run.split("_") if part] if "_" in run else [])
            return found

        texts = {name: words(text) for name, text in documents.items()}
        mean = sum(map(len, texts.values())) / len(texts)

        def bm25(query, words_of):
            score = 0
            for word in set(words(query)):
                holding = sum(word in other for other in texts.values())
                idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
                f = words_of.count(word)
                score += idf * f * 2.5 / (f + 1.5 * (0.25 + 0.75 * len(words_of) / mean))
            return score

        self.assertEqual(self.skills("search", "softmax", code=1)[0]["found"], [])  # candidates alone
        self.set_state("admitted")
        for query in ("softmax over rows", "layer_norm", "norm of bf16, bf16!", "s3 gelu Softmax conv2d"):
            found = self.skills("search", query, "--limit", 50)[0]["found"]
            expected = {name: score for name in texts if (score := bm25(query, texts[name])) > 0}
            self.assertEqual({one["name"] for one in found}, set(expected))
            for one in found:
                self.assertAlmostEqual(one["bm25"], expected[one["name"]], places=9)
            self.assertEqual(
                [one["score"] for one in found], sorted((one["score"] for one in found), reverse=True)
            )
        # A task's query: its operators, their classes, its dtypes.
        found = self.skills("search", "--task", EXAMPLE / "tasks" / "softmax.py")[0]
        self.assertEqual(found["query"], "softmax f32 normalisation")
        self.assertTrue(found["found"])

    def test_admission_measures(self):
        self.skills("add", EXAMPLE / "fused-chain.md", *sorted((EXAMPLE / "planted").iterdir()))
        good = self.admit("fused-chain")
        worth = good["evidence"]["worth"]
        self.assertEqual((good["state"], good["evidence"]["clock"]), ("admitted", "model"))
        # One launch, or two in 2 (four tasks) or 4 (two tasks) of 8 answers, for three launches.
        self.assertAlmostEqual(worth["speedup"], 3 / 2 ** (1 / 3), places=1)
        self.assertLess(worth["speedup_interval"][0], worth["speedup"])
        self.assertGreater(worth["speedup_interval"][0], 1.1)
        # Not the softmax, which is of another kind.
        self.assertEqual((worth["groups"], worth["samples_with"], worth["samples_without"]), (6, 48, 48))
        asked = len(endpoint.Endpoint.prompts)
        self.assertEqual(asked, 96)
        self.assertEqual(self.admit("fused-chain")["state"], "admitted")  # by the same samples
        self.assertEqual(len(endpoint.Endpoint.prompts), asked)

        for name, expected in [("no-effect", "at least 1.2 times as fast, got 1.00"),
                               ("slower", "at least 1.2 times as fast, got 0.6"),
                               ("wrong", "at most 5 points fewer verified answers")]:  # fmt: skip
            bad = self.admit(name, code=1)
            self.assertEqual(bad["state"], "refused", bad)
            self.assertIn(expected, bad["evidence"]["reason"])
            # The same samples without a skill serve all.
            self.assertEqual(bad["evidence"]["worth"]["samples_without"], 48)
        self.assertEqual(len(endpoint.Endpoint.prompts), asked + 3 * 48)
        wrong = self.skills("show", "wrong")[0]["decisions"][0]["evidence"]["worth"]
        self.assertEqual((wrong["verified_with"], wrong["verified_without"]), (0.5, 1))
        self.assertGreater(wrong["speedup"], 2)  # as fast as the good one, and refused
        self.assertEqual(
            [one["name"] for one in self.skills("search", "pointwise")[0]["found"]], ["fused-chain"]
        )

    def test_what_cannot_be_measured(self):
        self.skills("add", EXAMPLE / "fused-chain.md", self.file("conv", ["conv2d"]))
        tasks = ["--tasks", EXAMPLE / "tasks", "--proposer", "http", "--device", "cpu"]
        self.assertIn("--clock measured needs a GPU",
                      self.nereid("skills", "admit", "fused-chain", *tasks, code=2).stderr)  # fmt: skip
        error = self.nereid("skills", "admit", "conv", *tasks, "--clock", "model", code=2).stderr
        self.assertIn("at least 4 held-out tasks with different forwards that use conv2d, got 0", error)
        self.assertEqual(self.skills("show", "conv")[0]["state"], "candidate")
        # An endpoint that is down decides nothing.
        self.environment["NEREID_HTTP_BASE"] = "http://127.0.0.1:1/v1"
        self.environment["NEREID_HTTP_MODEL"] = "other"
        os.environ.pop("OPENAI_BASE_URL", None)
        self.skills("remove", "conv")
        self.assertIn(
            "is removed", self.nereid("skills", "admit", "conv", *tasks, "--clock", "model", code=2).stderr
        )

    def test_capacity_evicts_the_least_worth(self):
        self.skills("add", EXAMPLE / "fused-chain.md", EXAMPLE / "relu-with-offset.md")
        lesser = self.admit("relu-with-offset", "--samples", 2)
        self.assertEqual((lesser["state"], lesser["evicted"]), ("admitted", []))
        better = self.admit("fused-chain", "--samples", 2, "--capacity", 1)
        self.assertEqual([one["name"] for one in better["evicted"]], ["relu-with-offset"])
        self.assertEqual(self.skills("show", "relu-with-offset")[0]["state"], "evicted")
        # The other way round the new one goes.
        lesser = self.admit("relu-with-offset", "--samples", 2, "--capacity", 1, code=1)
        self.assertEqual([one["name"] for one in lesser["evicted"]], ["relu-with-offset"])
        self.assertEqual([one["state"] for one in self.skills("list")], ["admitted", "evicted"])

    def test_learning(self):
        pair = [EXAMPLE / "pair" / f"{name}.py" for name in ("task", "slower", "faster")]
        flags = ["--clock", "model", "--device", "cpu"]
        plain = self.skills("learn", *pair, *flags)[0]
        self.assertEqual(plain["operators"], ["mul", "relu", "add"])
        self.assertIn("Work: 1 launch (fused_kernel); the slower one has 3 launches", plain["text"])
        self.assertIn("fused_kernel", plain["pattern"])
        self.assertTrue(plain["origin"]["modelled"])
        self.assertAlmostEqual(plain["origin"]["speedup"], 3, places=1)
        # The order does not matter, and the same pair is the same skill.
        self.assertEqual(self.skills("learn", pair[0], pair[2], pair[1], *flags)[0]["version"], 1)
        worded = self.skills("learn", *pair, *flags, "--proposer", "http")[0]
        self.assertEqual((worded["name"], worded["operators"]), ("fused-chain", ["mul", "relu", "add"]))
        # It was made from this forward: tasks/renamed.py is not held out.
        admitted = self.admit("fused-chain", "--samples", 2)
        self.assertEqual(admitted["state"], "admitted", admitted)
        self.assertNotIn("renamed.py", [task["name"] for task in admitted["evidence"]["tasks"]])
        self.assertEqual(len(admitted["evidence"]["tasks"]), 5)
        # From answers to the same tasks that the store of results has now.
        stored = self.skills("learn", *flags, "--pairs", 2)
        self.assertEqual(len(stored), 2)
        self.assertGreater(stored[0]["origin"]["speedup"], 2.9)

        wrong = self.folder / "wrong.py"
        wrong.write_text(pair[2].read_text().replace("+ 0.25", "+ 0.5"))
        error = self.nereid("skills", "learn", *pair[:2], wrong, *flags, code=2).stderr
        self.assertIn("wrong.py: expected a verified answer", error)
        error = self.nereid("skills", "learn", *pair[:2], pair[1], *flags, code=2).stderr
        self.assertIn("at least 1.2 times as fast", error)
        self.assertIn(
            "expected TASK, SLOWER and FASTER", self.nereid("skills", "learn", pair[0], code=2).stderr
        )

    def test_use_is_measured(self):
        """The model chooses; a share of samples gets none; what comes of it is kept and makes or ends
        worth."""
        self.skills("add", EXAMPLE / "fused-chain.md", *sorted((EXAMPLE / "planted").iterdir()))
        self.set_state("admitted")  # without being measured: also what is harmful
        task = EXAMPLE / "pair" / "task.py"
        use = ["--proposers", "http", "--skills", "--device", "cpu", "--once", "--json", "--budget", "250s"]
        out = self.nereid("optimize", task, "-o", "out.py", "--samples", 8, *use, "--every-sample").stdout
        result = json.loads(out)
        self.assertEqual(result["verdict"], "Verified")
        variants = [one["variant"] for one in result["tried"]]
        self.assertEqual(sum(one.endswith("without skills") for one in variants), 2)
        chosen = {re.sub(r"^sample \d+ ", "", one) for one in variants if "without" not in one}
        self.assertEqual(len(chosen), 1)
        self.assertRegex(chosen.pop(), r"^with [a-z-]+@1, [a-z-]+@1, [a-z-]+@1$")  # three at most
        asked = [prompt for prompt in endpoint.Endpoint.prompts if "want to read first" in prompt]
        self.assertEqual(len(asked), 1)
        self.assertIn("* fused-chain: Several elementwise operators", asked[0])
        bare = [prompt for prompt in endpoint.Endpoint.prompts if "made other kernels faster" not in prompt]
        self.assertEqual(len(bare), 3)  # two samples and the choice

        # `eval` over the tasks: samples with a harmful skill alone.
        for name in ("fused-chain", "no-effect", "wrong"):
            self.skills("remove", name)
        endpoint.Endpoint.prompts.clear()
        self.nereid("eval", EXAMPLE / "tasks", "-o", "results", "--samples", 4, "--jobs", 2, *use)
        slower = self.skills("show", "slower")[0]
        self.assertEqual(slower["state"], "evicted")
        self.assertIn("0.6", slower["decisions"][0]["evidence"]["reason"])
        self.assertLess(slower["worth"]["speedup_interval"][1], 1)
        error = self.nereid("optimize", task, "-o", "out.py", "--skills", "--device", "cpu", code=2).stderr
        self.assertIn("expected a language model among --proposers", error)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
