"""A language model on held-out programs: what share of its answers is right, and how fast they are against
eager PyTorch and against what our compiler picks unmeasured (`nereid lower`).

    python3 bench/small_model/evaluate.py MODEL OUT [--device cuda] [--operators 1,2,5,20] [--count 200]
        [--large 50] [--samples 4] [--against OTHER/results.jsonl]

To each task it writes a greedy answer, and --samples more are drawn at --temperature; figures of both are
apart. Tasks are `nereid synth --split held-out` of one seed (--tasks FOLDER keeps them, and what the compiler
makes of them, for the next model); with MODEL "-" the compiler alone is looked at. For a model whose prompts
have a prefill.md responses are prefilled with a trace summary, as for a proposer; with --from-text it reads
the task's text alone, and with --kind the prefill also names the kind of answer. Those of --count are small
(--max-elements, --max-work): a GPU takes longer to begin than to compute them. Besides, --large tasks of each
number of operators read and write 24 to 80 MB if their operators run one by one; their figures are apart
("large", and "both sizes"), and they are judged on one draw of their own inputs and those kinds that find the
most. The files of a folder (--files FOLDER, repeatable) are tasks, too: of a level by the folder's name, from
their text alone, or with --trace-files behind their traced forward. Every answer is judged by a CPU's replays
under `strict`, small tasks on all kinds of input; with --device cuda what is Verified is then timed
(`nereid verify --time-only`: one clock for model and compiler, and one time of each reference), and only an
answer that is Verified there too counts. Without a GPU there are no times. With --gpus N each of N GPUs (of
CUDA_VISIBLE_DEVICES, where that names them) writes the answers to every N-th task and times them, in
parallel; all cores judge. With --turns 3 a model is asked twice more after a wrong answer, in one
conversation with the verdicts' evidence; with
--samples 2 the summary compares this with as many fresh samples.

OUT gets results.jsonl, a line a sample, and summary.json. A share has a 95 % interval (Wilson's); a geometric
mean is over tasks, each the mean of its Verified samples' logarithms, with a 95 % interval by bootstrap over
tasks. --against compares with another model's results of the same tasks: the geometric mean of times over
tasks of which both have a Verified answer; and of greedy answers the figures of compare.py: right answers
lost and won and the speed of all tasks. With --go-on what OUT has already, of the same command that was
interrupted, is not made again. `nereid eval --proposer model --samples 16` says what search makes of a
model's samples. NEREID (the command; ./nereid) may be several words.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import time

# As in runs/small-rl-data.
LARGE = ("--max-elements", "2^24", "--max-work", "2^27", "--min-bytes", "24000000", "--max-bytes", "80000000")
ROOM_IN_CONTEXT = 256  # tokens, for the chat template and the first of an answer
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NEREID = os.environ.get("NEREID", str(ROOT / "nereid")).split()


def lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def write_lines(path, rows):
    write(path, "".join(json.dumps(row) + "\n" for row in rows))


def write(path, text):
    """Whole, or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.replace(path)


def run(*arguments, **options):
    """The command's outputs; it ends all where the command fails."""
    done = subprocess.run([*NEREID, *map(str, arguments)], text=True, stderr=subprocess.PIPE, **options)
    if done.returncode:
        sys.exit(
            f"nereid {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stderr[-2000:]}"
        )
    return done


def on_gpu(args, number):
    """The environment of a command that is to have one GPU of several."""
    if args.gpus == 1:
        return None
    named = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return {**os.environ, "CUDA_VISIBLE_DEVICES": named[number] if len(named) > number else str(number)}


def on_each_gpu(args, work):
    """work(number) for each GPU, in parallel."""
    with concurrent.futures.ThreadPoolExecutor(args.gpus) as pool:
        return list(pool.map(work, range(args.gpus)))


