"""`nereid tokenize --train` against the BpeTrainer of the `tokenizers` package: the same vocabulary and
merges from the same texts.

tests/model/trainer_test.py PATH/TO/nereid [--long]
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import corpus  # noqa: E402
import tokenizer_files  # noqa: E402
from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: E402

LONG = "--long" in sys.argv
if LONG:
    sys.argv.remove("--long")
NEREID = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/release/bin/nereid").resolve()
SPECIAL = ["<|endoftext|>", "<|im_start|>"]


class Trainer(unittest.TestCase):
    def same(self, texts, size, like="qwen", **more):
        normalizer, cuts, _, _ = tokenizer_files.KINDS[like]
        theirs = Tokenizer(models.BPE())
        if normalizer is not None:
            theirs.normalizer = normalizer
        theirs.pre_tokenizer, theirs.decoder = pre_tokenizers.Sequence(cuts), decoders.ByteLevel()
        theirs.train_from_iterator(
            [text.decode("utf-8", "replace") for text in texts],
            tokenizer_files.trainer(size, special_tokens=SPECIAL, **more),
        )
        expected = json.loads(theirs.to_str())["model"]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokenizer.json"
            options = [option for token in SPECIAL for option in ("--special", token)]
            for name, value in more.items():
                options += ["--" + name.replace("_", "-"), str(value)]
            subprocess.run(
                [
                    NEREID,
                    "tokenize",
                    "--train",
                    "--vocab",
                    str(size),
                    "--like",
                    like,
                    "-0",
                    "-o",
                    path,
                    *options,
                ],
                input=b"".join(text + b"\0" for text in texts),
                check=True,
                capture_output=True,
                timeout=1200,
            )
            ours = json.loads(path.read_text(encoding="utf-8"))["model"]
            self.assertEqual(
                [tuple(pair) for pair in ours["merges"]], [tuple(pair) for pair in expected["merges"]]
            )
            self.assertEqual(ours["vocab"], expected["vocab"])
            # The file is one that `tokenizers` reads, with the same meaning.
            read = Tokenizer.from_file(str(path))
            for text in texts[:200]:
                text = text.decode("utf-8", "replace")
                self.assertEqual(read.encode(text).ids, theirs.encode(text).ids)
                self.assertEqual(read.decode(read.encode(text).ids), theirs.decode(theirs.encode(text).ids))
        return expected

    def test_files(self):
        texts = corpus.corpus(10_000_000 if LONG else 120_000)
        for like in ("qwen", "llama3", "code"):
            with self.subTest(like=like):
                model = self.same(texts, 30_000 if LONG else 3000, like)
                self.assertEqual(len(model["vocab"]), 30_000 if LONG else 3000)

    def test_few_letters(self):
        """Where one token is made of several pairs, and counts are equal, again and again."""
        rng = random.Random(1)
        for seed in range(400 if LONG else 30):
            letters = "ab" if seed % 2 else "abcd "
            texts = [
                "".join(rng.choice(letters) for _ in range(rng.randint(1, 60))).encode()
                for _ in range(rng.randint(1, 30))
            ]
            with self.subTest(seed=seed):
                self.same(texts, rng.randint(258, 400), min_frequency=rng.choice([0, 2, 3]))


if __name__ == "__main__":
    unittest.main()
