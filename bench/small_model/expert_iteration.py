"""Search as teacher: rounds of sampling, measuring and fine-tuning, in which the fastest verified answers
become training data (expert iteration).

    python3 bench/small_model/expert_iteration.py runs/small-sft-further.toml models/small tasks.jsonl \
        held_out.jsonl OUT [--rounds 3] [--device cuda]

Tasks are lines with `code`, as `nereid synth` writes them (with `forward` for models with a response
prefill). A round has five steps:

1. `--tasks` tasks are drawn without replacement, by what there is to win: 1 minus the roofline share of the
   best answer so far (at least 0.05), 1 of tasks that no round had.
2. The model draws `--samples` answers to each.
3. `nereid choices` verifies and times them next to `--choices` of the compiler's own answers, the search that
   teaches: the fastest Verified one of each task is a pair.
4. The pairs of all rounds become token shards, and `nereid train sft` continues from the model with the
   settings of the run file: its `steps` are those of a round, its `train` folders are kept in the mixture.
5. The new model's greedy answers to the held-out tasks are judged and timed next to the compiler's first
   choice. Round 0 is the model before.

OUT/round-R holds what a round made; the same command continues where it was stopped, also with more rounds.
curve.json and curve.svg have, of each round: the share of held-out tasks whose answer is Verified (Wilson's
interval), and how fast these are relative to the compiler's first choice (geometric mean, bootstrap
interval). Without a GPU the times are modelled, and the curve says so. NEREID (the command; ./nereid) may be
several words.
"""

import argparse
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench/small_model"), str(ROOT / "bench/ablation")]
from curves import svg  # noqa: E402
from evaluate import geometric, lines, prefill_of, wilson, write, write_lines  # noqa: E402

NEREID = os.environ.get("NEREID", str(ROOT / "nereid")).split()
LEAST_WEIGHT = 0.05  # as in src/nereid/train/rl/tasks.h


def ran(*words, to=None):
    """The command's output; with `to`, in that file. It ends all where the command fails."""
    done = subprocess.run([*NEREID, *map(str, words)], text=True, stdout=to or subprocess.PIPE)
    if done.returncode:
        sys.exit(f"expert_iteration: nereid {' '.join(map(str, words))}: exit code {done.returncode}")
    return done.stdout


def bad_input(text):
    print(f"expert_iteration: {text}", file=sys.stderr)
    sys.exit(2)


def tasks_of(path):
    found = []
    for number, row in enumerate(lines(path)):
        if "code" not in row and "task" not in row:
            bad_input(f"{path}:{number + 1}: expected `code` or `task`, got {sorted(row)}")
        found.append(
            {**row, "id": str(row.get("id", f"task-{number}")), "code": row.get("code", row.get("task"))}
        )
    if len({row["id"] for row in found}) < len(found):
        bad_input(f"{path}: expected ids that differ")
    return found


def toml(tables):
    """Of a run file: scalars and lists of scalars, in tables."""
    top = {key: value for key, value in tables.items() if not isinstance(value, dict)}
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in top.items())
    for name, table in tables.items():
        if isinstance(table, dict):
            text += f"\n[{name}]\n" + "".join(
                f"{key} = {json.dumps(value)}\n" for key, value in table.items()
            )
    return text


def drawn(tasks, shares, count, seed):
    """Without replacement, by weight (Efraimidis and Spirakis)."""
    draw = random.Random(seed)

    def key(task):
        weight = max(1 - shares[task["id"]], LEAST_WEIGHT) if task["id"] in shares else 1
        return draw.random() ** (1 / weight)

    return sorted(sorted(tasks, key=key, reverse=True)[:count], key=lambda task: task["id"])


def prompts_of(model, sources):
    """As `nereid train data` asks: by the model's own templates, else by the package's."""
    own = pathlib.Path(model) / "prompts"
    folder = own if (own / "task.md").exists() else ROOT / "python/nereid/prompts"
    system, task = ((folder / f"{name}.md").read_text() for name in ("system", "task"))
    before = [{"role": "system", "content": system}] if system else []
    asked = task.replace("{{name}}", "model.py")
    return [
        {"messages": [*before, {"role": "user", "content": asked.replace("{{source}}", source)}]}
        for source in sources
    ]


