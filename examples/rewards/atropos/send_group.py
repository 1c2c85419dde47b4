"""A group of answers, scored by Nereid and sent to Atropos' API with an advantage for each token.

pip install atroposlib
run-api &                                             # and a trainer that registers
python examples/rewards/atropos/send_group.py http://127.0.0.1:8000
"""

import json
import pathlib
import sys
import urllib.request

from nereid import rewards

TASK = (pathlib.Path(__file__).resolve().parents[1] / "tasks/relu.py").read_text()
PROMPT = f"Write this module as Triton kernels:\n```python\n{TASK}```\n"
RIGHT = """One program handles 1024 elements.
```python
import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.where(x < 0.0, 0.0, x), mask=i < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
```
"""


def encode(text):
    """A toy tokenizer: a token for each four characters. A real one returns input_ids and offset_mapping."""
    places = [(i, min(i + 4, len(text))) for i in range(0, len(text), 4)]
    return [sum(text[begin:end].encode()) % 1000 for begin, end in places], places


def main(url):
    group = rewards.atropos_group(PROMPT, [RIGHT, RIGHT.replace("0.0, x", "0.5, x")], encode)
    print(f"scores {group['scores']}")
    request = urllib.request.Request(
        f"{url}/scored_data", json.dumps(group).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        print(answer.read().decode())


if __name__ == "__main__":
    main(sys.argv[1])
