"""Tables of bench/suite: shares are of all tasks, means of what was measured. Tasks of the families suite
run.

tests/suite_table_test.py
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SUITE = pathlib.Path(__file__).resolve().parent.parent / "bench" / "suite"
TABLE = SUITE / "table.py"


def result(name, speedup=None, compiled=None, verdict="Verified"):
    return {"id": name, "verdict": verdict, "reason": "why", "speedup": speedup, "speedup_compile": compiled}


class Table(unittest.TestCase):
    def table(self, names, file, text):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for name in names:
                (folder / f"{name}.py").touch()
            (folder / file).write_text(text)
            return subprocess.run(
                [sys.executable, TABLE, folder, folder / file], capture_output=True, text=True, check=True
            ).stdout

    def test_of_an_evaluation_with_baselines(self):
        results = [
            result("L1_0", 4, 2),
            result("L1_1", 1, 0.5),
            result("L1_2", 0.5),
            result("L1_3", verdict="Mismatch"),
            result("gru", 2, 1.1),
        ]
        text = self.table([r["id"] for r in results], "summary.json", json.dumps({"results": results}))
        first, second, rest = text.split("\n\n")
        self.assertEqual(
            [line.split() for line in first.splitlines()[1:]],
            [["L1", "4", "75.0%", "25.0%", "1.26"], ["real", "1", "100.0%", "100.0%", "2.00"]],
        )
        self.assertEqual(
            [line.split() for line in second.splitlines()[2:]],
            [
                ["L1", "2", "25.0%", "25.0%", "25.0%", "0.0%", "1.00"],
                ["real", "1", "100.0%", "100.0%", "0.0%", "0.0%", "1.10"],
            ],
        )
        self.assertEqual([line.split()[0] for line in rest.splitlines()], ["L1_3", "L1_2", "L1_1"])

    def test_of_a_batch_of_verdicts(self):
        lines = [
            {"id": "L5_0", "verdict": "Verified", "times": {"speedup": 3}},
            {"id": "L5_1", "verdict": "Unsafe", "reason": "why"},
        ]
        text = self.table(
            ["L5_0", "L5_1"], "verdicts.jsonl", "".join(json.dumps(line) + "\n" for line in lines)
        )
        self.assertEqual(text.splitlines()[1].split(), ["L5", "2", "50.0%", "50.0%", "3.00"])
        self.assertNotIn("Inductor", text)


class Families(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.tasks = pathlib.Path(self.folder.name) / "tasks"
        program = [sys.executable, SUITE / "families" / "tasks.py", self.tasks, "--scale", "small"]
        subprocess.run(program, check=True)

    def test_tasks_run(self):
        import torch

        names = [json.loads(line)["task"] for line in (self.tasks / "index.jsonl").read_text().splitlines()]
        self.assertEqual(sorted(names), sorted(path.stem for path in self.tasks.glob("*.py")))
        for name in names:
            with self.subTest(name), torch.no_grad():
                scope = {"__name__": name}
                exec((self.tasks / f"{name}.py").read_text(), scope)
                model = scope["Model"](*scope["get_init_inputs"]())
                result = model(*scope["get_inputs"]())
                first = result[0] if isinstance(result, tuple) else result
                self.assertTrue(torch.isfinite(first).all())

    def test_table(self):
        lines = [
            {"id": "scan_cumsum_long", "verdict": "Verified", "candidate_ms": 2.0, "reference_ms": 3.0},
            {"id": "scan_cumsum_long", "verdict": "Verified", "candidate_ms": 2.0, "reference_ms": 4.0,
             "roofline": 0.5},
            {"id": "scan_cumprod_rows", "verdict": "Mismatch", "reason": "values:\nwrong"},
        ]  # fmt: skip
        results = pathlib.Path(self.folder.name) / "results.jsonl"
        results.write_text("".join(json.dumps(line) + "\n" for line in lines))
        table = subprocess.run(
            [sys.executable, SUITE / "families" / "table.py", self.tasks, results],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        rows = [line.split() for line in table.splitlines()]
        self.assertIn(["scan", "scan_cumsum_long", "Verified", "2.000", "4.000", "2.00", "50%", "-"], rows)
        self.assertIn(["scan", "4", "1", "1", "2.00", "50%", "-"], rows)
        self.assertIn("scan_cumprod_rows: Mismatch: values: wrong", table)
        self.assertIn("not judged", table)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
