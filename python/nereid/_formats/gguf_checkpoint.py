"""`nereid import-gguf`: a folder with config.json, safetensors and tokenizer.json, made of a GGUF file.

    python gguf_checkpoint.py FILE FOLDER '{"dtype": "bfloat16", "tokenizer": "", "json": false}'

Prints what it wrote, as JSON where asked: {"architecture", "parameters", "bytes", "dtype", "files",
"tokenizer"}. Errors and exit codes are those of `nereid` (docs/cli.md). The package `gguf` reads the file and
dequantises; this program knows the names, the order of rotary rows and the tokenizer.

A GGUF file of the architecture `llama` holds the rows of query and key projections in the order of the
original Llama code, which rotates neighbouring rows; transformers rotates halves: rows (2 i, 2 i + 1) of a
head come from rows (i, i + d / 2).
"""

import json
import math
import os
import pathlib
import shutil
import signal
import sys
import time

SHARD_BYTES = 4 << 30
DTYPES = {"bfloat16": ("BF16", 2), "float16": ("F16", 2), "float32": ("F32", 4)}
CLASSES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
# What Llama 3.1 and later scale their rotary frequencies by, but for the factor.
LLAMA3_ROPE = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}

LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2_PATTERN = LLAMA3_PATTERN.replace(r"\p{N}{1,3}", r"\p{N}")
# tokenizer.ggml.pre: (pattern of a split or None, digits alone, GPT-2's pattern behind them, words that are
# tokens skip the merges, normal form C, a begin token where the file does not say).
PRE_TOKENIZERS = {
    "gpt-2": (None, False, True, False, False, False),
    "smollm": (None, True, True, False, False, False),
    "llama-bpe": (LLAMA3_PATTERN, False, False, True, False, True),
    "llama3": (LLAMA3_PATTERN, False, False, True, False, True),
    "llama-v3": (LLAMA3_PATTERN, False, False, True, False, True),
    "qwen2": (QWEN2_PATTERN, False, False, False, True, False),
    "deepseek-r1-qwen": (QWEN2_PATTERN, False, False, False, True, False),
}
CONTROL, USER_DEFINED = 3, 4  # tokenizer.ggml.token_type


class Wrong(Exception):
    """The file cannot be imported; the message is for the user."""


class File:
    """A GGUF file's fields, by name; an absent or strange one is an error that names it."""

    def __init__(self, path):
        try:
            import gguf
        except ImportError as error:
            raise Wrong(
                f"import-gguf needs the package gguf ({error}): {sys.executable} -m pip install gguf"
            ) from error
        with open(path, "rb") as file:
            if file.read(4) != b"GGUF":
                raise Wrong(f"{path}: expected a GGUF file, which begins with the bytes GGUF")
        try:
            self.reader = gguf.GGUFReader(path)
        except Exception as error:  # whatever a damaged file makes of the reader
            raise Wrong(f"{path}: damaged or cut off: {type(error).__name__}: {error}") from error
        self.path, self.dequantize = path, gguf.quants.dequantize
        self.architecture = self.get("general.architecture", str)
        if self.architecture not in CLASSES:
            raise Wrong(
                f"{path}: architecture: expected one of {', '.join(CLASSES)}, got {self.architecture!r}"
            )
        self.tensors = {tensor.name: tensor for tensor in self.reader.tensors}

    def get(self, name, kind, default=None, required=True):
        field = self.reader.fields.get(name)
        if field is None:
            if required and default is None:
                raise Wrong(f"{self.path}: {name}: expected {kind.__name__}, got nothing")
            return default
        value = field.contents()
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise Wrong(f"{self.path}: {name}: expected {kind.__name__}, got {str(value)[:60]!r}")
        if kind is float and not math.isfinite(value):
            raise Wrong(f"{self.path}: {name}: expected a finite number, got {value}")
        return value

    def of_model(self, name, kind, default=None, required=True):
        return self.get(f"{self.architecture}.{name}", kind, default, required)


def shape_of(tensor):
    return tuple(int(size) for size in reversed(tensor.shape))


