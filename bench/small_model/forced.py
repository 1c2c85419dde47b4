"""How often a model is right where it is told what kind of answer to write: the greedy answers of an evaluation, cut behind the plan's steps, gone on with greedily from another kind's name.

    python3 bench/small_model/forced.py MODEL EVALUATED OUT simply|fused [--first COUNT]

EVALUATED is what evaluate.py left of that model (prompts.jsonl, greedy.jsonl); OUT gets prompts.jsonl, said.jsonl, pairs.jsonl and verdicts.jsonl. On the CPU; NEREID is the command (./nereid). Needs `tokenizers`.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess

from tokenizers import Tokenizer

NEREID = os.environ.get("NEREID", str(pathlib.Path(__file__).resolve().parents[2] / "nereid")).split()
# As the vocabulary cuts them between the plan's last step and its first kernel: names, and what stands behind them. Models up to the ninth were taught to tell the number of kernels there.
NAMES = {"simply": "x\nSimply fused", "fused": "x\nFused"}
BEHIND, BEHIND_WITH_NUMBER = (":\n#1", "#"), (": two kernels.\n", "kernels")


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("model", "evaluated", "out"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("kind", choices=NAMES)
    parser.add_argument("--first", type=int)
    told = parser.parse_args()
    told.out.mkdir(parents=True, exist_ok=True)
    vocabulary = told.model / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(vocabulary))
    prompts = lines(told.evaluated / "prompts.jsonl")[:told.first]
    answers = {answer["index"]: answer for answer in lines(told.evaluated / "greedy.jsonl")}
    behind, end = BEHIND_WITH_NUMBER if any("\nOne by one: " in answer["text"] for answer in answers.values()) else BEHIND
    named = tokenizer.encode(NAMES[told.kind] + behind)
    name = named.ids[1:next(i for i, token in enumerate(named.tokens) if end in token)]

    def head_of(answer, text):
        """Tokens until the kind's line, and the other kind's name; `text`: what it begins with."""
        for i, token in enumerate(answer["tokens"]):
            piece = tokenizer.decode([token], skip_special_tokens=False)
            if (text + piece).rpartition("\nreturns ")[2].count("\n") and "\nreturns " in text + piece:
                return answer["tokens"][:i] + name
            text += piece
        return None

    heads = {i: head for i in range(len(prompts)) if (head := head_of(answers[i], prompts[i].get("begin", "")))}
    begin = {i: json.loads(subprocess.run([*NEREID, "tokenize", "-t", vocabulary, "--chat", "--json", "-"], input=json.dumps(prompts[i]["messages"]), text=True, capture_output=True, check=True).stdout)["ids"] + tokenizer.encode(prompts[i].get("begin", "")).ids for i in heads}
    write_lines(told.out / "prompts.jsonl", [{"tokens": begin[i] + heads[i]} for i in heads])
    with open(told.out / "said.jsonl", "w") as said:
        subprocess.run([*NEREID, "generate", "--model", told.model, "--prompts", told.out / "prompts.jsonl", "--json", "--temperature", "0", "--max-tokens", "2560", "--device", "cpu"], stdout=said, check=True)
    ends = {answer["index"]: answer["text"] for answer in lines(told.out / "said.jsonl")}
    write_lines(told.out / "pairs.jsonl", [{"id": str(i), "reference_source": prompts[i]["messages"][-1]["content"], "candidate_source": tokenizer.decode(head) + ends[number], "form": "answer"} for number, (i, head) in enumerate(heads.items())])
    (told.out / "verdicts.jsonl").unlink(missing_ok=True)
    subprocess.run([*NEREID, "verify", "--batch", told.out / "pairs.jsonl", "-o", told.out / "verdicts.jsonl", "--policy", "strict", "--seed", "777", "--device", "cpu", "--beyond-rules", "--time-limit", "20"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    words = collections.Counter(verdict["verdict"] for verdict in lines(told.out / "verdicts.jsonl"))
    print(f"told {told.kind}: {words['Verified']} of {len(heads)} Verified; {dict(words)}; {len(prompts) - len(heads)} answers have no plan")


if __name__ == "__main__":
    main()
