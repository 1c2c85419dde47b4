"""A SkyRL environment, rewarded by Nereid: two turns, the first answer wrong.

    pip install skyrl-gym
    python examples/rewards/skyrl/environment.py

In a SkyRL run, `import environment` in the entry point registers it, and `environment.env_class=nereid`
selects it; a row's `reward_spec.ground_truth` is its reference.
"""

import pathlib

import skyrl_gym
from nereid import rewards

skyrl_gym.register(id="nereid", entry_point=rewards.skyrl_env(turns=2))
TASK = (pathlib.Path(__file__).resolve().parents[1] / "tasks/relu.py").read_text()
WRONG = """```python
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


def main():
    env = skyrl_gym.make("nereid", env_config={}, extras={"reward_spec": {"ground_truth": TASK}})
    env.init([{"role": "user", "content": "Write this module as Triton kernels."}])
    for answer in (WRONG, WRONG.replace("0.5", "0.0")):
        step = env.step(answer)
        print(
            f"reward {step['reward']}, done {step['done']}, components "
            f"{step['metadata']['reward_components']}"
        )
        for message in step["observations"]:
            print(f"next message: {message['content'].splitlines()[0]}")


if __name__ == "__main__":
    main()
