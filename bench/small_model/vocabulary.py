"""A vocabulary for answers as the compiler writes them now: a tokenizer.json of 5,120 tokens.

    python3 bench/small_model/vocabulary.py OUT PAIRS.jsonl... [--vocab 5120] [--phrases 800]

PAIRS are lines with `task`, `plan` and `code` (`nereid synth --pairs`, `nereid train pairs`). Functions that
many answers have word by word (dot_tf32x3) are one token each; --phrases further tokens are of several words
(" = tl.load("), whose names are those of many answers and of few tasks. The others are merges of bytes
(`nereid tokenize --train`). retokenize.py gives a model another vocabulary. NEREID is the command (./nereid).
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
END = "\n\n\n"  # of a function and its blank lines
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>")


def rows_of(paths):
    for path in paths:
        with open(path) as file:
            yield from map(json.loads, file)


def parts_of(row):
    """A document cut at its special tokens."""
    plan, code = row["plan"].strip("\n"), row["code"].strip("\n")
    return ["user\n" + row["task"], "assistant\n", f"\n{plan}\n", f"\n\n```python\n{code}\n```"]


def functions_of(rows, share):
    """Top-level functions of at least `share` of the answers that do not belong to one task."""
    counts = collections.Counter()
    for row in rows:
        counts.update({block + END for block in row["code"].strip("\n").split(END)[:-1]})
    return [
        text
        for text, count in sorted(counts.items())
        if count >= share * len(rows)
        and text.startswith("@triton.jit\ndef ")
        and '    """' in text
        and "\n    # #" not in text  # names a step of a plan
    ]


def words_of(rows, share):
    """Names of at least `share` of the answers, of which few are names of their tasks."""
    answers, tasks = collections.Counter(), collections.Counter()
    for row in rows:
        names = set(NAME.findall(row["plan"] + "\n" + row["code"]))
        answers.update(names)
        tasks.update(names & set(NAME.findall(row["task"])))
    torch = {
        "import",
        "torch",
        "nn",
        "class",
        "Module",
        "def",
        "self",
        "super",
        "__init__",
        "forward",
        "return",
    }
    torch |= {
        "get_inputs",
        "get_init_inputs",
        "randn",
        "rand",
        "Tensor",
        "dtype",
        "F",
        "functional",
        "from",
        "as",
    }
    return sorted(
        name
        for name, count in answers.items()
        if count >= share * len(rows) and (name in torch or tasks[name] < 0.3 * count)
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=pathlib.Path, help="tokenizer.json to write")
    parser.add_argument("pairs", type=pathlib.Path, nargs="+", help="files of pairs")
    parser.add_argument("--vocab", type=int, default=5120, help="number of tokens (default: %(default)s)")
    parser.add_argument("--phrases", type=int, default=800, help="of several words (default: %(default)s)")
    parser.add_argument(
        "--share", type=float, default=0.01, help="of the answers that have a function (default: %(default)s)"
    )
    args = parser.parse_args()
    rows = list(rows_of(args.pairs))
    if not rows:
        sys.exit(f"{args.pairs[0]}: expected pairs, got none")
    functions, words = functions_of(rows, args.share), words_of(rows, args.share)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "texts").write_text("".join(part + "\0" for row in rows for part in parts_of(row)))
        (work / "words").write_text("\n".join(words))
        (work / "functions").write_text("".join(text + "\0" for text in functions))
        command = [
            *os.environ.get("NEREID", "./nereid").split(),
            "tokenize",
            "--train",
            "--null",
            "--like",
            "code",
        ]
        command += [
            "--vocab",
            str(args.vocab),
            "--phrases",
            str(args.phrases),
            "--phrase-words",
            work / "words",
        ]
        command += ["--whole-phrases", work / "functions"] if functions else []
        for token in SPECIAL:
            command += ["--special", token]
        subprocess.run([*command, "-o", args.out, work / "texts"], check=True, stdout=subprocess.DEVNULL)
    print(json.dumps({"pairs": len(rows), "functions": len(functions), "words": len(words)}))


if __name__ == "__main__":
    main()