def answer(options, model, tasks, samples, temperature, seed, path):
    """Lines of `nereid choices --answers`."""
    if path.exists():
        return
    prefill = pathlib.Path(model) / "prompts/prefill.md"
    begin = prefill.read_text().strip() if prefill.exists() else ""
    prompts = prompts_of(model, [task["code"] for task in tasks])
    for prompt, task in zip(prompts, tasks):
        if begin and task.get("forward"):
            prompt["prefill"] = prefill_of(begin, task["forward"])
    asked, said = path.with_name(path.stem + "-prompts.jsonl"), path.with_name(path.stem + "-samples.jsonl")
    write_lines(asked, prompts)
    with open(said, "w") as file:
        ran(
            "generate", "--model", model, "--prompts", asked, "--json", "--temperature", temperature, "-n",
            samples,
            "--max-tokens", options.max_tokens, "--device", options.device, "--seed", seed, to=file,
        )  # fmt: skip
    write_lines(
        path,
        [
            {
                "id": tasks[one["index"]]["id"],
                "text": prompts[one["index"]].get("prefill", "") + one["text"],
            }
            for one in lines(said)
        ],
    )


def measured(options, tasks, answers, folder, choices, share):
    """Lines of choices.jsonl that have choices."""
    write_lines(folder.with_suffix(".tasks.jsonl"), tasks)
    ran(
        "choices", folder.with_suffix(".tasks.jsonl"), "--answers", answers, "-o", folder, "--brief",
        "--choices", choices,
        "--max-share", share, "--device", options.device, "--jobs", options.jobs, "--trials", options.trials,
        "--json",
        *(["--fast-inputs"] if options.fast_inputs else []),
    )  # fmt: skip
    return [line for line in lines(folder / "choices.jsonl") if "left_out" not in line]


def seconds_of(line, one):
    return one.get("seconds" if line["device"] else "modelled_seconds")


def own_choice(line):
    first = [choice for choice in line["choices"] if choice.get("first")]
    return first[0] if first and first[0]["verdict"]["verdict"] == "Verified" else None


def evaluated(options, model, tasks, folder):
    """The figures of one point of the curve."""
    path = folder / "evaluation.json"
    if path.exists():
        return json.loads(path.read_text())
    answer(options, model, tasks, 1, 0, 1, folder / "greedy.jsonl")
    found = measured(options, tasks, folder / "greedy.jsonl", folder / "held_out", 1, 10)
    right, gains = 0, []
    for line in found:
        greedy, own = line["answers"][0], own_choice(line)
        if greedy["verdict"] != "Verified":
            continue
        right += 1
        seconds = own and seconds_of(line, own), seconds_of(line, greedy)
        if all(seconds):
            gains.append(math.log(seconds[0] / seconds[1]))
    figures = {
        "tasks": len(found),
        "verified": right / len(found) if found else None,
        "verified_interval": wilson(right, len(found)),
        "speed": geometric(gains),
        "times": "measured" if found and found[0]["device"] else "modelled",
        "device": found[0]["device"] if found else None,
    }
    write(path, json.dumps(figures))
    return figures


def fine_tuned(options, template, model, data, folder):
    """The newest checkpoint of a run from `model` on."""
    run = {name: dict(value) if isinstance(value, dict) else value for name, value in template.items()}
    run["model"] = {"start_from": str(model)}
    run["data"]["train"] = [*options.mixture, str(data)]
    write(folder / "sft.toml", toml(run))
    if not (folder / "trained").exists():
        ran("train", "sft", folder / "sft.toml", "-o", folder / "sft", "--device", options.device)
        write(folder / "trained", "")
    return max((folder / "sft/checkpoints").glob("step-*/model"), key=lambda path: path.parent.name)


