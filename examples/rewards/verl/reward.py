"""verl's custom reward function.

    pip install verl
    NEREID_SERVER=http://judge:8000 python -m verl.trainer.main_ppo \
        reward.custom_reward_function.path=examples/rewards/verl/reward.py \
        reward.custom_reward_function.name=compute_score \
        data.train_files=kernels.parquet actor_rollout_ref.model.path=MODEL

A row's `ground_truth` is its reference: source text, or a name in the server's tasks. `score` is the reward;
`acc`, `valid`, `speedup`, `plan` and `code` are logged. A fault of the judge is an exception, never a low
score.
"""

from nereid.rewards import compute_score

__all__ = ["compute_score"]
