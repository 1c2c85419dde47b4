"""The decoder against transformers: logits of random small models of each family, and checkpoints in both
directions.

    decoder_test.py NEREID_LM [--device cpu|cuda] [--only NAME]

In float32 logits differ by at most 1e-4; in bfloat16 they are from transformers' float32 at most twice as far
as transformers' own bfloat16. What we write, transformers loads without a key too many or too few, to the
same bits.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"  # nothing here is anybody's but ours
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from transformers.utils import logging

logging.set_verbosity_error()
logging.disable_progress_bar()

SMALL = dict(
    vocab_size=199,
    hidden_size=64,
    intermediate_size=96,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=512,
    initializer_range=0.15,
)


def rope(kind, **more):
    return dict(rope_type=kind, rope_theta=10000.0, **more)


LLAMA3_ROPE = rope(
    "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32
)
YARN = rope("yarn", factor=4.0, original_max_position_embeddings=64)

CASES = {  # name: (model class, configuration)
    "qwen3": (Qwen3ForCausalLM, Qwen3Config(**SMALL, head_dim=16)),
    "qwen3_tied_wide_heads": (Qwen3ForCausalLM, Qwen3Config(**SMALL, head_dim=32, tie_word_embeddings=True)),
    "qwen3_one_key_head": (Qwen3ForCausalLM, Qwen3Config(**SMALL | dict(num_key_value_heads=1), head_dim=24)),
    "qwen3_yarn_biased": (
        Qwen3ForCausalLM,
        Qwen3Config(**SMALL, head_dim=16, attention_bias=True, rope_parameters=YARN),
    ),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config(**SMALL, rope_parameters=rope("default") | dict(rope_theta=1e6))),
    "qwen2_tied_linear": (
        Qwen2ForCausalLM,
        Qwen2Config(**SMALL, tie_word_embeddings=True, rope_parameters=rope("linear", factor=2.0)),
    ),
    "qwen2_yarn": (
        Qwen2ForCausalLM,
        Qwen2Config(
            **SMALL | dict(num_key_value_heads=4),
            rope_parameters=YARN | dict(beta_fast=16.0, beta_slow=2.0, attention_factor=1.3),
        ),
    ),
    "llama": (LlamaForCausalLM, LlamaConfig(**SMALL, rms_norm_eps=1e-5)),
    "llama3": (
        LlamaForCausalLM,
        LlamaConfig(**SMALL, head_dim=20, rope_parameters=LLAMA3_ROPE, eos_token_id=[3, 5]),
    ),
    "llama3_tied_biased": (
        LlamaForCausalLM,
        LlamaConfig(
            **SMALL | dict(num_attention_heads=8),
            tie_word_embeddings=True,
            attention_bias=True,
            mlp_bias=True,
            rope_parameters=LLAMA3_ROPE | dict(factor=32.0),
        ),
    ),
}
LENGTHS = [1, 37, 90, 2]  # of the packed documents


class Failed(Exception):
    pass


def ours(tool, folder, documents, device, dtype, scratch):
    cumulative = torch.tensor(
        [0] + torch.tensor([len(d) for d in documents]).cumsum(0).tolist(), dtype=torch.int32
    )
    save_file({"tokens": torch.cat(documents), "cumulative": cumulative}, scratch / "tokens.safetensors")
    subprocess.run(
        [
            tool,
            "logits",
            folder,
            "--tokens",
            scratch / "tokens.safetensors",
            "-o",
            scratch / "logits.safetensors",
            "--device",
            device,
            "--dtype",
            dtype,
        ],
        check=True,
    )
    return load_file(scratch / "logits.safetensors")["logits"].split([len(d) for d in documents])


@torch.no_grad()
def theirs(model, documents, device):
    model.eval()
    return [model(d[None].to(device)).logits[0].float().cpu() for d in documents]


def furthest(some, others):
    return max((a - b).abs().max().item() for a, b in zip(some, others, strict=True))


def randomise(model):
    """Biases and norms too: at their defaults they would hide what is done with them."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("norm.weight"):
                parameter.uniform_(0.5, 1.5)
            elif name.endswith(".bias"):
                parameter.normal_(0, 0.2)


