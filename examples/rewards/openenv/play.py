"""OpenEnv's client against `nereid serve`: an episode of two attempts.

pip install openenv-core
nereid serve --tasks examples/rewards/tasks &
python examples/rewards/openenv/play.py http://127.0.0.1:8000
"""

import asyncio
import sys

from openenv import GenericEnvClient

ANSWER = """One program handles 1024 elements.
```python
import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.where(x < 0.5, 0.0, x), mask=i < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
```
"""


async def main(url):
    async with GenericEnvClient(base_url=url) as env:
        begun = await env.reset(task="relu", max_turns=2)
        print(f"task {begun.observation['task']}: {len(begun.observation['reference'])} characters")
        for answer in (ANSWER, ANSWER.replace("0.5", "0.0")):
            result = await env.step({"code": answer})
            print(
                f"reward {result.reward}, done {result.done}: "
                f"{result.observation['feedback'].splitlines()[0]}"
            )
        print(f"state: {await env.state()}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
