"""`nereid tokenize --chat` beside Jinja's rendering of Qwen 3's chat template, on random conversations.

The template is the part of the one in Qwen 3's tokenizer_config.json that conversations without tools go through, in its own words.

    tests/model/chat_test.py PATH/TO/nereid
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import jinja2.sandbox

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tokenizer_files  # noqa: E402

NEREID = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/release/bin/nereid").resolve()

TEMPLATE = r"""
{%- if messages[0].role == 'system' %}
    {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning_content) %}
                {{- '<|im_start|>' + message.role + '\n<think>\n' + reasoning_content.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
            {%- else %}
                {{- '<|im_start|>' + message.role + '\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}"""
# As transformers compiles it.
COMPILED = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(TEMPLATE)

PIECES = ["", "\n", "\n\n", "<think>", "</think>", "<think>\n", "\n</think>\n\n", "yes", " no ", "<tool_response>", "</tool_response>", "{{ x }}", "é", "<|im_end|>"]


def conversation(rng):
    messages = []
    for _ in range(rng.randint(1, 7)):
        message = {"role": rng.choice(["system", "user", "user", "assistant", "assistant"]),
                   "content": "".join(rng.choice(PIECES) for _ in range(rng.randint(0, 6)))}
        if rng.random() < 0.2:
            message["reasoning_content"] = rng.choice(["", "\nhm\n", "because", None])
        messages.append(message)
    return messages


class Chat(unittest.TestCase):
    def test_random_conversations(self):
        rng = random.Random(1)
        chats = [conversation(rng) for _ in range(3000)]
        chats += [[{"role": "user", "content": a}, {"role": "assistant", "content": b + c + d}] for a in PIECES[:6] for b in PIECES for c in PIECES for d in PIECES[:8]]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokenizer.json"
            tokenizer = tokenizer_files.trained("qwen", ["yes no user assistant"], 300)
            tokenizer.save(str(path))
            stdin = b"".join(json.dumps(chat).encode() + b"\0" for chat in chats)
            for options, expected in [([], {"add_generation_prompt": True}), (["--no-thinking"], {"add_generation_prompt": True, "enable_thinking": False}),
                                      (["--no-prompt"], {"add_generation_prompt": False})]:
                answer = subprocess.run([NEREID, "tokenize", "-t", path, "--chat", "-0", "--json", *options], input=stdin, capture_output=True, timeout=100, check=True)
                lines = [json.loads(line) for line in answer.stdout.splitlines()]
                self.assertEqual(len(lines), len(chats))
                for number, (chat, line) in enumerate(zip(chats, lines)):
                    text = COMPILED.render(messages=chat, **expected)
                    self.assertEqual(line["text"], text, chat)
                    if number % 10 == 0:
                        self.assertEqual(line["ids"], tokenizer.encode(text).ids, chat)


if __name__ == "__main__":
    unittest.main()
