"""Gives a model another vocabulary: each new token begins as the mean of the old tokens that spell it.

    python3 bench/small_model/retokenize.py MODEL TOKENIZER OUT

A token that both vocabularies have keeps its row of the embedding, which is the output layer's, too
(`tie_word_embeddings`). Other weights and files are MODEL's. The logits change, so OUT has to be trained.
"""

import argparse
import json
import pathlib
import shutil
import sys

import numpy
from deepen import read_tensors, write_tensors
from tokenizers import Tokenizer

EMBEDDING = "model.embed_tokens.weight"
SPECIAL = ("eos_token_id", "bos_token_id", "pad_token_id")


def rows_of_bfloat16(header, data):
    """float32, [tokens, width]."""
    bits = numpy.frombuffer(data, "<u2").astype("<u4") << 16
    return bits.view("<f4").reshape(header["shape"])


def bfloat16_of(rows):
    """Bytes; rounded to the nearest, ties to even."""
    bits = numpy.ascontiguousarray(rows, "<f4").view("<u4")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()


def spelled(tokenizer, token):
    """The text of a token; None where it is no text alone, as a part of a character is."""
    text = tokenizer.decode([token], skip_special_tokens=False)
    return text if text and "\N{REPLACEMENT CHARACTER}" not in text else None


def new_rows(old_rows, old, new):
    """([tokens, width], how many tokens are in both)."""
    rows = numpy.empty((new.get_vocab_size(), old_rows.shape[1]), "float32")
    kept = 0
    for spelling, token in new.get_vocab().items():
        same = old.token_to_id(spelling)
        kept += same is not None
        if same is not None:
            rows[token] = old_rows[same]
            continue
        text = spelled(new, token)
        pieces = old.encode(text, add_special_tokens=False).ids if text else []
        rows[token] = old_rows[pieces].mean(0) if pieces else old_rows.mean(0)
    return rows, kept


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=pathlib.Path, help="folder of a checkpoint in one safetensors file")
    parser.add_argument("tokenizer", type=pathlib.Path, help="the new tokenizer.json")
    parser.add_argument("out", type=pathlib.Path, help="folder of the model with that vocabulary")
    args = parser.parse_args()
    config = json.loads((args.model / "config.json").read_text())
    old = Tokenizer.from_file(str(args.model / "tokenizer.json"))
    new = Tokenizer.from_file(str(args.tokenizer))
    tensors = read_tensors(args.model / "model.safetensors")
    headers = {name: header for name, header, _ in tensors}
    if "lm_head.weight" in headers:
        sys.exit(f"{args.model}: expected tied embeddings, got lm_head.weight")
    if headers[EMBEDDING]["dtype"] != "BF16":
        sys.exit(f"{args.model}: {EMBEDDING}: expected bfloat16, got {headers[EMBEDDING]['dtype']}")
    for name in SPECIAL:
        token = config.get(name)
        if token is not None and new.id_to_token(token) != old.id_to_token(token):
            sys.exit(
                f"{args.tokenizer}: token {token} ({name}): expected {old.id_to_token(token)!r},"
                f" got {new.id_to_token(token)!r}"
            )
    ignored = shutil.ignore_patterns("model.safetensors", "weights.xz", "manifest.json")
    shutil.copytree(args.model, args.out, ignore=ignored, dirs_exist_ok=True)
    for i, (name, header, data) in enumerate(tensors):
        if name == EMBEDDING:
            rows, kept = new_rows(rows_of_bfloat16(header, data), old, new)
            tensors[i] = (name, {**header, "shape": list(rows.shape)}, bfloat16_of(rows))
    write_tensors(args.out / "model.safetensors", tensors)
    config["vocab_size"] = new.get_vocab_size()
    (args.out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    shutil.copyfile(args.tokenizer, args.out / "tokenizer.json")
    print(json.dumps({"tokens": config["vocab_size"], "kept": kept}))


if __name__ == "__main__":
    main()
