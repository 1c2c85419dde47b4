"""How fast a small model writes on a CPU: a Qwen 3 of 12.5 million random parameters, asked as
`nereid optimize` asks it.

bench/host_model.py NEREID NEREID_LM [--folder DIR] [--most TOKENS]
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]


def make(nereid, folder):
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    shape = dict(
        vocab_size=4096,
        hidden_size=320,
        intermediate_size=1024,
        num_hidden_layers=8,
        num_attention_heads=5,
        num_key_value_heads=5,
        head_dim=64,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        initializer_range=0.05,
        eos_token_id=1,
        bos_token_id=None,
        pad_token_id=0,
    )
    Qwen3ForCausalLM(Qwen3Config(**shape)).to(torch.bfloat16).save_pretrained(folder)
    specials = [x for word in ("<|im_start|>", "<|im_end|>") for x in ("--special", word)]
    subprocess.run(
        [
            nereid,
            "tokenize",
            "--train",
            "--vocab",
            "4090",
            *specials,
            "-o",
            folder / "tokenizer.json",
            *REPOSITORY.glob("python/nereid/**/*.py"),
            *REPOSITORY.glob("docs/*.md"),
        ],
        check=True,
    )


def measure(lm, folder, samples, most, *arguments):
    process = subprocess.Popen(
        [lm, "propose", "--model", folder, "--device", "cpu", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert json.loads(process.stdout.readline())["ready"]

    def ask(number, count):
        question = {
            "id": number,
            "messages": [{"role": "user", "content": (REPOSITORY / "tests/tasks/mlp.py").read_text()}],
            "samples": list(range(samples)),
            "max_tokens": count,
        }
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        begin, tokens = time.perf_counter(), 0
        while "over" not in (line := json.loads(process.stdout.readline())):
            tokens += line.get("tokens", 0)  # or what an answer has so far
        return tokens, time.perf_counter() - begin

    def used():
        return sum(
            map(int, pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13])
        ) / os.sysconf("SC_CLK_TCK")

    ask(0, 1)
    before = used()
    tokens, seconds = ask(1, most)
    processor = used() - before
    process.stdin.close()
    process.wait()
    print(
        f"{samples:3} samples {' '.join(arguments):12} {tokens:6} tokens in {seconds:6.2f} s:"
        f" {tokens / seconds:7.1f} a second, {tokens / max(processor, 0.01):7.1f} a second of processor time",
        flush=True,
    )


parser = argparse.ArgumentParser()
parser.add_argument("nereid", type=pathlib.Path)
parser.add_argument("lm", type=pathlib.Path)
parser.add_argument("--folder", type=pathlib.Path, help="a model of one's own, or where the random one goes")
parser.add_argument("--most", type=int, help="tokens of 16 samples, and nothing else")
given = parser.parse_args()
with tempfile.TemporaryDirectory() as temporary:
    folder = given.folder or pathlib.Path(temporary)
    if not (folder / "config.json").exists():
        make(given.nereid, folder)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for samples, most in [(16, given.most)] if given.most else ((1, 600), (16, 200), (64, 100)):
        measure(given.lm, folder, samples, most)
    for samples, most in () if given.most else ((1, 200), (16, 50)):
        measure(given.lm, folder, samples, most, "--plain")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime:.1f} s of CPU time in all, load {os.getloadavg()[0]:.1f}")
