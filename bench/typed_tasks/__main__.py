"""Write random PyTorch modules, one JSON object a line: python3 bench/typed_tasks COUNT OUT.jsonl"""

import argparse
import json
import multiprocessing
import time
import warnings

import names
import torch
from program import program


def made(seed):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    return program(seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, help="number of modules")
    parser.add_argument("out", help="file of lines with `id`, `code`, `operators`, `dtypes`, `split`")
    parser.add_argument("--seed", type=int, default=0, help="seed of the modules (default: 0)")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes (default: 1)")
    parser.add_argument(
        "--seconds", type=float, default=1e9, help="end after so many seconds (default: never)"
    )
    options, began = parser.parse_args(), time.monotonic()
    names.words()  # before there are processes
    known, left_out, repeated = set(), 0, 0
    first = options.seed << 32
    with multiprocessing.Pool(options.jobs) as pool, open(options.out, "w") as file:
        for number, task in enumerate(pool.imap(made, range(first, first + 4 * options.count), chunksize=16)):
            left_out += task is None
            repeated += task is not None and task["code"] in known
            if task is not None and task["code"] not in known:
                known.add(task["code"])
                file.write(json.dumps({"id": f"typed-{options.seed}-{number}", **task}) + "\n")
            if len(known) == options.count or time.monotonic() - began > options.seconds:
                pool.terminate()
                break
    print(json.dumps({"tasks": len(known), "left_out": left_out, "repeated": repeated}))


if __name__ == "__main__":
    main()
