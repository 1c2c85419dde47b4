"""bench/small_model/evaluate.py with a command in nereid's place that follows a script: shares, times and comparisons are what they should be."""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Tasks are numbers; the model's answer to task 2 is wrong, and to task 3 the GPU finds a fault. Its times are 1 ms, the compiler's 2 and 0.5 in turn.
COMMAND = '''
import json, sys
command, rest = sys.argv[1], sys.argv[2:]
told = {a: b for a, b in zip(rest, rest[1:])}
if command == "synth":
    open(told["-o"], "w").writelines(json.dumps({"code": f"task {i}"}) + "\\n" for i in range(int(told["--count"])))
elif command == "lower":
    open(told["-o"], "w").write("compiled " + open(rest[0]).read())
elif command == "generate":
    for i, line in enumerate(open(told["--prompts"])):
        task = json.loads(line)["messages"][-1]["content"]
        for sample in range(int(told["-n"])):
            print(json.dumps({"index": i, "sample": sample, "text": f"answer to {task}", "tokens": [1, 2], "finish_reason": "end"}))
elif command == "verify":
    with open(told["-o"], "w") as out:
        for line in open(told["--batch"]):
            pair = json.loads(line)
            number, timed = int(pair["reference_source"].split()[1]), "--time-only" in rest
            own = pair["candidate_source"].startswith("answer")
            word = "Mismatch" if own and number == 2 else "Unsafe" if own and number == 3 and timed else "Verified"
            assert not timed or pair["trace"] == pair["candidate_source"]
            ms = 1 if own else (2, 0.5)[number % 2]
            out.write(json.dumps({"id": pair["id"], "verdict": word, "rule": None, "reason": "so", "trace": pair["candidate_source"],
                                  "times": {"candidate_ms": ms, "reference_ms": 4} if timed and word == "Verified" else None}) + "\\n")
'''

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "nereid.py").write_text(COMMAND)

    def evaluated(out, *options, command="nereid.py"):
        done = subprocess.run([sys.executable, ROOT / "bench/small_model/evaluate.py", "model", folder / out, "--levels", "1,5", "--count", "8", "--tasks", folder / "tasks",
                               "--device", "cuda", *map(str, options)], capture_output=True, text=True, env={**os.environ, "NEREID": f"{sys.executable} {folder / command}"})
        assert done.returncode == 0, done.stderr
        return json.loads((folder / out / "summary.json").read_text()), done.stdout

    summary, text = evaluated("before", "--samples", 3)
    for way, samples in (("greedy", 1), ("drawn", 3)):
        one, whole = summary[way]["5"], summary[way]["all"]
        assert one["samples"] == 8 * samples and one["verdicts"] == {"Verified": 6 * samples, "Mismatch": samples, "Unsafe": samples}, one
        assert one["verified"] == 0.75 and one["verified_interval"][0] < 0.75 < one["verified_interval"][1] and one["compiler_verified"] == 1, one
        assert whole["samples"] == 16 * samples and whole["tasks_with_a_verified_answer"] == 12, whole
        assert math.isclose(one["over_eager"]["geomean"], 4) and one["over_eager"]["tasks"] == 6, one
        # Of tasks 0, 1, 4, 5, 6, 7 the compiler is slower at the even ones and faster at the odd ones.
        assert math.isclose(one["over_compiler"]["geomean"], 1) and one["faster_than_compiler"] == 0.5, one
        assert one["over_compiler"]["interval"][0] < 1 < one["over_compiler"]["interval"][1], one
    assert "greedy, level 1: 75.0% of 8 Verified" in text and "over eager 4.000 [4.000, 4.000]" in text, text
    # Of what was broken off nothing is made again that is there: this command can only judge.
    (folder / "judge.py").write_text(COMMAND.replace("import json, sys", "import json, sys\nassert sys.argv[1] == 'verify'"))
    for lost in ("results.jsonl", "summary.json", "cuda.verdicts.jsonl"):
        (folder / "before" / lost).unlink()
    assert evaluated("before", "--samples", 3, "--go-on", command="judge.py") == (summary, text)
    # Beside results that took twice as long on the tasks that both have.
    rows = [json.loads(line) for line in open(folder / "before/results.jsonl")]
    (folder / "slow.jsonl").write_text("".join(json.dumps({**row, "ms": 2 * row["ms"]} if "ms" in row else row) + "\n" for row in rows if row["task"] != "L5_0007"))
    summary, _ = evaluated("after", "--beside", folder / "slow.jsonl")
    assert math.isclose(summary["greedy"]["5"]["over_other"]["geomean"], 2) and summary["greedy"]["5"]["over_other"]["tasks"] == 5, summary
print("shares, times and comparisons are as they should be")