def one_round(options, template, model, tasks, shares, number):
    """The model after this round, and what its measurement said."""
    folder = options.out / f"round-{number}"
    folder.mkdir(exist_ok=True)
    picked = folder / "picked.json"
    if not picked.exists():
        ids = [task["id"] for task in drawn(tasks, shares, options.tasks_per_round, options.seed + number)]
        write(picked, json.dumps(ids))
    by_id = {task["id"]: task for task in tasks}
    chosen = [by_id[name] for name in json.loads(picked.read_text())]
    answer(options, model, chosen, options.samples, options.temperature, number, folder / "answers.jsonl")
    found = measured(
        options, chosen, folder / "answers.jsonl", folder / "measured", options.choices, options.max_share
    )
    pairs = lines(folder / "measured/pairs.jsonl")
    shares |= {pair["id"]: pair["roofline_share"] for pair in pairs}
    files = [options.out / f"round-{r}/measured/pairs.jsonl" for r in range(1, number + 1)]
    data = folder / "data"
    ran("train", "data", *files, "-o", data, "-t", options.tokenizer, "--json")
    answers = [one for line in found for one in line["answers"]]
    said = {
        "tasks": len(chosen),
        "programs": len(found),
        "answers": len(answers),
        "answers_verified": sum(one["verdict"] == "Verified" for one in answers),
        "pairs": len(pairs),
        "pairs_of_the_model": sum(pair["kind"] == "answer" for pair in pairs),
        "gain": geometric([math.log(pair["gain"]) for pair in pairs if "gain" in pair]),
    }
    return fine_tuned(options, template, model, data, folder), said


def draw_curve(out, points):
    write(out / "curve.json", json.dumps(points, indent=1) + "\n")
    shares = [
        (p["round"], p["verified"], *p["verified_interval"]) for p in points if p["verified"] is not None
    ]
    speeds = [(p["round"], p["speed"]["geomean"], *p["speed"]["interval"]) for p in points if p["speed"]]
    parts = [("share of held-out tasks Verified", shares)] if shares else []
    if speeds:
        times = points[-1]["times"]
        parts.append((f"speed over the compiler's first choice ({times})", speeds))
    if parts:
        write(out / "curve.svg", svg("Expert iteration", "round", "share, and speed", parts))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=pathlib.Path, help="run file of `nereid train sft`")
    parser.add_argument("model", type=pathlib.Path, help="checkpoint of round 0")
    parser.add_argument("tasks", type=pathlib.Path, help="lines of training tasks")
    parser.add_argument("held_out", type=pathlib.Path, help="lines of held-out tasks")
    parser.add_argument("out", type=pathlib.Path, help="folder of the rounds and the curve")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", dest="tasks_per_round", type=int, default=200, help="of a round (200)")
    parser.add_argument("--samples", type=int, default=8, help="answers of the model to a task (8)")
    parser.add_argument("--choices", type=int, default=12, help="answers of the compiler to a task (12)")
    parser.add_argument("--max-share", type=float, default=0.6, help="as `nereid choices --max-share` (0.6)")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--max-tokens", type=int, default=2048, help="of an answer (2048)")
    parser.add_argument("--trials", type=int, default=3, help="draws of a task's own inputs in a verdict (3)")
    parser.add_argument("--fast-inputs", action="store_true", help="as in `nereid verify`")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--jobs", type=int, default=0, help="verdicts at a time (0: one a core)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    template = tomllib.loads(options.run.read_text())
    for table in ("data", "schedule"):
        if table not in template:
            bad_input(f"{options.run}: expected a table [{table}]")
    options.mixture = [
        folder for folder in template["data"].get("train", []) if pathlib.Path(folder).exists()
    ]
    options.tokenizer = options.model / "tokenizer.json"
    if not options.tokenizer.exists():
        bad_input(f"{options.tokenizer}: no such file")
    tasks, held_out = tasks_of(options.tasks), tasks_of(options.held_out)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "round-0").mkdir(exist_ok=True)
    model, shares, points = options.model.resolve(), {}, []
    points.append({"round": 0, **evaluated(options, model, held_out, options.out / "round-0")})
    draw_curve(options.out, points)
    for number in range(1, options.rounds + 1):
        model, said = one_round(options, template, model, tasks, shares, number)
        point = evaluated(options, model, held_out, options.out / f"round-{number}")
        points.append({"round": number, **point, "training": said, "model": str(model)})
        draw_curve(options.out, points)
        print(json.dumps(points[-1]), flush=True)


if __name__ == "__main__":
    main()
