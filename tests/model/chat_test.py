"""`nereid tokenize --chat` against what transformers' apply_chat_template renders, on random conversations,
for each family of chat templates.

The templates are those that the families publish; of Qwen 3's and of Llama 3's tools only what conversations
without tools go through.

    tests/model/chat_test.py PATH/TO/nereid
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

from transformers import PreTrainedTokenizerFast

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tokenizer_files  # noqa: E402

NEREID = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/release/bin/nereid").resolve()

TEMPLATES = pathlib.Path(__file__).parent / "chat_templates"
TEMPLATE = (TEMPLATES / "qwen3.jinja").read_text()

QWEN25 = (TEMPLATES / "qwen2.5.jinja").read_text()
# In the file of Qwen 2 the ends of lines stand in the literals themselves.
QWEN2 = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{"
    " '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}{{'<|im_start|>' +"
    " message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if"
    " add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA30 = (
    "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content ="
    " '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim +"
    " '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content"
    " }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%"
    " endif %}"
)
LLAMA31 = (TEMPLATES / "llama3.1.jinja").read_text()
LLAMA32 = LLAMA31.replace(
    """    {%- set date_string = "26 Jul 2024" %}
""",
    """    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
""",
)
assert "strftime_now" in LLAMA32

PIECES = [
    "",
    "\n",
    "\n\n",
    "<think>",
    "</think>",
    "<think>\n",
    "\n</think>\n\n",
    "yes",
    " no ",
    "<tool_response>",
    "</tool_response>",
    "{{ x }}",
    "é",
    "<|im_end|>",
    " ",
    "\t",
    "\u3000",
    "\u00a0",
    "\x1c",
    "\u200b",
    "<|eot_id|>",
]


def conversation(rng):
    messages = []
    for _ in range(rng.randint(1, 7)):
        message = {
            "role": rng.choice(["system", "user", "user", "assistant", "assistant"]),
            "content": "".join(rng.choice(PIECES) for _ in range(rng.randint(0, 6))),
        }
        if rng.random() < 0.2:
            message["reasoning_content"] = rng.choice(["", "\nhm\n", "because", None])
        messages.append(message)
    return messages


def nereid(folder, chats, *options):
    """The prompts of conversations, lines with `text` and `ids`."""
    stdin = b"".join(json.dumps(chat).encode() + b"\0" for chat in chats)
    answer = subprocess.run(
        [NEREID, "tokenize", "-t", folder / "tokenizer.json", "--chat", "-0", "--json", *options],
        input=stdin,
        capture_output=True,
        timeout=1200,
    )
    assert answer.returncode == 0, answer.stderr.decode()
    return [json.loads(line) for line in answer.stdout.splitlines()]


class Chat(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.temporary.name)
        for kind in ("qwen", "llama3"):
            (cls.root / kind).mkdir()
            tokenizer = tokenizer_files.trained(kind, ["yes no user assistant system Today Date"], 400)
            text = tokenizer.to_str()
            if kind == "llama3":
                tokenizer.add_special_tokens(["<|start_header_id|>", "<|end_header_id|>"])
                text = (
                    tokenizer.to_str()
                    .replace("<|im_start|>", "<|begin_of_text|>")
                    .replace("<|im_end|>", "<|eot_id|>")
                )
            (cls.root / kind / "tokenizer.json").write_text(text)
        rng = random.Random(1)
        cls.chats = [conversation(rng) for _ in range(800)]
        cls.chats += [
            [{"role": "user", "content": a}, {"role": "assistant", "content": b + c + d}]
            for a in PIECES[:6]
            for b in PIECES[:14]
            for c in PIECES[:6]
            for d in PIECES[:2]
        ]

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def folder(self, kind, name):
        """With a copy of a kind's tokenizer.json."""
        folder = self.root / name
        folder.mkdir()
        (folder / "tokenizer.json").write_bytes((self.root / kind / "tokenizer.json").read_bytes())
        return folder

    def same(self, folder, kind, template, chats):
        reference = PreTrainedTokenizerFast(
            tokenizer_file=str(self.root / kind / "tokenizer.json"),
            bos_token="<|begin_of_text|>",
            chat_template=template,
        )
        for options, expected in [
            ([], {"add_generation_prompt": True}),
            (["--no-thinking"], {"add_generation_prompt": True, "enable_thinking": False}),
            (["--no-prompt"], {"add_generation_prompt": False}),
        ]:
            lines = nereid(folder, chats, *options)
            self.assertEqual(len(lines), len(chats))
            for number, (chat, line) in enumerate(zip(chats, lines)):
                self.assertEqual(
                    line["text"], reference.apply_chat_template(chat, tokenize=False, **expected), chat
                )
                if number % 10 == 0:
                    self.assertEqual(
                        line["ids"],
                        reference.apply_chat_template(chat, tokenize=True, return_dict=False, **expected),
                        chat,
                    )

    def test_each_family(self):
        for name, kind, template in [
            ("qwen3", "qwen", TEMPLATE),
            ("qwen2.5", "qwen", QWEN25),
            ("qwen2", "qwen", QWEN2),
            ("llama3.0", "llama3", LLAMA30),
            ("llama3.1", "llama3", LLAMA31),
            ("llama3.2", "llama3", LLAMA32),
        ]:
            with self.subTest(name):
                folder = self.folder(kind, name)
                (folder / "tokenizer_config.json").write_text(
                    json.dumps({"bos_token": "x", "chat_template": template})
                )
                self.same(folder, kind, template, self.chats)

    def test_where_a_template_stands(self):
        """As transformers writes it; in a list; and where there is none."""
        chats = self.chats[:50]
        written = self.root / "written"
        PreTrainedTokenizerFast(
            tokenizer_file=str(self.root / "llama3/tokenizer.json"), chat_template=LLAMA31
        ).save_pretrained(written)
        self.same(written, "llama3", LLAMA31, chats)
        named = self.folder("qwen", "named")
        (named / "tokenizer_config.json").write_text(
            json.dumps(
                {
                    "chat_template": [
                        {"name": "tool_use", "template": "{{ x }}"},
                        {"name": "default", "template": QWEN25},
                    ]
                }
            )
        )
        self.same(named, "qwen", QWEN25, chats)
        self.same(self.root / "qwen", "qwen", TEMPLATE, chats)
        self.same(self.root / "llama3", "llama3", LLAMA30, chats)

    def test_another_template_is_refused(self):
        for number, (name, text, message) in enumerate(
            [
                (
                    "chat_template.jinja",
                    "{{ messages[0].content }}",
                    (
                        "chat_template.jinja: expected the chat template of Qwen 3, Qwen 2.5 or Llama 3, got"
                        " another ('{{ messages"
                    ),
                ),
                (
                    "chat_template.jinja",
                    QWEN25.replace("assistant\\n' }}", "assistant\\n<think>\\n' }}"),
                    "expected the chat template",
                ),
                (
                    "tokenizer_config.json",
                    json.dumps({"chat_template": "[INST]"}),
                    "tokenizer_config.json.chat_template: expected the chat template",
                ),
                ("tokenizer_config.json", json.dumps({"chat_template": 5}), "chat_template: expected"),
                (
                    "tokenizer_config.json",
                    json.dumps({"chat_template": [{"name": "rag", "template": "x"}]}),
                    "one that is called default",
                ),
                ("tokenizer_config.json", "{", "tokenizer_config.json"),
            ]
        ):
            folder = self.folder("qwen", f"other{number}")
            (folder / name).write_text(text)
            words = [NEREID, "tokenize", "-t", folder / "tokenizer.json"]
            answer = subprocess.run([*words, "--chat"], input="[]", capture_output=True, text=True)
            self.assertEqual(answer.returncode, 2, answer.stderr)
            self.assertIn(message, answer.stderr)
            self.assertEqual(
                subprocess.run(words, input="a text", capture_output=True, text=True).returncode, 0
            )


if __name__ == "__main__":
    unittest.main()
