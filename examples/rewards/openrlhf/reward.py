"""OpenRLHF's reward function in a file.

    pip install openrlhf
    python -m openrlhf.cli.train_ppo_ray --reward.remote_url examples/rewards/openrlhf/reward.py ...

Or over HTTP, without this file: `--reward.remote_url http://judge:8000/openrlhf` with a `nereid serve`. A
row's label is its reference.
"""

from nereid.rewards import reward_func

__all__ = ["reward_func"]