def old_spelling(folder):
    """config.json as transformers 4 wrote it."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    scaling = config.pop("rope_parameters")
    config["rope_theta"] = scaling.pop("rope_theta")
    config["rope_scaling"] = None if scaling["rope_type"] == "default" else scaling
    config["torch_dtype"] = config.pop("dtype")
    path.write_text(json.dumps(config))


def check(name, tool, device, scratch):
    cls, config = CASES[name]
    torch.manual_seed(sum(name.encode()))
    model = cls(config)
    randomise(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.bfloat16())  # one set of values for both types
    documents = [torch.randint(config.vocab_size, (n,)) for n in LENGTHS]
    folder = scratch / name
    # In one file, and in many.
    model.save_pretrained(folder, max_shard_size="100GB" if len(name) % 2 else "60KB")
    if len(name) % 3 == 0:
        old_spelling(folder)

    # `from_pretrained` keeps the rotary frequencies in float32, `model.bfloat16()` would not.
    exact = theirs(cls.from_pretrained(folder, dtype=torch.float32).to(device), documents, device)
    error = furthest(ours(tool, folder, documents, device, "float32", scratch), exact)
    spread = max(e.abs().max().item() for e in exact)
    rounded = theirs(cls.from_pretrained(folder, dtype=torch.bfloat16).to(device), documents, device)
    error_16 = furthest(ours(tool, folder, documents, device, "bfloat16", scratch), exact)
    own_16 = furthest(rounded, exact)
    print(
        f"{name:24} logits to {spread:5.1f}; float32 {error:.1e}; bfloat16 {error_16:.3f}, transformers' own"
        f" {own_16:.3f}",
        flush=True,
    )
    if not error <= 1e-4:
        raise Failed(f"{name}: float32 logits differ by {error}")
    if not error_16 <= 2 * own_16:
        raise Failed(f"{name}: bfloat16 logits are {error_16} from float32's, transformers' {own_16}")

    written = scratch / (name + "_written")
    subprocess.run(
        [
            tool,
            "export",
            folder,
            "-o",
            written,
            "--shard-bytes",
            "100000000" if len(name) % 2 == 0 else "50000",
        ],
        check=True,
    )
    loaded, info = AutoModelForCausalLM.from_pretrained(
        written, output_loading_info=True, dtype=torch.float32
    )
    for kind, keys in info.items():
        if keys:
            raise Failed(f"{name}: transformers finds {kind}: {keys}")
    before, after = cls.from_pretrained(folder, dtype=torch.float32).state_dict(), loaded.state_dict()
    if before.keys() != after.keys() or not all(torch.equal(before[k], after[k]) for k in before):
        raise Failed(f"{name}: a written checkpoint holds other values")
    # The same bits at other addresses: products may be summed in another order, no more.
    difference = furthest(theirs(loaded.to(device), documents, device), exact)
    if not difference <= 1e-5:
        raise Failed(
            f"{name}: transformers computes something else from a written checkpoint: logits differ by"
            f" {difference}"
        )
    if name == next(iter(CASES)):
        halves = scratch / "halves"
        subprocess.run([tool, "export", folder, "-o", halves, "--dtype", "bfloat16"], check=True)
        loaded_halves = AutoModelForCausalLM.from_pretrained(halves, dtype="auto")
        kept = loaded_halves.state_dict()
        if loaded_halves.dtype != torch.bfloat16 or not all(
            torch.equal(kept[k], before[k].bfloat16()) for k in before
        ):
            raise Failed(f"{name}: a checkpoint written in bfloat16 holds other values")
    if loaded.generation_config.eos_token_id != config.eos_token_id and config.eos_token_id is not None:
        raise Failed(
            f"{name}: generation ends with {loaded.generation_config.eos_token_id}, expected"
            f" {config.eos_token_id}"
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    failures = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in CASES:
            if arguments.only not in (None, name):
                continue
            try:
                check(name, arguments.tool, arguments.device, Path(scratch))
            except Failed as e:
                failures.append(str(e))
    for failure in failures:
        print("FAILED", failure)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
