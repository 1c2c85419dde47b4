"""Training pairs of the same tasks in other words, answered by the compiler.

    python3 bench/small_model/renamed.py TASKS.jsonl... OUT.jsonl [--count 1000] [--verify-every 8] [--jobs 2]
    python3 bench/small_model/renamed.py PAIRS.jsonl... OUT.jsonl --share 0.5      without the compiler

Each task is changed in one to four ways of reworded.py, drawn at random: other names of arguments, variables
and attributes, another order of statements and functions, comments, other spellings of calls and options.
Names and comments are words of --words, a tokenizer's vocabulary (models/small/tokenizer.json): reworded.py's
own few are for evaluations. What cannot be traced is left out; of the answers of `nereid train pairs` one in
--verify-every is judged and kept if it is Verified. The last line on stdout counts, per minute of one core.

With --share, pairs are changed as they are, a thousand in a second: attributes of this share of them get
other names, the same in task, plan and program, and numbers with a point that are added, multiplied or
compared become others, too. A name that is also a word of the program is left alone, as is a number that
other operators have: a program may hold what is computed from these.
"""

import argparse
import ast
import json
import pathlib
import random
import re

from answers import TAKEN, LeftOut, add_options, forward_of, parsed, run
from reworded import WAYS, commented, renamed

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What an attribute's tensors are called after it, and what follows it in a program.
ENDINGS = r"_(?:weight|bias|running_mean|running_var|num_batches_tracked)(?:_ptr)?(?![A-Za-z0-9])"

SCALED = re.compile(r"#\d+ (?:add|sub|mul|div|lt|le|gt|ge)\(")


def words_of(path):
    """Lower-case words of a tokenizer's vocabulary, without those of Python and of modules."""
    vocabulary = json.loads(path.read_text())["model"]["vocab"]
    words = {re.sub("^[Ġ ]", "", word) for word in vocabulary}
    return sorted(w for w in words if re.fullmatch(r"[a-z]{3,12}", w) and w not in TAKEN)


def renamed_pair(pair, words, draw):
    """The pair with other names of attributes, and other numbers with a point."""
    task, plan, code = pair["task"], pair["plan"], pair["code"]
    text = "\n".join((task, plan, code))
    taken = set(re.findall(r"[A-Za-z_]\w*", text))
    for name in sorted(set(re.findall(r"self\.([a-z]\w*) = nn\.", task)), key=len, reverse=True):
        word = rf"(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9])"
        # All its places are self.NAME, NAME_weight and the like, or "NAME" of a state's name.
        uses = len(re.findall(word, text))
        known = len(re.findall(rf"self\.{name}(?![A-Za-z0-9_])", text)) + len(
            re.findall(rf"(?<![A-Za-z0-9_.]){name}{ENDINGS}", text)
        )
        attribute = len(re.findall(rf"self\.{name}_", text))  # another attribute, which begins alike
        if uses != known or attribute or re.search(rf"[A-Za-z0-9]_{name}_", text):
            continue
        new = draw.choice(words) if draw.random() < 0.5 else "_".join(draw.sample(words, 2))
        new += draw.choice(["", "", "", str(draw.randrange(10))])
        if new in taken or any(each.startswith(new) for each in taken):
            continue
        taken.add(new)
        task, plan, code = (re.sub(word, new, each) for each in (task, plan, code))
        text = "\n".join((task, plan, code))
    for value in sorted(set(re.findall(r"(?<![\w.*-])\d+\.\d+(?![\w.*])", task))):
        literal = rf"(?<![\w.]){re.escape(value)}(?![\w.])"
        steps = [line for line in plan.split("\n") if re.search(literal, line)]
        if float(value) == 0 or not steps or not all(SCALED.match(line) for line in steps):
            continue
        if not re.search(literal, code):
            continue
        new = repr(float(f"{float(value) * draw.uniform(0.4, 1):.{draw.randint(1, 4)}g}"))
        if "e" in new or re.search(rf"(?<![\w.]){re.escape(new)}(?![\w.])", text):
            continue
        task, plan, code = (re.sub(literal, new, each) for each in (task, plan, code))
        text = "\n".join((task, plan, code))
    return pair | {"task": task, "plan": plan, "code": code}


words = []  # of --words, known to each process


def reworded_task(tasks, rng):
    source, code = rng.choice(tasks)
    tree, ways = (
        parsed(code),
        rng.sample(["renamed", "reordered", "respelled", "commented"], rng.randint(1, 4)),
    )
    forward_of(tree)
    for way in ("respelled", "reordered"):
        if way in ways:
            WAYS[way](tree, rng)
    if "renamed" in ways:
        renamed(tree, rng, rng.sample(words, min(len(words), 60)))
    text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    if text == ast.unparse(ast.parse(code)) + "\n" and "commented" not in ways:
        raise LeftOut("unchanged")
    if "commented" in ways:
        remarks = [" ".join(rng.sample(words, rng.randint(2, 6))) for _ in range(8)]
        text = commented(text, rng, remarks)
    return source, text


def renamed_pairs(args):
    """--share: each pair as it is, or renamed."""
    draw, lines, changed = random.Random(args.seed), 0, 0
    with open(args.out, "w") as out:
        for path in args.tasks:
            with open(path) as file:
                for line in file:
                    pair = json.loads(line)
                    lines += 1
                    if "plan" in pair and draw.random() < args.share:
                        new = renamed_pair(pair, words, draw)
                        changed += new != pair
                        pair = new
                    out.write(json.dumps(pair) + "\n")
    print(json.dumps({"lines": lines, "renamed": changed}))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser)
    parser.add_argument("--words", type=pathlib.Path, default=ROOT / "models/small/tokenizer.json")
    parser.add_argument("--share", type=float, help="rename this share of the pairs as they are")
    args = parser.parse_args()
    words.extend(words_of(args.words))
    if args.share is not None:
        return renamed_pairs(args)
    run(args, reworded_task, "renamed")


if __name__ == "__main__":
    main()