def tasks_of(args):
    """[(id, level, source, its traced forward in words)]."""
    found = []
    for level in args.operators:
        for end, count, bounds in (
            ("", args.count, ("--max-elements", args.max_elements, "--max-work", args.max_work)),
            ("large", args.large, LARGE),
        ):
            path = args.tasks / f"level{level}{end and '-' + end}.jsonl"
            if count and (not path.exists() or len(lines(path)) < count):
                run(
                    "synth",
                    "--operators",
                    level,
                    "--count",
                    count,
                    "--seed",
                    args.seed,
                    "--held-out",
                    "0.05",
                    "--split",
                    "held-out",
                    "--forward",
                    *bounds,
                    *args.free_options,
                    "-o",
                    path,
                    "--json",
                    stdout=subprocess.DEVNULL,
                )
            found += [
                (f"L{level}_{end}{i:04}", level, row["code"], row.get("forward", ""))
                for i, row in enumerate(lines(path)[:count] if count else [])
            ]
    for folder in args.files:
        paths = [path for path in sorted(folder.glob("*.py")) if "class Model" in path.read_text()]
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            forwards = list(pool.map(summary_of_file if args.trace_files else lambda _: "", paths))
        found += [
            (f"{folder.name}_{path.stem}", folder.name, path.read_text(), forward)
            for path, forward in zip(paths, forwards)
        ]
    return found


def summary_of_file(path):
    """The traced forward of a file in words; empty where it cannot be traced."""
    environment = {**os.environ, "NEREID_KEEP_WARM": "30"}
    done = subprocess.run(
        [*NEREID, "trace", path, "--summary"], capture_output=True, text=True, env=environment
    )
    return done.stdout if done.returncode == 0 else ""


def is_large(name):
    return name.startswith("L") and name.split("_", 1)[-1].startswith("large")


