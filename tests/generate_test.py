"""`nereid generate` against transformers, on random small models with a tokenizer made for them.

    generate_test.py NEREID [--device cpu|cuda]

Greedy tokens are transformers' own, whatever the size of batches, blocks and pieces; log-probabilities too.
Samples depend on their seed alone; end tokens, stop strings and lengths end them; what is wrong is reported.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"  # tensors this small are not worth a second thread
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM
from transformers.utils import logging

logging.set_verbosity_error()
logging.disable_progress_bar()

MORE = 24
PROMPTS = [
    "def add(a, b):\n    return",
    "x",
    "The quick brown fox — jumps über the lazy dog. " * 6,
    "import torch\n\nclass Model(torch.nn.Module):\n",
    "1 2 3 4 5 6 7",
]
SMALL = dict(
    hidden_size=64,
    intermediate_size=96,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=512,
    initializer_range=0.25,
    eos_token_id=0,
    bos_token_id=None,
    pad_token_id=0,
)


def make_tokenizer():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        [Path(__file__).read_text()],
        trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=["<|end|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return tokenizer


class Test:
    def __init__(self, nereid, device, folder, kind):
        self.nereid, self.device, self.folder, self.failures = nereid, device, Path(folder), 0
        self.tokenizer = make_tokenizer()
        torch.manual_seed(7)
        vocabulary = self.tokenizer.get_vocab_size()
        if kind == "qwen3":
            model = Qwen3ForCausalLM(Qwen3Config(vocab_size=vocabulary, head_dim=16, **SMALL))
        else:
            model = LlamaForCausalLM(LlamaConfig(vocab_size=vocabulary, tie_word_embeddings=True, **SMALL))
        self.model = model.eval()
        model.save_pretrained(self.folder, max_shard_size="100KB")
        self.tokenizer.save(str(self.folder / "tokenizer.json"))
        (self.folder / "prompts.jsonl").write_text("".join(json.dumps({"prompt": p}) + "\n" for p in PROMPTS))

    def expect(self, holds, what):
        if not holds:
            self.failures += 1
        print("ok    " if holds else "FAILED", what, flush=True)

    def run(self, *words, code=0):
        done = subprocess.run(
            [self.nereid, "generate", "--model", self.folder, "--device", self.device, *map(str, words)],
            capture_output=True,
            text=True,
        )
        self.expect(
            done.returncode == code,
            f"exit code {code} of"
            f" {' '.join(map(str, words))[:100]!r}, got {done.returncode}: {done.stderr[-300:]}",
        )
        return done

    def answers(self, *words):
        lines = [
            json.loads(line)
            for line in self.run(
                "--prompts", self.folder / "prompts.jsonl", "--json", *words
            ).stdout.splitlines()
        ]
        return {(line["index"], line["sample"]): line for line in lines}

    @torch.no_grad()
    def greedy(self, prompt):
        """Tokens, and their log-probabilities, by transformers."""
        ids = torch.tensor([self.tokenizer.encode(prompt).ids])
        out = self.model.generate(
            ids, max_new_tokens=MORE, do_sample=False, output_logits=True, return_dict_in_generate=True
        )
        tokens = out.sequences[0, ids.shape[1] :].tolist()
        return tokens, [
            step[0].log_softmax(-1)[token].item() for step, token in zip(out.logits, tokens, strict=True)
        ]

    def greedy_is_transformers(self):
        expected = [self.greedy(p) for p in PROMPTS]
        for words in [
            (),
            ("--sequences", 1),
            ("--block-size", 3, "--step-tokens", 7),
            ("--sequences", 2, "--block-size", 1),
        ]:
            got = self.answers("--temperature", 0, "--max-tokens", MORE, *words)
            same = [got[i, 0]["tokens"] == tokens for i, (tokens, _) in enumerate(expected)]
            self.expect(all(same), f"greedy tokens are transformers', with {words}")
            furthest = max(
                abs(a - b)
                for i, (_, logs) in enumerate(expected)
                for a, b in zip(got[i, 0]["logprobs"], logs)
            )
            self.expect(furthest < 1e-4, f"log-probabilities differ by {furthest:.1e}")
            self.expect(
                all(line["text"] == self.tokenizer.decode(line["tokens"]) for line in got.values()),
                "texts are the tokens'",
            )
            self.expect(
                all(
                    line["finish_reason"] == ("end" if line["tokens"][-1] == 0 else "length")
                    for line in got.values()
                ),
                "reasons to end",
            )

    def samples_are_seeded(self):
        words = ("--temperature", 1.2, "--top-p", 0.95, "--top-k", 50, "--max-tokens", 12, "-n", 3)
        one, again, other = (
            self.answers(*words, "--seed", 1),
            self.answers(*words, "--seed", 1, "--sequences", 2),
            self.answers(*words, "--seed", 2),
        )
        tokens = lambda answers: {key: line["tokens"] for key, line in answers.items()}  # noqa: E731
        self.expect(len(one) == 3 * len(PROMPTS), "three samples of each prompt")
        self.expect(tokens(one) == tokens(again), "the same seed gives the same samples in other batches")
        self.expect(tokens(one) != tokens(other), "another seed gives others")
        self.expect(one[0, 0]["tokens"] != one[0, 1]["tokens"], "samples of a prompt differ")

    def stops(self):
        whole = json.loads(
            self.run(
                "--prompt", PROMPTS[0], "--temperature", 0, "--max-tokens", MORE, "--ignore-end", "--json"
            ).stdout
        )
        stop = whole["text"][8:11]
        cut = json.loads(
            self.run(
                "--prompt",
                PROMPTS[0],
                "--temperature",
                0,
                "--max-tokens",
                MORE,
                "--ignore-end",
                "--stop",
                stop,
                "--json",
            ).stdout
        )
        self.expect(
            cut["text"] == whole["text"][: whole["text"].find(stop)] and cut["finish_reason"] == "stop",
            f"{stop!r} ends {whole['text']!r}: {cut['text']!r}",
        )
        plain = self.run(
            "--prompt", PROMPTS[0], "--temperature", 0, "--max-tokens", MORE, "--ignore-end"
        ).stdout
        self.expect(plain == whole["text"] + "\n", "what is streamed is the text")

    def some_are_enough(self):
        words = (
            "--temperature",
            1.2,
            "--max-tokens",
            40,
            "-n",
            6,
            "--seed",
            3,
            "--stop",
            "e",
            "--stop",
            "t",
            "--stop",
            "a",
        )
        whole, some = self.answers(*words), self.answers(*words, "--enough", 2)
        self.expect(
            len(whole) == 6 * len(PROMPTS)
            and all(whole[key]["tokens"] == some[key]["tokens"] for key in some),
            "those that are kept are the same",
        )
        self.expect(len(some) < len(whole), f"{len(some)} of {len(whole)} samples were waited for")
        for prompt in range(len(PROMPTS)):
            ended = sorted(
                len(line["tokens"])
                for (index, _), line in whole.items()
                if index == prompt and line["finish_reason"] != "length"
            )
            kept = sorted(
                len(line["tokens"])
                for (index, _), line in some.items()
                if index == prompt and line["finish_reason"] != "length"
            )
            self.expect(kept == ended[:2], f"of prompt {prompt} the first two to end: {kept} of {ended}")
        self.expect(
            "--enough: expected at most 1 (--samples), got 2"
            in self.run("--prompt", "x", "--enough", 2, code=2).stderr,
            "no more than all are enough",
        )

    def chats(self):
        rendered = (
            "<|im_start|>system\nBe"
            " brief.<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n"
        )
        words = ("--temperature", 0, "--max-tokens", 8, "--json")
        whole = json.loads(self.run("--prompt", rendered, *words).stdout)["tokens"]
        asked = json.loads(self.run("--chat", "--system", "Be brief.", "--prompt", "Why?", *words).stdout)[
            "tokens"
        ]
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
        (self.folder / "chat.jsonl").write_text(
            json.dumps({"messages": messages})
            + "\n"
            + json.dumps({"tokens": self.tokenizer.encode(rendered).ids})
            + "\n"
        )
        lines = [
            json.loads(line)["tokens"]
            for line in self.run("--prompts", self.folder / "chat.jsonl", *words).stdout.splitlines()
        ]
        (self.folder / "chat.jsonl").write_text(json.dumps({"prompt": "Why?"}))
        lines.append(
            json.loads(
                self.run(
                    "--prompts", self.folder / "chat.jsonl", "--chat", "--system", "Be brief.", *words
                ).stdout
            )["tokens"]
        )
        self.expect([asked, *lines] == [whole] * 4, "a conversation is its template's text, and its tokens")
        (self.folder / "chat.jsonl").write_text(
            json.dumps({"messages": messages, "prefill": "<think>\nFirst"})
            + "\n"
            + json.dumps({"prompt": rendered + "<think>\nFirst"})
        )
        begun, continued = (
            json.loads(line)
            for line in self.run("--prompts", self.folder / "chat.jsonl", *words).stdout.splitlines()
        )
        self.expect(
            begun["tokens"] == continued["tokens"] != whole and begun["text"] == continued["text"],
            "an answer whose beginning is given continues from there",
        )
        template = self.folder / "chat_template.jinja"
        template.write_text("{{ bos_token }}<|start_header_id|>...<|eot_id|>")
        rendered = (
            "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nWhy?<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n"
        )
        whole = json.loads(self.run("--prompt", rendered, *words).stdout)["tokens"]
        self.expect(
            json.loads(self.run("--chat", "--prompt", "Why? ", *words).stdout)["tokens"] == whole,
            "a conversation with Llama 3 is Llama 3's",
        )
        template.write_text("[INST]")
        self.expect(
            "chat_template.jinja: expected the chat template of"
            in self.run("--chat", "--prompt", "Why?", *words, code=2).stderr,
            "a foreign template is refused",
        )
        template.unlink()

    def errors(self):
        for words, said in [
            (("--prompt", "x", "--prompts", "y"), "expected either --prompt or --prompts"),
            (("--prompts", "/nowhere.jsonl"), "/nowhere.jsonl: No such file"),
            (
                ("--prompt", "x", "--dtype", "int8"),
                "--dtype: expected float32, bfloat16 or float16, got 'int8'",
            ),
            (("--prompt", "x", "--seed", -1), "expected a whole number from 0 to 2^64 - 1, got '-1'"),
            (
                ("--prompt", "x", "--seed", 2**64),
                f"expected a whole number from 0 to 2^64 - 1, got '{2**64}'",
            ),
            (("--prompt", "x", "--temperature", "nan"), "expected a number from 0 to 100, got 'nan'"),
            (("--prompt", "word " * 600), "expected fewer than 512, as many as the model's context has"),
        ]:
            done = self.run(*words, code=2)
            self.expect(
                said in done.stderr,
                f"reported: {said!r}{'' if said in done.stderr else ', got ' + repr(done.stderr)}",
            )
        unknown = subprocess.run([self.nereid, "frobnicate"], capture_output=True, text=True)
        self.expect(
            unknown.returncode == 2
            and "there is no command 'frobnicate': expected one of optimize, verify," in unknown.stderr,
            f"an unknown command is named: {unknown.stderr!r}",
        )
        full = subprocess.run(
            [
                "sh",
                "-c",
                'exec "$@" > /dev/full',
                "sh",
                self.nereid,
                "generate",
                "--model",
                self.folder,
                "--device",
                self.device,
                "--prompt",
                "x",
                "--max-tokens",
                "4",
                "--json",
            ],
            capture_output=True,
            text=True,
        )
        self.expect(
            full.returncode == 3 and "stdout: No space left on device" in full.stderr,
            f"a full disk is reported: {full.stderr!r}",
        )
        (self.folder / "broken.jsonl").write_text('{"prompt": "x"}\n{"prompt": 3}\n')
        done = self.run("--prompts", self.folder / "broken.jsonl", code=2)
        self.expect(
            "broken.jsonl:2.prompt: expected text, got 3" in done.stderr,
            "the line of a broken prompt is reported",
        )
        broken = next(self.folder.glob("model*1*.safetensors"))
        weights = load_file(broken)
        for tensor in weights.values():
            tensor.fill_(float("nan"))
        save_file(weights, broken, {"format": "pt"})
        done = self.run("--prompt", "x", code=2)
        self.expect(
            "prompt 0, sample 0: expected numbers for token 0, got NaN" in done.stderr,
            f"weights that are no numbers are reported: {done.stderr!r}",
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nereid", type=Path)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    failures = 0
    for kind in ("qwen3", "llama"):
        with tempfile.TemporaryDirectory() as folder:
            test = Test(arguments.nereid, arguments.device, folder, kind)
            test.greedy_is_transformers()
            if kind == "qwen3":
                test.samples_are_seeded()
                test.stops()
                test.some_are_enough()
                test.chats()
                test.errors()
            failures += test.failures
    print(failures, "failures")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
