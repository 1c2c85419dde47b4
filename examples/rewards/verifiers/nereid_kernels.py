"""A taskset for verifiers 1 and prime-rl, rewarded by Nereid.

pip install verifiers
PYTHONPATH=examples/rewards/verifiers vf-validate nereid_kernels
PYTHONPATH=examples/rewards/verifiers vf-eval nereid_kernels -m MODEL --client.base-url URL
"""

import pathlib

from nereid import rewards

NereidTaskset = rewards.verifiers_taskset(pathlib.Path(__file__).resolve().parents[1] / "tasks")

__all__ = ["NereidTaskset"]