def compiled(args, tasks):
    """What the compiler writes for each task unmeasured, by id; none where it declines."""
    folder = args.tasks / "compiler"
    folder.mkdir(exist_ok=True)
    environment = {**os.environ, "NEREID_KEEP_WARM": "30"}

    def one(task):
        name, _, source, _ = task
        answer = folder / f"{name}.new.py"
        if not answer.exists():
            (folder / f"{name}.py").write_text(source)
            subprocess.run(
                [*NEREID, "lower", folder / f"{name}.py", "-o", answer, "--json"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        return name, answer.read_text() if answer.exists() else None

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        return {name: source for name, source in pool.map(one, tasks) if source}


def that_fit(args, prompts):
    """Indices of the prompts that leave room in the model's context."""
    config, tokenizer = (pathlib.Path(args.model) / name for name in ("config.json", "tokenizer.json"))
    if not config.exists() or not tokenizer.exists():
        return list(range(len(prompts)))
    context = json.loads(config.read_text()).get("max_position_embeddings")
    if context is None:
        return list(range(len(prompts)))
    most = context - ROOM_IN_CONTEXT
    texts = args.out / "texts.part"
    texts.write_text(
        "".join(
            "\n".join(
                [*(message["content"] for message in prompt["messages"]), prompt.get("prefill", "")]
            ).replace("\0", " ")
            + "\0"
            for prompt in prompts
        )
    )
    done = run("tokenize", "-t", tokenizer, "--null", "--json", texts, stdout=subprocess.PIPE)
    texts.unlink()
    tokens = [json.loads(line)["tokens"] for line in done.stdout.splitlines()]
    return [
        index
        for index, (prompt, count) in enumerate(zip(prompts, tokens, strict=True))
        if count + 8 * len(prompt["messages"]) <= most
    ]


def write_answers(args, prompts, path, temperature, samples):
    """Answers to these prompts, as lines of a file; an empty one to what does not fit into the context."""
    fits = that_fit(args, prompts)

    def of_gpu(number):
        own = fits[number :: args.gpus]
        if not own:
            return []
        asked, said = (args.out / f"{kind}-{number}.part" for kind in ("prompts", path.stem))
        write_lines(asked, [prompts[index] for index in own])
        with open(said, "w") as file:
            run(
                "generate",
                "--model",
                args.model,
                "--prompts",
                asked,
                "--json",
                "--temperature",
                temperature,
                "-n",
                samples,
                "--max-tokens",
                args.max_tokens,
                "--device",
                args.device,
                "--sequences",
                args.sequences,
                "--min-p",
                args.min_p,
                "--seed",
                args.seed + number,
                stdout=file,
                env=on_gpu(args, number),
            )
        answers = [{**answer, "index": own[answer["index"]]} for answer in lines(said)]
        for answer in answers:  # as it would read had it been written: special tokens are left out
            answer["text"] = (
                prompts[answer["index"]].get("prefill", "").removeprefix("<think>") + answer["text"]
            )
        asked.unlink(), said.unlink()
        return answers

    unasked = [
        {"index": index, "sample": sample, "text": "", "tokens": [], "finish_reason": "length"}
        for index in sorted(set(range(len(prompts))) - set(fits))
        for sample in range(samples)
    ]
    write_lines(path, [answer for answers in on_each_gpu(args, of_gpu) for answer in answers] + unasked)


def fill(text, **values):
    """As lm::fill: what a value contains is no placeholder."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], text)


def prefill_of(begin, forward):
    """As Prompts::prefills_for: a prefill.md for a task whose traced forward is this in words."""
    calls = re.sub(r"^given .*\n", "", forward.strip())
    calls = calls.replace(", keepdim) [", ") [").replace(", transposed) [", ") [")
    return fill(begin.strip(), steps=forward.strip(), calls=calls)


def prompts_of(model, sources):
    """A conversation for each task, as a proposer begins it (Prompts::ask); without a response prefill."""
    prompts = pathlib.Path(model) / "prompts"
    system, task = (
        (prompts / f"{name}.md").read_text() if (prompts / f"{name}.md").exists() else text
        for name, text in (("system", ""), ("task", "{{source}}"))
    )
    before = [{"role": "system", "content": system}] if system else []
    return [
        {"messages": [*before, {"role": "user", "content": fill(task, name="model.py", source=source)}]}
        for source in sources
    ]


def answers_of(args, tasks):
    """[(task id, sample, answer)], and what writing them took."""
    prefill = pathlib.Path(args.model) / "prompts/prefill.md"
    begin = prefill.read_text() if prefill.exists() else ""
    asked = prompts_of(args.model, [source for _, _, source, _ in tasks])
    if args.kind and not begin:
        sys.exit(f"--kind: expected a model with a response prefill, got no {prefill}")
    if begin and not args.from_text:
        for one, (_, _, _, forward) in zip(asked, tasks):
            if forward:
                one["prefill"] = prefill_of(begin, forward) + (f"\n{args.kind}:" if args.kind else "")
        args.say(
            f"{sum('prefill' in one for one in asked)} of {len(asked)} answers begin with the traced forward"
        )
    write_lines(args.out / "prompts.jsonl", asked)
    found = []
    for way, temperature, samples in (("greedy", 0, 1), ("drawn", args.temperature, args.samples)):
        if samples == 0:
            continue
        started, path = time.time(), args.out / f"{way}.jsonl"
        if not (args.go_on and path.exists()):
            write_answers(args, asked, path, temperature, samples)
        answers = lines(path)
        tokens = sum(len(answer["tokens"]) for answer in answers)
        cut = sum(answer["finish_reason"] == "length" for answer in answers)
        args.say(
            f"{way}: {len(answers)} answers, {tokens} tokens in {time.time() - started:.1f} s, {cut} cut off"
        )
        answers.sort(key=lambda answer: (answer["index"], answer["sample"]))
        found += [
            (
                tasks[answer["index"]][0],
                way if way == "greedy" else f"drawn{answer['sample']}",
                answer["text"],
            )
            for answer in answers
        ]
    return found


def judged(args, name, pairs, *options):
    """Verdicts by id. Equal pairs are judged once."""
    distinct = {}
    for pair in pairs:
        distinct.setdefault((pair["reference_source"], pair["candidate_source"]), pair["id"])
    once = [
        pair for pair in pairs if distinct[pair["reference_source"], pair["candidate_source"]] == pair["id"]
    ]
    if not once:
        return {}
    parts = 1 if "cpu" in options else args.gpus
    order = {task: i for i, task in enumerate(sorted({pair["id"].rsplit(".", 1)[0] for pair in once}))}
    started = time.time()

    def of_gpu(number):  # every N-th task's
        end = f"-{number}" if parts > 1 else ""
        asked, said = args.out / f"{name}{end}.pairs.jsonl", args.out / f"{name}{end}.verdicts.jsonl"
        write_lines(asked, [pair for pair in once if order[pair["id"].rsplit(".", 1)[0]] % parts == number])
        if not args.go_on:
            said.unlink(missing_ok=True)
        subprocess.run(
            [
                *NEREID,
                "verify",
                "--batch",
                asked,
                "-o",
                said,
                "--policy",
                "strict",
                "--seed",
                str(args.seed),
                "--jobs",
                str(max(args.jobs // parts, 1)),
                *options,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=on_gpu(args, number) if parts > 1 else None,
        )
        return lines(said) if said.exists() else []

    found = on_each_gpu(args, of_gpu) if parts > 1 else [of_gpu(0)]
    verdicts = {verdict["id"]: verdict for some in found for verdict in some}
    args.say(f"{name}: {len(verdicts)} of {len(once)} programs judged in {time.time() - started:.1f} s")
    return {
        pair["id"]: verdicts.get(distinct[pair["reference_source"], pair["candidate_source"]])
        for pair in pairs
    }


def row_of(name, level, sample, said, text):
    """A line of results.jsonl: an answer (or a file) with its verdict."""
    said = said or {"verdict": "Error", "reason": "no verdict was there in time"}
    code = text.split("```", 2)[1:2] or [text]  # of an answer: two plans may have one program
    row = {
        "task": name,
        "level": level,
        "sample": sample,
        "program": hashlib.sha256(code[0].encode()).hexdigest()[:16],
        "verdict": said["verdict"],
        "rule": said.get("rule"),
        "reason": said["reason"],
        "feedback": said.get("feedback", ""),
    }
    if said.get("verdict_without_rules"):  # what a Disallowed one would be if rules did not count
        row["verdict_without_rules"] = said["verdict_without_rules"]["verdict"]
    if said.get("times") and said["verdict"] == "Verified":
        row["ms"], row["reference_ms"] = said["times"]["candidate_ms"], said["times"]["reference_ms"]
    return row


def results_of(args, tasks, answers, compiler):
    sources = {name: source for name, _, source, _ in tasks}
    pairs = [
        {
            "id": f"{name}.{sample}",
            "reference_source": sources[name],
            "candidate_source": answer,
            "form": "answer",
        }
        for name, sample, answer in answers
    ]
    pairs += [
        {
            "id": f"{name}.compiler",
            "reference_source": sources[name],
            "candidate_source": code,
            "form": "source",
        }
        for name, code in compiler.items()
    ]
    # In parallel: the first to end leaves its cores to the other.
    sizes = (
        ("cpu", False, ("--time-limit", str(args.time_limit))),
        ("cpu-large", True, ("--time-limit", str(6 * args.time_limit), "--trials", "1", "--fast-inputs")),
    )
    with concurrent.futures.ThreadPoolExecutor() as pool:
        parts = [
            pool.submit(
                judged,
                args,
                name,
                [pair for pair in pairs if is_large(pair["id"]) == large],
                "--device",
                "cpu",
                "--ignore-rules",
                *options,
            )
            for name, large, options in sizes
        ]
        verdicts = {name: verdict for part in parts for name, verdict in part.result().items()}
    times = {}
    if args.device == "cuda" and not args.no_times:
        right = [
            {**pair, "trace": verdicts[pair["id"]]["trace"]}
            for pair in pairs
            if verdicts[pair["id"]]
            and verdicts[pair["id"]]["verdict"] == "Verified"
            and not (args.greedy_times and ".drawn" in pair["id"])
        ]
        random.Random(args.seed).shuffle(
            right
        )  # what the GPU's clock does in between hits model and compiler alike
        times = judged(
            args,
            "cuda",
            right,
            "--device",
            "cuda",
            "--time-only",
            "--timing-seconds",
            str(args.timing_seconds),
            "--time-limit",
            str(args.time_limit),
        )
    levels = {name: level for name, level, _, _ in tasks}
    rows = []
    for pair in pairs:
        name, sample = pair["id"].rsplit(".", 1)
        said = times.get(pair["id"]) or verdicts[pair["id"]]
        rows.append(row_of(name, levels[name], sample, said, pair["candidate_source"]))
    return rows


def repair_text(model, evidence):
    """The question after a wrong answer, with the verdict's `feedback` (Prompts::repair_messages): by its own
    repair.md, else by the package's."""
    for path in (pathlib.Path(model) / "prompts/repair.md", ROOT / "python/nereid/prompts/repair.md"):
        if path.exists() and path.read_text().strip():
            return fill(path.read_text(), evidence=evidence)
    sys.exit(f"{model}: expected a prompts/repair.md")


def repaired(args, tasks, answers, rows):
    """Rows of turns 2 to --turns, each of the tasks that were wrong before; `turns.jsonl` keeps what was
    said."""
    found, asked = [], dict(zip((task[0] for task in tasks), lines(args.out / "prompts.jsonl")))
    text = {name: answer for name, sample, answer in answers if sample == "greedy"}
    wrong = {
        row["task"]: row
        for row in rows
        if row["sample"] == "greedy"
        and row["verdict"] not in ("Verified", "Error")
        and not is_large(row["task"])
    }
    for turn in range(2, args.turns + 1):
        some = [task for task in tasks if task[0] in wrong]
        for name, *_ in some:
            said = [
                {"role": "assistant", "content": text[name]},
                {"role": "user", "content": repair_text(args.model, wrong[name]["feedback"])},
            ]
            asked[name] = {"messages": [*asked[name]["messages"], *said]}
        if not some:
            break
        write_answers(args, [asked[task[0]] for task in some], args.out / f"turn{turn}.jsonl", 0, 1)
        for answer in lines(args.out / f"turn{turn}.jsonl"):
            text[some[answer["index"]][0]] = answer["text"]
        pairs = [
            {"id": f"{task[0]}.turn{turn}", "reference_source": task[2], "candidate_source": text[task[0]]}
            for task in some
        ]
        verdicts = judged(
            args,
            f"turn{turn}",
            [{**pair, "form": "answer"} for pair in pairs],
            "--device",
            "cpu",
            "--time-limit",
            str(args.time_limit),
        )
        wrong = {}
        for task in some:
            said = verdicts[f"{task[0]}.turn{turn}"]
            row = row_of(task[0], task[1], f"turn{turn}", said, text[task[0]])
            found.append(row)
            if row["verdict"] not in ("Verified", "Error"):
                wrong[task[0]] = row
    write_lines(args.out / "turns.jsonl", [{"task": name, **prompt} for name, prompt in asked.items()])
    return found


def repair_summary(rows):
    """Of the tasks whose greedy answer is wrong: how many are right in a later turn, and in a drawn
    sample."""
    kinds = {"greedy": set(), "turn": set(), "drawn": set()}
    wrong = set()
    for row in rows:
        for kind, right in kinds.items():
            if row["sample"].startswith(kind) and row["verdict"] == "Verified":
                right.add(row["task"])
        if (
            row["sample"] == "greedy"
            and row["verdict"] not in ("Verified", "Error")
            and not is_large(row["task"])
        ):
            wrong.add(row["task"])
    found = {"wrong_first": len(wrong)}
    for name, kind in (("right_after_turns", "turn"), ("right_by_samples", "drawn")):
        right = len(wrong & kinds[kind])
        found[name], found[f"{name}_interval"] = right, wilson(right, len(wrong))
    return found


def wilson(right, of, z=1.96):
    if of == 0:
        return 0.0, 1.0
    share, spread = right / of, z * z / of
    middle, half = share + spread / 2, z * math.sqrt(share * (1 - share) / of + spread / (4 * of))
    return max((middle - half) / (1 + spread), 0.0), min((middle + half) / (1 + spread), 1.0)


def geometric(logs, seed=1, draws=2000):
    """{"geomean", "interval", "tasks"} of a task's logarithms."""
    if not logs:
        return None
    draw = random.Random(seed)
    means = sorted(sum(draw.choices(logs, k=len(logs))) / len(logs) for _ in range(draws))
    return {
        "geomean": math.exp(sum(logs) / len(logs)),
        "interval": [math.exp(means[int(0.025 * draws)]), math.exp(means[int(0.975 * draws)])],
        "tasks": len(logs),
    }


def times_by_task(rows, way):
    """Of each task with Verified samples the mean logarithm of their times."""
    found = collections.defaultdict(list)
    for row in rows:
        if row["sample"].startswith(way) and "ms" in row:
            found[row["task"]].append(math.log(row["ms"]))
    return {name: sum(logs) / len(logs) for name, logs in found.items()}


def summary_of(rows, way, against):
    own = [row for row in rows if row["sample"].startswith(way)]
    words = collections.Counter(row["verdict"] for row in own)
    right, of = words["Verified"], len(own)
    summary = {
        "samples": of,
        "verdicts": dict(words),
        "verified": right / of if of else None,
        "verified_interval": wilson(right, of),
        "tasks_with_a_verified_answer": len({row["task"] for row in own if row["verdict"] == "Verified"}),
    }
    machine = [row for row in rows if row["sample"] == "compiler"]
    summary["compiler_verified"] = (
        sum(row["verdict"] == "Verified" for row in machine) / len(machine) if machine else None
    )
    times = times_by_task(rows, way)
    eager = {row["task"]: math.log(row["reference_ms"]) for row in rows if "ms" in row}
    compiler = {row["task"]: math.log(row["ms"]) for row in machine if "ms" in row}
    if eager:
        over = [compiler[name] - times[name] for name in times if name in compiler]
        share = sum(x > 0 for x in over)
        summary |= {
            "over_eager": geometric([eager[name] - times[name] for name in times]),
            "compiler_over_eager": geometric([eager[name] - compiler[name] for name in compiler]),
            "over_compiler": geometric(over),
            "faster_than_compiler": share / len(over) if over else None,
            "faster_than_compiler_interval": wilson(share, len(over)),
        }
    if against is not None:
        others = times_by_task(against, way)
        summary["over_other"] = geometric([others[name] - times[name] for name in times if name in others])
    return summary


def summary_line(name, s):
    text = (
        f"{name}: {s['verified']:.1%} of {s['samples']} Verified [{s['verified_interval'][0]:.1%},"
        f" {s['verified_interval'][1]:.1%}]"
        if s["samples"]
        else f"{name}:"
    )
    if s["compiler_verified"] is not None:
        text += f", the compiler's {s['compiler_verified']:.1%}"

    def times_text(what, key):
        g = s.get(key)
        return f"; {what} {g['geomean']:.3f} [{g['interval'][0]:.3f}, {g['interval'][1]:.3f}]" if g else ""

    text += (
        times_text("over eager", "over_eager")
        + times_text("(compiler", "compiler_over_eager")
        + (")" if s.get("compiler_over_eager") else "")
        + times_text("over the compiler", "over_compiler")
    )
    if s.get("faster_than_compiler") is not None:
        text += (
            f", faster than it on {s['faster_than_compiler']:.1%}"
            f" [{s['faster_than_compiler_interval'][0]:.1%}, {s['faster_than_compiler_interval'][1]:.1%}]"
        )
    return text + times_text("over the other model", "over_other")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "model", help="a folder with a checkpoint, its tokenizer.json and its prompts; -: none"
    )
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument(
        "--operators",
        default="1,2,5,20",
        help="numbers of operators of sampled programs, or none: files alone",
    )
    parser.add_argument("--count", type=int, default=200, help="programs of each number of operators")
    parser.add_argument(
        "--large", type=int, default=0, help="more of each number of operators, of 24 to 80 MB"
    )
    parser.add_argument("--samples", type=int, default=0, help="of each task, besides the greedy one")
    parser.add_argument(
        "--turns",
        type=int,
        default=1,
        help=(
            "ask again after a wrong greedy answer to a small task, with the verdict's evidence, until so"
            " many answers are there"
        ),
    )
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument(
        "--min-p",
        type=float,
        default=0,
        help="tokens less than so many times as probable as the likeliest are not drawn",
    )
    parser.add_argument("--tasks", type=pathlib.Path)
    parser.add_argument(
        "--files", type=pathlib.Path, action="append", default=[], help="a folder of further tasks"
    )
    parser.add_argument(
        "--trace-files", action="store_true", help="of --files the traced forward is read, too"
    )
    parser.add_argument("--seed", type=int, default=777)
    parser.add_argument(
        "--free",
        type=float,
        default=0,
        help="share of tasks with free sizes, and of those with free forms, as synth has them",
    )
    parser.add_argument("--max-elements", default="2^20")
    parser.add_argument("--max-work", default="2^26")
    parser.add_argument("--max-tokens", type=int, default=4096)
    parser.add_argument("--sequences", type=int, default=512)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--time-limit", type=float, default=10)
    parser.add_argument("--timing-seconds", type=float, default=0.1)
    parser.add_argument(
        "--no-times", action="store_true", help="with --device cuda: written there, not timed"
    )
    parser.add_argument(
        "--greedy-times",
        action="store_true",
        help="with --device cuda: drawn answers are judged by the CPU alone, and have no times",
    )
    begun = parser.add_mutually_exclusive_group()
    begun.add_argument("--from-text", action="store_true", help="without the response prefill")
    begun.add_argument(
        "--kind",
        choices=("One by one", "Simply fused", "Fused"),
        help=(
            "after the response prefill and this word of the plan: how often the model is right so, and how"
            " fast"
        ),
    )
    parser.add_argument("--no-compiler", action="store_true", help="without what the compiler writes")
    parser.add_argument(
        "--only-tasks",
        action="store_true",
        help="make the tasks, and what the compiler makes of them, and no more",
    )
    parser.add_argument(
        "--go-on", action="store_true", help="what OUT has of this same command's is not made again"
    )
    parser.add_argument(
        "--against", type=pathlib.Path, help="results.jsonl of another model on the same tasks"
    )
    args = parser.parse_args()
    args.say = lambda text: print(text, file=sys.stderr, flush=True)
    args.operators = [] if args.operators == "none" else args.operators.split(",")
    args.out.mkdir(parents=True, exist_ok=True)
    args.free_options = ("--free-sizes", args.free, "--free-forms", args.free) if args.free else ()
    args.tasks = args.tasks or args.out / "tasks"
    args.tasks.mkdir(parents=True, exist_ok=True)
    tasks = tasks_of(args)
    compiler = {} if args.no_compiler else compiled(args, tasks)
    if args.only_tasks:
        return
    answers = [] if args.model == "-" else answers_of(args, tasks)
    rows = results_of(args, tasks, answers, compiler)
    write_lines(args.out / "results.jsonl", rows)
    if args.turns > 1:
        rows += repaired(args, tasks, answers, rows)
        write_lines(args.out / "results.jsonl", rows)
    others = lines(args.against) if args.against else None
    summary = {"model": args.model, "device": args.device, "samples_of_each": args.samples}
    for way in ("greedy", "drawn") if args.samples else ("greedy",):
        for size, kept in (
            (("", lambda name: not is_large(name)), ("large", is_large), ("both sizes", lambda name: True))
            if args.large
            else (("", lambda name: True),)
        ):
            figures = summary[f"{way}, {size}" if size else way] = {}
            for level in [*args.operators, *(folder.name for folder in args.files), "all"]:
                some = [
                    [row for row in of if level in (row["level"], "all") and kept(row["task"])]
                    for of in (rows, others or [])
                ]
                one = figures[level] = summary_of(some[0], way, None if others is None else some[1])
                print(
                    summary_line(
                        f"{way}, {size + ', ' if size else ''}{'operators=' * level.isdigit() + level}",
                        one,
                    )
                )
    if args.turns > 1:
        summary["repair"] = repair = repair_summary(rows)
        print(
            f"of {repair['wrong_first']} tasks with a wrong greedy answer {repair['right_after_turns']} are"
            f" right after {args.turns} turns, {repair['right_by_samples']} in one of {args.samples} drawn"
            " samples"
        )
    if args.against:
        from compare import compare, read, summary_line as comparison_line

        summary["against"] = compare(read(args.against), read(args.out))
        print("\n".join(comparison_line(*one) for one in summary["against"].items()))
    write(args.out / "summary.json", json.dumps(summary, indent=1) + "\n")


if __name__ == "__main__":
    main()
