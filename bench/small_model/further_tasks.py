"""Harvested tasks that are not known yet: one of each text, and of no structure of held-out packages.

    python3 bench/small_model/further_tasks.py OUT TASKS.jsonl... --known FILE.jsonl...
        [--held-out FILE.jsonl]

Files are of `nereid harvest`: lines with `code`, `digest` and `structure`. Lines that a process left
unfinished are skipped, as are sources over --longest characters.
"""

import argparse
import json
import pathlib
import random


def rows_of(path):
    if not path.exists():
        return
    with open(path) as file:
        for line in file:
            if line.endswith("}\n"):
                yield json.loads(line)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=pathlib.Path, help="file of tasks to write")
    parser.add_argument("tasks", type=pathlib.Path, nargs="+", help="files of harvested tasks")
    parser.add_argument("--known", type=pathlib.Path, nargs="*", default=[], help="tasks to leave out")
    parser.add_argument("--held-out", type=pathlib.Path, help="tasks whose structures are left out")
    parser.add_argument("--longest", type=int, default=6000, help="characters (default: %(default)s)")
    args = parser.parse_args()
    seen = {row["digest"] for path in args.known if path != args.out for row in rows_of(path)}
    held_out = {row["structure"] for row in rows_of(args.held_out)} if args.held_out else set()
    found = []
    for path in args.tasks:
        for row in rows_of(path):
            if row["digest"] in seen or row["structure"] in held_out or len(row["code"]) > args.longest:
                continue
            seen.add(row["digest"])
            found.append(row)
    random.Random(2).shuffle(found)
    args.out.write_text("".join(json.dumps(row) + "\n" for row in found))
    print(json.dumps({"tasks": len(found)}))


if __name__ == "__main__":
    main()
