"""bench/small_model/evaluate.py with a command in nereid's place that follows a script: shares, times and
comparisons are what they should be."""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Tasks are numbers; the model's answer to task 2 is wrong, and to task 3 the GPU finds a fault. Its times are
# 1 ms, the compiler's 2 and 0.5 in turn.
COMMAND = """
import json, os, sys
command, rest = sys.argv[1], sys.argv[2:]
options = {a: b for a, b in zip(rest, rest[1:])}
if command == "synth":
    assert "--forward" in rest
    large = " large" * ("--min-bytes" in options)
    tasks = [{"code": f"task {i}" + large, "forward": f"#1 relu(x{i})\\n" * (i != 1)}
             for i in range(int(options["--count"]))]
    open(options["-o"], "w").writelines(json.dumps(task) + "\\n" for task in tasks)
elif command == "lower":
    open(options["-o"], "w").write("compiled " + open(rest[0]).read())
elif command == "tokenize":
    for text in open(rest[-1]).read().split("\\0")[:-1]:
        print(json.dumps({"tokens": 13 if "task 7" in text else 12}))
elif command == "generate":
    for i, line in enumerate(open(options["--prompts"])):
        task, *turns = [message["content"] for message in json.loads(line)["messages"]]
        if turns:
            assert turns[0] == f"answer to {task}" and f"evidence for {turns[-2]}" in turns[-1], turns
        for sample in range(int(options["-n"])):
            text = f"repaired by turn {len(turns)}: {task}" if turns else f"answer to {task}"
            print(json.dumps({"index": i, "sample": sample, "text": text, "tokens": [1, 2],
                              "finish_reason": "end"}))
elif command == "verify":
    with open(options["-o"], "w") as out:
        for line in open(options["--batch"]):
            pair = json.loads(line)
            number, timed = int(pair["reference_source"].split()[1]), "--time-only" in rest
            own = pair["candidate_source"].startswith("answer")
            word = "Mismatch" if own and number == 2 else "Verified"
            if own and number == 3 and timed:
                word = "Unsafe"
            if not pair["candidate_source"]:
                word = "Malformed"
            if pair["candidate_source"].startswith("repaired"):
                word = "Verified" if number == 2 and " 4: " in pair["candidate_source"] else "Mismatch"
            assert not timed or pair["trace"] == pair["candidate_source"]
            large = pair["reference_source"].endswith("large")
            assert timed or ("--fast-inputs" in rest) == large
            ms = 0.5 if own and large else 1 if own else (2, 0.5)[number % 2]
            times = {"candidate_ms": ms, "reference_ms": 4} if timed and word == "Verified" else None
            out.write(json.dumps({"id": pair["id"], "gpu": os.environ.get("CUDA_VISIBLE_DEVICES"),
                                  "verdict": word, "rule": None, "reason": "so",
                                  "feedback": "evidence for " + pair["candidate_source"],
                                  "trace": pair["candidate_source"], "times": times}) + "\\n")
"""

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "nereid.py").write_text(COMMAND)

    def evaluated(out, *options, command="nereid.py", model="model"):
        done = subprocess.run(
            [
                sys.executable,
                ROOT / "bench/small_model/evaluate.py",
                model,
                folder / out,
                "--operators",
                "1,5",
                "--count",
                "8",
                "--tasks",
                folder / "tasks",
                "--device",
                "cuda",
                *map(str, options),
            ],
            capture_output=True,
            text=True,
            env={**os.environ, "NEREID": f"{sys.executable} {folder / command}"},
        )
        assert done.returncode == 0, done.stderr
        return json.loads((folder / out / "summary.json").read_text()), done.stdout

    # Task 2 is right in its third turn, task 3 never; drawn samples are wrong where the greedy one is.
    summary, text = evaluated("repair", "--turns", 3, "--samples", 2)
    repair = summary["repair"]
    assert (repair["wrong_first"], repair["right_after_turns"], repair["right_by_samples"]) == (
        4,
        2,
        0,
    ), repair
    assert "of 4 tasks with a wrong greedy answer 2 are right after 3 turns, 0 in one of 2 drawn" in text, (
        text
    )
    turns = [
        (row["task"], row["sample"], row["verdict"])
        for row in map(json.loads, open(folder / "repair/results.jsonl"))
        if row["sample"].startswith("turn") and row["level"] == "1"
    ]
    assert turns == [
        ("L1_0002", "turn2", "Mismatch"),
        ("L1_0003", "turn2", "Mismatch"),
        ("L1_0002", "turn3", "Verified"),
        ("L1_0003", "turn3", "Mismatch"),
    ], turns

    # A prompt that leaves no room in the context has an empty answer.
    (folder / "short").mkdir()
    (folder / "short/config.json").write_text('{"max_position_embeddings": 276}')
    (folder / "short/tokenizer.json").write_text("{}")
    summary, _ = evaluated("short-context", model=folder / "short")
    answers = [json.loads(line) for line in open(folder / "short-context/greedy.jsonl")]
    empty = sorted(answer["index"] for answer in answers if not answer["text"])
    assert len(answers) == 16 and empty == [7, 15], answers
    assert summary["greedy"]["all"]["verdicts"]["Malformed"] == 2, summary

    # A wrong answer, its evidence and the right one are a line of training data; right answers give none.
    pairs = [
        {"id": f"p{i}", "split": "train", "task": f"task {i}", "plan": f"plan {i}\n", "code": f"code {i}\n"}
        for i in range(4)
    ]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in [*pairs, pairs[2]]))
    subprocess.run(
        [sys.executable, ROOT / "bench/small_model/repair_data.py", "model", "pairs.jsonl", "repair.jsonl"],
        check=True,
        cwd=folder,
        env={**os.environ, "NEREID": f"{sys.executable} {folder / 'nereid.py'}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    (line,) = map(json.loads, open(folder / "repair.jsonl"))  # greedy and drawn answers are equal: one line
    asked, wrong, repair, right = line["messages"]
    assert (line["id"], line["split"], line["wrong"]) == ("p2", "train", "Mismatch"), line
    assert (asked["content"], wrong["content"]) == ("task 2", "answer to task 2"), line
    asks = (
        ROOT / "python/nereid/prompts/repair.md"
    ).read_text()  # as Prompts::repair_messages has it, to the last byte
    evidence = repair["content"][asks.index("{{") : len(repair["content"]) - len(asks.split("}}")[1])]
    assert repair == {"role": "user", "content": asks.replace("{{evidence}}", evidence)}, repair
    assert "evidence for answer to task 2" in evidence, repair
    assert right["content"] == "<think>\nplan 2\n</think>\n\n```python\ncode 2\n```", right

    summary, text = evaluated("before", "--samples", 3)
    for way, samples in (("greedy", 1), ("drawn", 3)):
        one, whole = summary[way]["5"], summary[way]["all"]
        assert one["samples"] == 8 * samples and one["verdicts"] == {
            "Verified": 6 * samples,
            "Mismatch": samples,
            "Unsafe": samples,
        }, one
        assert (
            one["verified"] == 0.75
            and one["verified_interval"][0] < 0.75 < one["verified_interval"][1]
            and one["compiler_verified"] == 1
        ), one
        assert whole["samples"] == 16 * samples and whole["tasks_with_a_verified_answer"] == 12, whole
        assert math.isclose(one["over_eager"]["geomean"], 4) and one["over_eager"]["tasks"] == 6, one
        # Of tasks 0, 1, 4, 5, 6, 7 the compiler is slower at the even ones and faster at the odd ones.
        assert math.isclose(one["over_compiler"]["geomean"], 1) and one["faster_than_compiler"] == 0.5, one
        assert one["over_compiler"]["interval"][0] < 1 < one["over_compiler"]["interval"][1], one
    assert "greedy, operators=1: 75.0% of 8 Verified" in text and "over eager 4.000 [4.000, 4.000]" in text, (
        text
    )
    # Of two GPUs each answers and times every other task; the times are of the GPU that the environment says.
    several, printed = evaluated("two", "--samples", 3, "--gpus", 2)
    assert (several, printed) == (summary, text), printed
    parts = [
        [json.loads(line) for line in open(folder / "two" / f"cuda-{gpu}.pairs.jsonl")] for gpu in range(2)
    ]
    timed = [{pair["id"].split(".")[0] for pair in of} for of in parts]
    assert timed[0] and timed[1] and not timed[0] & timed[1], timed
    assert {line["gpu"] for line in map(json.loads, open(folder / "two/cuda-1.verdicts.jsonl"))} == {"1"}
    # Of what was interrupted nothing is made again that is there: this command can only judge.
    (folder / "judge.py").write_text(
        COMMAND.replace("import json, os, sys", "import json, os, sys\nassert sys.argv[1] == 'verify'")
    )
    for lost in ("results.jsonl", "summary.json", "cuda.verdicts.jsonl"):
        (folder / "before" / lost).unlink()
    assert evaluated("before", "--samples", 3, "--go-on", command="judge.py") == (summary, text)
    # Of drawn answers only a CPU's verdict: task 3's fault is seen at its greedy answer alone.
    some, text = evaluated("greedy", "--samples", 3, "--greedy-times")
    assert (
        some["greedy"] == summary["greedy"]
        and some["drawn"]["5"]["verdicts"] == {"Verified": 21, "Mismatch": 3}
        and some["drawn"]["5"]["over_eager"] is None
    ), some["drawn"]["5"]
    assert all(
        ("ms" in row) == (row["verdict"] == "Verified" and not row["sample"].startswith("drawn"))
        for row in map(json.loads, open(folder / "greedy/results.jsonl"))
    )
    assert "drawn, operators=5: 87.5% of 24 Verified" in text and text.count("over eager") == 3, text
    # With a prefill.md responses are prefilled with the trace summary where there is one, which is part of
    # answers.
    (folder / "prefilled/prompts").mkdir(parents=True)
    for part, text in (("system", ""), ("task", "{{source}}"), ("prefill", "<think>\n{{steps}}\n")):
        (folder / f"prefilled/prompts/{part}.md").write_text(text)
    evaluated("prefilled", model=folder / "prefilled")
    asked, said = (
        [json.loads(line) for line in open(folder / "prefilled" / f"{kind}.jsonl")]
        for kind in ("prompts", "greedy")
    )
    assert [one.get("prefill") for one in asked[:3]] == [
        "<think>\n#1 relu(x0)",
        None,
        "<think>\n#1 relu(x2)",
    ], asked
    assert [one["text"] for one in said[:3]] == [
        "\n#1 relu(x0)answer to task 0",
        "answer to task 1",
        "\n#1 relu(x2)answer to task 2",
    ], said
    from_text, _ = evaluated("from_text", "--from-text", model=folder / "prefilled")
    assert not any("prefill" in json.loads(line) for line in open(folder / "from_text/prompts.jsonl"))
    evaluated("fused", "--kind", "Fused", model=folder / "prefilled")
    asked = [json.loads(line) for line in open(folder / "fused/prompts.jsonl")]
    assert [one.get("prefill") for one in asked[:2]] == ["<think>\n#1 relu(x0)\nFused:", None], asked
    assert {**from_text, "model": ""} == {**evaluated("text")[0], "model": ""}
    # Large tasks besides: their figures are apart, and those of the small ones are as they were.
    both, text = evaluated("large", "--samples", 3, "--large", 4)
    assert [both[way] for way in ("greedy", "drawn")] == [summary[way] for way in ("greedy", "drawn")]
    for way, samples in (("greedy", 1), ("drawn", 3)):
        one = both[f"{way}, large"]["5"]
        assert one["samples"] == 4 * samples and one["verdicts"] == {
            "Verified": 2 * samples,
            "Mismatch": samples,
            "Unsafe": samples,
        }, one
        assert math.isclose(one["over_eager"]["geomean"], 8) and math.isclose(
            one["over_compiler"]["geomean"], 2
        ), one
        assert (
            both[f"{way}, both sizes"]["all"]["samples"] == 24 * samples
            and both[f"{way}, both sizes"]["all"]["tasks_with_a_verified_answer"] == 16
        )
    assert "greedy, large, operators=5: 50.0% of 4 Verified" in text and "drawn, both sizes, all: " in text, (
        text
    )
    done = subprocess.run(
        [sys.executable, ROOT / "bench/small_model/choices.py", folder / "large"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert [line.split(",")[0] for line in done.splitlines()] == [
        "operators=1",
        "operators=1",
        "operators=5",
        "operators=5",
        "all",
    ] and "operators=5, large, 4 groups: " in done, done
    # Against results that took twice as long on the tasks that both have.
    rows = [{**json.loads(line), "program": None} for line in open(folder / "before/results.jsonl")]
    (folder / "slow.jsonl").write_text(
        "".join(
            json.dumps({**row, "ms": 2 * row["ms"]} if "ms" in row else row) + "\n"
            for row in rows
            if row["task"] != "L5_0007"
        )
    )
    summary, _ = evaluated("after", "--against", folder / "slow.jsonl")
    assert (
        math.isclose(summary["greedy"]["5"]["over_other"]["geomean"], 2)
        and summary["greedy"]["5"]["over_other"]["tasks"] == 5
    ), summary
    # By hand: of tasks 0 to 6 of level 5 task 2 is wrong in both and 3 a fault in both; eager takes 4 ms, the
    # answers 1 and were 2.
    one = summary["against"]["operators=5"]
    assert (
        one["tasks"] == 7
        and one["verified"] == [5, 5]
        and one["lost"] == one["won"] == 0
        and one["both"] == 5
        and one["all"] == 7
    ), one
    for figure, mean in (("both_verified", 2), ("all_wrong_as_eager", 2 ** (5 / 7))):
        assert math.isclose(one[figure][0], mean) and one[figure][1] <= mean <= one[figure][2] + 1e-12, one
    # What is lost and won: before, half as fast but right at tasks 2 and 3, without 0, 1 and 4; task 6 has an
    # Error, and 5 was never timed.
    old = [row for row in rows if row["level"] == "5"]

    def changed(row):
        number, own = int(row["task"][-4:]), row["sample"] == "greedy"
        if own and number in (2, 3):
            return {**row, "verdict": "Verified", "ms": 2, "reference_ms": 4}
        if own and number in (0, 1, 4, 6):
            return {
                "task": row["task"],
                "level": "5",
                "sample": "greedy",
                "verdict": "Error" if number == 6 else "Mismatch",
            }
        return {**row, "ms": None} if own and number == 5 else {**row, "ms": 2 * row["ms"]} if own else row

    (folder / "changed").mkdir()
    (folder / "changed/results.jsonl").write_text("".join(json.dumps(changed(row)) + "\n" for row in old))

    def compared(*arguments, code=0):
        done = subprocess.run(
            [sys.executable, ROOT / "bench/small_model/compare.py", *map(str, arguments)],
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, (arguments, done.stderr)
        return done.stdout, done.stderr

    one = json.loads(compared(folder / "changed", folder / "before", "--json")[0])["all"]
    assert (one["tasks"], one["errors"], one["verified"], one["lost"], one["won"], one["both"]) == (
        7,
        1,
        [4, 5],
        2,
        3,
        1,
    ), one
    # Logarithms of 2 over 4 at 7; of 4 over 1 at 0, 1 and 4; of 1 over 2 at 2 and 3; 5 is left out.
    assert (
        math.isclose(one["both_verified"][0], 2)
        and one["all"] == 6
        and math.isclose(one["all_wrong_as_eager"][0], 2 ** ((1 + 3 * 2 - 2) / 6))
    ), one
    # The compiler takes 2 ms at even ones and 0.5 at odd ones: before none is faster (2 ms is not, nor what
    # was not timed), after 0 and 4 are.
    assert (
        one["compared_with_compiler"] == 7
        and one["faster_than_compiler"] == [0, 2 / 7]
        and math.isclose(one["faster_points"][0], 200 / 7)
    ), one
    # One program has one speed, whatever wrote it, and so has the compiler's choice: where all are the same
    # nothing is faster.
    for name, program in (("same", "p"), ("others", "q")):
        (folder / name).mkdir()
        (folder / name / "results.jsonl").write_text(
            "".join(
                json.dumps({**row, "program": program, **({"ms": 4 * row["ms"]} if "ms" in row else {})})
                + "\n"
                for row in old
            )
        )
    alike = [{**row, "program": "p"} for row in old]
    (folder / "same.jsonl").write_text("".join(json.dumps(row) + "\n" for row in alike))
    one = json.loads(compared(folder / "same.jsonl", folder / "same", "--json")[0])["all"]
    assert (
        one["both"] > 0
        and math.isclose(one["both_verified"][0], 1)
        and one["faster_than_compiler"][0] == one["faster_than_compiler"][1] > 0
    ), one
    apart = json.loads(compared(folder / "same.jsonl", folder / "same", "--json")[0])["clocks_apart"]
    assert (
        apart["answers"]["pairs"] == one["both"]
        and math.isclose(apart["answers"]["median"], 3)
        and math.isclose(apart["compiler"]["one_of_ten"], 3)
    ), apart
    assert (
        f"clocks of one program, answers: {one['both']} pairs, 300.0% apart in the median"
        in compared(folder / "same.jsonl", folder / "same")[0]
    )
    twice = [
        json.loads(compared(folder / "same.jsonl", *after, folder / "same", "--json")[0])
        for after in ((), (folder / "same.jsonl",))
    ]
    assert twice[0]["clocks_apart"] == twice[1]["clocks_apart"] and twice[0]["all"] == twice[1]["all"], twice
    # Another program is four times as slow; of both the fastest is the one there was.
    one = json.loads(compared(folder / "same.jsonl", folder / "others", "--json")[0])["all"]
    assert math.isclose(one["both_verified"][0], 1 / 4), one
    one = json.loads(compared(folder / "same.jsonl", folder / "same", folder / "others", "--json")[0])["all"]
    assert math.isclose(one["both_verified"][0], 1), one
    text, words = compared(folder / "changed", folder / "before")
    assert (
        "all, 7 tasks (1 more have an Error): Verified 57.1% -> 71.4%, +14.3 points [" in text
        and "2 lost, 3 won" in text
        and "8 tasks of" in words
    ), (text, words)
    searched = [
        {"question": "q"},
        {"id": "L5_1", "verdict": "Wrong"},
        *({"id": f"L5_{i}", "verdict": "Verified", "speedup": 3.0} for i in range(3)),
        {"id": "L5_3", "verdict": "Verified", "speedup": None},
    ]
    for folder_, factor in (("one", 1), ("two", 2)):
        (folder / folder_).mkdir(exist_ok=True)
        (folder / folder_ / "results.jsonl").write_text(
            "".join(
                json.dumps({**row, **({"speedup": factor * row["speedup"]} if row.get("speedup") else {})})
                + "\n"
                for row in searched
            )
        )
    one = json.loads(compared(folder / "one", folder / "two", "--json")[0])["all"]
    assert (
        one["verified"] == [4, 4]
        and one["both"] == one["all"] == 3
        and math.isclose(one["both_verified"][0], 2)
        and one["faster_than_compiler"] is None
    ), one
    # Of several the fastest that is right: in three tasks two's, in the fourth neither has a time.
    assert json.loads(compared(folder / "one", folder / "one", folder / "two", "--json")[0])["all"] == {
        **one,
        "compared_with_compiler": 0,
    }, one
    assert "expected what evaluate.py or `nereid eval` left" in compared(folder, folder / "one", code=1)[1]
    assert "got none that both have" in compared(folder / "one", folder / "before", code=1)[1]

    # Pairs of right answers that differ in one cut: 256 by 4 is twice as fast as 512 by 8, however the grid
    # follows; not what has two cuts of its own, or other code.
    def cut(prompt, sample, speedup, *cuts, more=""):
        launches = "".join(
            f"k[(triton.cdiv(96, {block}),)](x, BLOCK={block}, num_warps={warps})\n" for block, warps in cuts
        )
        return {
            "step": 0,
            "class": 0,
            "task": prompt,
            "prompt": prompt,
            "sample": sample,
            "verdict": "Verified",
            "speedup": speedup,
            "answer": f"\nOne by one: k.\n```python\n{launches}{more}```",
        }

    (folder / "cuts").mkdir()
    rows = [
        row
        for prompt in (0, 1)
        for row in (
            cut(prompt, 0, 2, (256, 4)),
            cut(prompt, 1, 1, (512, 8)),
            cut(prompt, 2, 9, (512, 8), more="other"),
            cut(prompt, 3, 3, (256, 4), (256, 4)),
            cut(prompt, 4, 3, (512, 8), (512, 8)),
        )
    ]
    (folder / "cuts/rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = subprocess.run(
        [sys.executable, ROOT / "bench/small_model/choices.py", folder / "cuts", "--cuts", "2"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert (
        "all, 2 groups: 2 pairs\n    BLOCK=256, num_warps=4 over BLOCK=512, num_warps=8: 2.000 +- 0.000 (2"
        " pairs)\n" in done
    ), done

    # Rollouts' choices: fused answers are twice as fast, and one of three is wrong where one by one all are
    # right.
    def rollout(step, prompt, sample, kind, speedup, **more):
        return {
            "step": step,
            "class": 0,
            "task": prompt,
            "prompt": prompt,
            "sample": sample,
            "verdict": "Verified" if speedup else "Mismatch",
            **({"speedup": speedup} if speedup else {}),
            "answer": f"\n{kind}: a kernel.\n```python\n```",
            **more,
        }

    kept = []
    for step, prompt in ((0, 0), (1, 0), (1, 1), (9, 0)):
        same = rollout(step, prompt, 5, "", 1, same_as=3)
        del same["answer"]
        kept += [
            *(
                rollout(step, prompt, i, "Fused", speedup)
                for i, speedup in enumerate((2 + prompt, 2 + prompt, 0))
            ),
            *(rollout(step, prompt, i, "One by one", 1) for i in (3, 4)),
            same,
        ]
    (folder / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))
    done = subprocess.run(
        [sys.executable, ROOT / "bench/small_model/choices.py", folder, "--before", "9"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    first, last = done.splitlines()
    assert first.startswith("class 0, 3 groups: ") and last == first.replace("class 0", "all"), done
    for part in (
        "fused 50% of answers, 66.7% of them Verified; one by one 50% of answers, 100.0% of them Verified",
        f"fused over one by one {12 ** (1 / 3):.3f} (3 groups with both)",
        "apart by more than 5 / 10 / 20 % in 100% / 100% / 100% of groups",
    ):
        assert part in done, (part, done)
    # By hand: with logs l and 0, a mean of 2 l / 5 and a price of p, fused ones are 2 (3 l / 5) - p against 3
    # (-2 l / 5): nothing at p = 12 l / 5.
    assert f"nothing at a price of {12 / 5 * math.log(12) / 3:.2f}" in done, done
    # Of best, whose slow ones weigh nothing: 2 (3 l / 5) - p against 0.
    assert f"nothing at a price of best of {6 / 5 * math.log(12) / 3:.2f}" in done, done
    assert (
        float(done.split("price 0 ")[1].split(",")[0]) > 2 and float(done.split("best ")[1].split(",")[0]) > 2
    ), done
print("shares, times and comparisons are as they should be")
