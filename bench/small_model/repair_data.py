"""Training data for repair from a model's own failures: its wrong answer, the verdict's evidence, the right
answer.

    python3 bench/small_model/repair_data.py MODEL PAIRS.jsonl OUT.jsonl [--device cuda] [--count 1000]
        [--samples 1]
    nereid train data OUT.jsonl PAIRS.jsonl -o data/repair -t MODEL/tokenizer.json

PAIRS are lines of `nereid synth --pairs` or `nereid train pairs`. The model answers each of --count tasks
from its text alone, greedily and --samples times at --temperature; a CPU judges the answers under `strict`.
Each distinct wrong answer of a task becomes a conversation, a line of `nereid train data`: the question, the
answer, the evidence in the words of the model's repair.md (or the package's), and the pair's own plan and
code. Answers that were cut off are left out: they cannot be continued. WORK (OUT.jsonl.work) keeps answers
and verdicts.
"""

import argparse
import json
import os
import pathlib
import sys

from evaluate import judged, lines, prompts_of, repair_text, write_answers, write_lines


def right_answer(pair):
    """As `nereid train data` writes a pair's answer."""
    plan, code = pair["plan"].rstrip("\n"), pair["code"].rstrip("\n")
    return f"<think>\n{plan}\n</think>\n\n```python\n{code}\n```"


def tasks_of(paths, count):
    """The first pair of each task, at most `count`, of all files in turn."""
    found = {}
    files = [lines(path) for path in paths]
    for row in range(max(map(len, files), default=0)):
        for file in files:
            if row < len(file) and len(found) < count:
                found.setdefault(file[row]["task"], file[row])
    return list(found.values())


def answers_of(args, asked):
    """[(index of the task, text)] of distinct answers that ended by themselves."""
    found = {}
    for way, temperature, samples in (("greedy", 0, 1), ("drawn", args.temperature, args.samples)):
        if samples == 0:
            continue
        write_answers(args, asked, args.out / f"{way}.jsonl", temperature, samples)
        for answer in lines(args.out / f"{way}.jsonl"):
            if answer["finish_reason"] != "length":
                found[answer["index"], answer["text"]] = None
    return list(found)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("pairs", type=pathlib.Path, nargs="+")
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--count", type=int, default=1000, help="tasks that are asked about")
    parser.add_argument("--samples", type=int, default=1, help="of each task, besides the greedy one")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--max-tokens", type=int, default=3072)
    parser.add_argument("--sequences", type=int, default=512)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--time-limit", type=float, default=10)
    args = parser.parse_args()
    args.out = args.output.with_name(args.output.name + ".work")
    args.out.mkdir(parents=True, exist_ok=True)
    args.gpus, args.min_p, args.go_on = 1, 0, False
    args.say = lambda text: print(text, file=sys.stderr, flush=True)
    pairs = tasks_of(args.pairs, args.count)
    asked = prompts_of(args.model, [pair["task"] for pair in pairs])
    answers = answers_of(args, asked)
    verdicts = judged(
        args,
        "answers",
        [
            {
                "id": f"{index}.{number}",
                "reference_source": pairs[index]["task"],
                "candidate_source": text,
                "form": "answer",
            }
            for number, (index, text) in enumerate(answers)
        ],
        "--device",
        "cpu",
        "--time-limit",
        str(args.time_limit),
    )
    wrong = []
    for number, (index, text) in enumerate(answers):
        said = verdicts[f"{index}.{number}"]
        if said and said["verdict"] not in ("Verified", "Error"):
            wrong.append((index, text, said))
    rows = [
        {
            "id": pairs[index].get("id"),
            "split": pairs[index].get("split", "train"),
            "wrong": said["verdict"],
            "messages": [
                *asked[index]["messages"],
                {"role": "assistant", "content": text},
                {"role": "user", "content": repair_text(args.model, said["feedback"])},
                {"role": "assistant", "content": right_answer(pairs[index])},
            ],
        }
        for index, text, said in wrong
    ]
    write_lines(args.output, rows)
    print(json.dumps({"tasks": len(pairs), "answers": len(answers), "wrong": len(rows)}))


if __name__ == "__main__":
    main()