def rope_scaling(file, head_dim, theta):
    """config.json's rope_scaling, or None."""
    if "rope_freqs.weight" in file.tensors:
        return llama3_scaling(file, head_dim, theta)
    kind = file.of_model("rope.scaling.type", str, "none")
    if kind == "none":
        return None
    if kind not in ("linear", "yarn"):
        raise Wrong(
            f"{file.path}: {file.architecture}.rope.scaling.type: expected none, linear or yarn, got {kind!r}"
        )
    scaling = {"rope_type": kind, "factor": file.of_model("rope.scaling.factor", float)}
    if kind == "yarn":
        scaling["original_max_position_embeddings"] = file.of_model(
            "rope.scaling.original_context_length", int
        )
    return scaling


def llama3_scaling(file, head_dim, theta):
    """The factors of each frequency are a tensor in the file; transformers computes them from four
    numbers."""
    import numpy

    tensor = file.tensors["rope_freqs.weight"]
    factors = file.dequantize(tensor.data, tensor.tensor_type).reshape(-1)
    scaling = {"rope_type": "llama3", "factor": float(factors.max()), **LLAMA3_ROPE}
    original = scaling["original_max_position_embeddings"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    wavelengths = 2 * math.pi * theta ** (numpy.arange(0, head_dim, 2) / head_dim)
    smooth = ((original / wavelengths - low) / (high - low)).clip(0, 1)
    expected = 1 / ((1 - smooth) / scaling["factor"] + smooth)
    if factors.shape != expected.shape or not numpy.allclose(factors, expected, rtol=1e-3):
        raise Wrong(
            f"{file.path}: rope_freqs.weight: expected the frequencies of Llama 3's scaling, got others"
        )
    return scaling


def config_of(file, dtype):
    if file.of_model("expert_count", int, 0):
        raise Wrong(f"{file.path}: a mixture of experts is not supported")
    hidden, heads = file.of_model("embedding_length", int), file.of_model("attention.head_count", int)
    if heads <= 0 or hidden <= 0:
        raise Wrong(f"{file.path}: expected embedding_length and attention.head_count above 0")
    head_dim = file.of_model("attention.key_length", int, hidden // heads)
    theta = file.of_model("rope.freq_base", float, 10000.0)
    if (rotated := file.of_model("rope.dimension_count", int, head_dim)) != head_dim:
        raise Wrong(
            f"{file.path}: {file.architecture}.rope.dimension_count: expected {head_dim}, got {rotated}"
        )
    if "token_embd.weight" not in file.tensors:
        raise Wrong(f"{file.path}: expected a tensor token_embd.weight")
    config = {
        "architectures": [CLASSES[file.architecture]],
        "model_type": file.architecture,
        "vocab_size": shape_of(file.tensors["token_embd.weight"])[0],
        "hidden_size": hidden,
        "intermediate_size": file.of_model("feed_forward_length", int),
        "num_hidden_layers": file.of_model("block_count", int),
        "num_attention_heads": heads,
        "num_key_value_heads": file.of_model("attention.head_count_kv", int, heads),
        "head_dim": head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": file.of_model("context_length", int),
        "rms_norm_eps": round(file.of_model("attention.layer_norm_rms_epsilon", float), 12),
        "rope_theta": theta,
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "torch_dtype": dtype,
    }
    if file.architecture == "llama":
        config["attention_bias"] = "blk.0.attn_q.bias" in file.tensors
        config["mlp_bias"] = "blk.0.ffn_up.bias" in file.tensors
    if scaling := rope_scaling(file, head_dim, theta):
        config["rope_scaling"] = scaling
    for name in ("bos", "eos"):
        token = file.get(f"tokenizer.ggml.{name}_token_id", int, required=False)
        if token is not None:
            config[f"{name}_token_id"] = token
    return config


def expected_tensors(file, config):
    """{name in the GGUF file: (name in safetensors, shape, heads whose rows are reordered or 0)}"""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    heads, kv_heads, head_dim = (
        config[n] for n in ("num_attention_heads", "num_key_value_heads", "head_dim")
    )
    llama = file.architecture == "llama"
    found = {
        "token_embd.weight": ("model.embed_tokens.weight", (config["vocab_size"], hidden), 0),
        "output_norm.weight": ("model.norm.weight", (hidden,), 0),
    }
    if not config["tie_word_embeddings"]:
        found["output.weight"] = ("lm_head.weight", (config["vocab_size"], hidden), 0)
    qkv_bias = file.architecture == "qwen2" or config.get("attention_bias")
    mlp_bias = config.get("mlp_bias")
    for layer in range(config["num_hidden_layers"]):
        here, there = f"blk.{layer}.", f"model.layers.{layer}."
        for name, target, rows, columns, rotated, bias in (
            ("attn_q", "self_attn.q_proj", heads * head_dim, hidden, heads, qkv_bias),
            ("attn_k", "self_attn.k_proj", kv_heads * head_dim, hidden, kv_heads, qkv_bias),
            ("attn_v", "self_attn.v_proj", kv_heads * head_dim, hidden, 0, qkv_bias),
            ("attn_output", "self_attn.o_proj", hidden, heads * head_dim, 0, config.get("attention_bias")),
            ("ffn_gate", "mlp.gate_proj", inner, hidden, 0, mlp_bias),
            ("ffn_up", "mlp.up_proj", inner, hidden, 0, mlp_bias),
            ("ffn_down", "mlp.down_proj", hidden, inner, 0, mlp_bias),
        ):
            rotated = rotated if llama else 0
            found[f"{here}{name}.weight"] = (f"{there}{target}.weight", (rows, columns), rotated)
            if bias:
                found[f"{here}{name}.bias"] = (f"{there}{target}.bias", (rows,), rotated)
        found[f"{here}attn_norm.weight"] = (f"{there}input_layernorm.weight", (hidden,), 0)
        found[f"{here}ffn_norm.weight"] = (f"{there}post_attention_layernorm.weight", (hidden,), 0)
        if file.architecture == "qwen3":
            found[f"{here}attn_q_norm.weight"] = (f"{there}self_attn.q_norm.weight", (head_dim,), 0)
            found[f"{here}attn_k_norm.weight"] = (f"{there}self_attn.k_norm.weight", (head_dim,), 0)
    for name, (_, shape, _) in found.items():
        if name not in file.tensors:
            raise Wrong(f"{file.path}: expected a tensor {name} of shape {list(shape)}")
        if shape_of(file.tensors[name]) != shape:
            raise Wrong(
                f"{file.path}: {name}: expected shape {list(shape)}, got {list(shape_of(file.tensors[name]))}"
            )
    if others := sorted(set(file.tensors) - set(found) - {"rope_freqs.weight"}):
        raise Wrong(
            f"{file.path}: {len(others)} tensors that no {CLASSES[file.architecture]} has: {others[0]}..."
        )
    return found


def values_of(file, name, rotated, dtype):
    """A tensor's bytes in safetensors' order."""
    import numpy

    tensor = file.tensors[name]
    try:
        values = file.dequantize(tensor.data, tensor.tensor_type)
    except NotImplementedError as error:
        raise Wrong(
            f"{file.path}: {name}: quantised as {tensor.tensor_type.name}, which gguf cannot read"
        ) from error
    values = numpy.ascontiguousarray(values, dtype=numpy.float32).reshape(shape_of(tensor))
    if rotated:
        rest = values.shape[1:]
        values = (
            values.reshape(rotated, values.shape[0] // rotated // 2, 2, *rest)
            .swapaxes(1, 2)
            .reshape(values.shape)
        )
    if dtype == "float32":
        return numpy.ascontiguousarray(values).tobytes()
    if dtype == "float16":
        with numpy.errstate(over="ignore"):
            return values.astype(numpy.float16).tobytes()
    bits = numpy.ascontiguousarray(values).view(numpy.uint32)  # to the nearest, ties to even; NaN stays NaN
    rounded = ((bits + numpy.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)
    return numpy.where(numpy.isnan(values), numpy.uint16(0x7FC0), rounded).tobytes()


class Progress:
    """One line on a terminal, from two seconds on."""

    def __init__(self, total):
        self.total, self.done, self.began, self.shown = total, 0, time.monotonic(), 0.0

    def add(self, count):
        self.done += count
        now = time.monotonic()
        if sys.stderr.isatty() and now - self.began > 2 and now - self.shown > 0.2:
            self.shown = now
            left = (now - self.began) * (self.total / max(self.done, 1) - 1)
            print(
                f"\rimport-gguf: {100 * self.done // max(self.total, 1)} %, {left:.0f} s left ",
                end="",
                file=sys.stderr,
                flush=True,
            )

    def end(self):
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def write_weights(file, config, folder, dtype):
    wanted = expected_tensors(file, config)
    tag, width = DTYPES[dtype]
    shards, size = [[]], 0
    for name, (_, shape, _) in wanted.items():
        count = math.prod(shape) * width
        if shards[-1] and size + count > SHARD_BYTES:
            shards.append([])
            size = 0
        shards[-1].append(name)
        size += count
    parameters = sum(math.prod(shape) for _, shape, _ in wanted.values())
    progress, index, written = Progress(parameters), {}, []
    for number, names in enumerate(shards, 1):
        label = "model" if len(shards) == 1 else f"model-{number:05}-of-{len(shards):05}"
        header, at = {"__metadata__": {"format": "pt"}}, 0
        for name in names:
            target, shape, _ = wanted[name]
            end = at + math.prod(shape) * width
            header[target] = {"dtype": tag, "shape": list(shape), "data_offsets": [at, end]}
            index[target], at = f"{label}.safetensors", end
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        with open(folder / f"{label}.safetensors", "wb") as out:
            out.write(len(text).to_bytes(8, "little") + text)
            for name in names:
                out.write(values_of(file, name, wanted[name][2], dtype))
                progress.add(math.prod(wanted[name][1]))
        written.append(f"{label}.safetensors")
    progress.end()
    if len(shards) > 1:
        (folder / "model.safetensors.index.json").write_text(
            json.dumps({"metadata": {"total_size": parameters * width}, "weight_map": index}, indent=1) + "\n"
        )
        written.append("model.safetensors.index.json")
    return parameters, written


def _added_tokens(tokens, kinds):
    return [
        {
            "id": number,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind == CONTROL,
        }
        for number, (token, kind) in enumerate(zip(tokens, kinds))
        if kind in (CONTROL, USER_DEFINED)
    ]


def _begins_with(token, number):
    """The post-processor that puts `token`, which is `number`, before each text."""
    first, second = ({"SpecialToken": {"id": token, "type_id": i}} for i in (0, 1))
    texts = [{"Sequence": {"id": name, "type_id": i}} for i, name in enumerate("AB")]
    return {
        "type": "TemplateProcessing",
        "single": [first, texts[0]],
        "pair": [first, texts[0], second, texts[1]],
        "special_tokens": {token: {"id": token, "ids": [number], "tokens": [token]}},
    }


def tokenizer_of(file):
    """tokenizer.json as the `tokenizers` package reads it."""
    kind = file.get("tokenizer.ggml.model", str)
    if kind != "gpt2":
        raise Wrong(f"{file.path}: tokenizer.ggml.model: expected gpt2, got {kind!r}; give --tokenizer FILE")
    pre = file.get("tokenizer.ggml.pre", str, "gpt-2")
    if pre not in PRE_TOKENIZERS:
        raise Wrong(
            f"{file.path}: tokenizer.ggml.pre: expected one of {', '.join(PRE_TOKENIZERS)}, "
            f"got {pre!r}; give --tokenizer FILE"
        )
    pattern, digits, gpt2, ignore_merges, nfc, begins = PRE_TOKENIZERS[pre]
    tokens, merges = file.get("tokenizer.ggml.tokens", list), file.get("tokenizer.ggml.merges", list)
    kinds = file.get("tokenizer.ggml.token_type", list, [1] * len(tokens))
    if len(kinds) != len(tokens):
        raise Wrong(
            f"{file.path}: tokenizer.ggml.token_type: expected {len(tokens)} values, got {len(kinds)}"
        )
    if len(set(tokens)) != len(tokens):
        raise Wrong(f"{file.path}: tokenizer.ggml.tokens: expected {len(tokens)} different tokens")
    steps = []
    if pattern:
        steps.append(
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        )
    if digits:
        steps.append({"type": "Digits", "individual_digits": True})
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": gpt2}
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(tokens, kinds),
        "normalizer": {"type": "NFC"} if nfc else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*steps, byte_level]} if steps else byte_level,
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": ignore_merges,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": merges,
        },
    }
    bos = file.get("tokenizer.ggml.bos_token_id", int, required=False)
    if bos is not None and 0 <= bos < len(tokens) and file.get("tokenizer.ggml.add_bos_token", bool, begins):
        document["post_processor"] = _begins_with(tokens[bos], bos)
    return document


