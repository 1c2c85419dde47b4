"""A stand-in for a language model: an OpenAI-compatible endpoint that knows how to write relu(x * a) + b.

    python3 endpoint.py COMMAND...    runs the command with $NEREID_HTTP_BASE set to this endpoint

Its answers depend on what is in its prompt. By itself it writes a kernel for each operator. With a skill
that shows `fused_chain` it writes one kernel for all of them, but some answers, more or less by the task,
still have two; with one that shows `relu_with_offset` it writes two kernels; with one that shows
`copied_first` it copies its input before and its output after; with one that shows `offset_later` it forgets
the offset in every second answer. Asked which skills it wants, it names all that it was offered, and one that
does not exist. Asked for a skill, it writes one whose code shows `fused_chain`.
"""

import collections
import http.server
import json
import os
import re
import subprocess
import sys
import threading

KERNEL = """
@triton.jit
def {name}(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count)
    tl.store(y_ptr + at, {value}, mask=at < count)

"""

SKILL = """+++
name = "fused-chain"
operators = []
tags = ["pointwise", "fusion"]
when = "Several elementwise operators follow each other."
+++
Load once, apply all operators in registers, store once. A launch for each operator moves the tensor each
time.

```python
@triton.jit
def fused_chain(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count)
    tl.store(y_ptr + at, tl.maximum(x * a, 0.0) + b, mask=at < count)
```
"""


def answer(kernels):
    """A whole answer: kernels (name, value) one after the other."""
    code = "import torch\nimport triton\nimport triton.language as tl\nfrom torch import nn\n\n"
    code += "".join(KERNEL.format(name=name, value=value) for name, value in kernels)
    code += "\nclass ModelNew(nn.Module):\n    def forward(self, x):\n        count = x.numel()\n"
    for name, _ in kernels:
        code += "        y = torch.empty_like(x)\n"
        code += f"        {name}[(triton.cdiv(count, 256),)](x, y, count, BLOCK=256)\n        x = y\n"
    return f"{len(kernels)} launches.\n\n```python\n{code}        return x\n```"


def written(prompt, number):
    """The answer to a task's prompt; `number` counts the answers to the same prompt."""
    found = re.search(r"relu\((\w+) \* ([\d.]+)\) \+ ([\d.]+)", prompt)
    if found is None:
        return "I do not know how to write that."
    a, b = found[2], found[3]
    scale, relu, add = (
        ("scale_kernel", f"x * {a}"),
        ("relu_kernel", "tl.maximum(x, 0.0)"),
        ("add_kernel", f"x + {b}"),
    )
    if "fused_chain" in prompt:
        often = 2 + len(found[1]) % 4
        if number % often == often - 1:
            return answer([scale, ("relu_add_kernel", f"tl.maximum(x, 0.0) + {b}")])
        return answer([("fused_kernel", f"tl.maximum(x * {a}, 0.0) + {b}")])
    if "relu_with_offset" in prompt:
        return answer([scale, ("relu_add_kernel", f"tl.maximum(x, 0.0) + {b}")])
    if "copied_first" in prompt:
        return answer([("copy_in_kernel", "x"), scale, relu, add, ("copy_out_kernel", "x")])
    if "offset_later" in prompt:
        if number % 2 == 1:
            return answer([("scaled_relu_kernel", f"tl.maximum(x * {a}, 0.0)")])
        return answer([("fused_kernel", f"tl.maximum(x * {a}, 0.0) + {b}")])
    return answer([scale, relu, add])


class Endpoint(http.server.BaseHTTPRequestHandler):
    prompts = []  # of all requests, for tests
    counts = collections.Counter()
    lock = threading.Lock()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = "\n".join(message["content"] for message in body["messages"])
        with self.lock:
            self.prompts.append(prompt)
            number = self.counts[prompt]
            self.counts[prompt] += 1
        if "Which of them do you want to read first?" in prompt:
            text = "\n".join(["not-offered"] + re.findall(r"^\* ([a-z0-9-]+):", prompt, re.M))
        elif "Write down what to do in later tasks" in prompt:
            text = SKILL
        else:
            text = written(prompt, number)
        reply = json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *arguments):
        pass


def started():
    """The server, and the environment of commands that use it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}/v1"
    return server, {**os.environ, "NEREID_HTTP_BASE": base, "NEREID_HTTP_MODEL": "stand-in"}


if __name__ == "__main__":
    sys.exit(subprocess.run(sys.argv[1:], env=started()[1]).returncode)
