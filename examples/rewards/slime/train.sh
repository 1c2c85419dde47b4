#!/usr/bin/env bash
# slime with rewards from `nereid serve`: its remote reward model, and the answer's key `reward` as the
# number.
#
#   NEREID_SERVER=http://judge:8000 MODEL=Qwen3-8B DATA=kernels.jsonl examples/rewards/slime/train.sh
#
# A row's `label` is its reference: source text, or a name in the server's tasks. Without a server, in the
# trainer's own process: --custom-rm-path nereid.rewards.custom_rm in place of --rm-type and --rm-url.
set -euo pipefail
python train.py \
  --hf-checkpoint "$MODEL" \
  --prompt-data "$DATA" --input-key prompt --label-key label --apply-chat-template \
  --rm-type remote_rm --rm-url "$NEREID_SERVER/slime" --reward-key reward \
  --advantage-estimator grpo --n-samples-per-prompt 8 "$@"