def write_tokenizer(file, config, folder, given):
    written = ["tokenizer.json"]
    if given:
        shutil.copyfile(given, folder / "tokenizer.json")
    else:
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer_of(file), ensure_ascii=False))
    tokens = file.get("tokenizer.ggml.tokens", list, [])
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config["max_position_embeddings"],
        "clean_up_tokenization_spaces": False,
    }
    for name, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding")):
        token = file.get(f"tokenizer.ggml.{key}_token_id", int, required=False)
        if token is not None and 0 <= token < len(tokens):
            about[f"{name}_token"] = tokens[token]
    if template := file.get("tokenizer.chat_template", str, required=False):
        about["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n")
    ends = {
        token
        for name in ("eos", "eot", "eom")
        if (token := file.get(f"tokenizer.ggml.{name}_token_id", int, required=False)) is not None
    }
    if ends:
        generation = {"eos_token_id": sorted(ends) if len(ends) > 1 else ends.pop()}
        if "bos_token_id" in config:
            generation["bos_token_id"] = config["bos_token_id"]
        (folder / "generation_config.json").write_text(json.dumps(generation, indent=1) + "\n")
        written.append("generation_config.json")
    return [*written, "tokenizer_config.json"]


def convert(path, folder, dtype, tokenizer):
    file = File(path)
    config = config_of(file, dtype)
    folder = pathlib.Path(folder)
    staged = folder.with_name(f".{folder.name}.import-{os.getpid()}")
    try:  # around the making of the folder too: an interrupt right after it has to find the cleanup
        staged.mkdir()
        tokenizer_files = write_tokenizer(file, config, staged, tokenizer)  # its errors come soon
        (staged / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        parameters, weights = write_weights(file, config, staged, dtype)
        if folder.is_dir():
            folder.rmdir()  # empty, or an error
        staged.rename(folder)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return {
        "architecture": file.architecture,
        "parameters": parameters,
        "bytes": parameters * DTYPES[dtype][1],
        "dtype": dtype,
        "files": ["config.json", *weights, *tokenizer_files],
        "tokenizer": tokenizer or file.get("tokenizer.ggml.pre", str, "gpt-2"),
    }


def fail(message, as_json):
    message = "".join(c if c.isprintable() else repr(c)[1:-1] for c in message)
    if as_json:
        print(json.dumps({"error": {"message": message, "blame": "input"}}))
    print(f"nereid: {message}", file=sys.stderr)
    sys.exit(2)


def main(path, folder, options):
    def interrupted(*_):
        for number in (signal.SIGINT, signal.SIGTERM):  # a second one does not stop the cleanup
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupted)
    signal.signal(signal.SIGINT, interrupted)
    options = json.loads(options)
    try:
        made = convert(path, folder, options["dtype"], options["tokenizer"])
    except Wrong as wrong:
        fail(str(wrong), options["json"])
    except OSError as error:
        fail(f"{error.filename or folder}: {error.strerror or error}", options["json"])
    except KeyboardInterrupt:
        print("nereid: interrupted", file=sys.stderr)
        sys.exit(130)
    if options["json"]:
        print(json.dumps(made))
    else:
        print(
            f"{folder}: {made['parameters']} parameters in {made['dtype']}, {made['architecture']}; "
            f"{made['tokenizer']}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
