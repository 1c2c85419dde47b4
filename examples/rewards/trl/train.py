"""TRL's GRPOTrainer, rewarded by Nereid: a toy model on a CPU, three steps.

    pip install trl
    python examples/rewards/trl/train.py

The toy's vocabulary is three whole answers, one right, one wrong and one that is no kernel, so that it can
learn something in three steps. With a real model only `model`, `tokenizer` and the data set change.
"""

import pathlib
import tempfile

import torch
from datasets import Dataset
from nereid import rewards
from tokenizers import Tokenizer, decoders, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

TASK = (pathlib.Path(__file__).parents[1] / "tasks/relu.py").read_text()
PROMPT = f"Write this module as Triton kernels:\n```python\n{TASK}```\n"
KERNEL = """One program handles 1024 elements.
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
ANSWERS = [KERNEL, KERNEL.replace("0.0, x", "0.5, x"), "I cannot do that."]


def toy():
    """A model of one layer whose tokens are the prompt and the answers."""
    words = ["<pad>", "<eos>", PROMPT, *ANSWERS]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<pad>"))
    tokenizer.decoder = decoders.Fuse()
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", padding_side="left"
    )
    torch.manual_seed(0)
    size = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = LlamaConfig(vocab_size=len(words), **size, pad_token_id=0, eos_token_id=1, bos_token_id=None)
    return LlamaForCausalLM(config), wrapped


def probabilities(model, tokenizer):
    """Of each answer, after the prompt."""
    with torch.no_grad():
        logits = model(torch.tensor([tokenizer.encode(PROMPT)])).logits[0, -1]
    return logits.softmax(-1)[3:].tolist()


def main():
    model, tokenizer = toy()
    before = probabilities(model, tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=model,
            processing_class=tokenizer,
            reward_funcs=[rewards.trl()],
            train_dataset=Dataset.from_list([{"prompt": PROMPT, "reference": TASK}] * 8),
            args=GRPOConfig(
                output_dir=folder, max_steps=3, per_device_train_batch_size=16, num_generations=16,
                max_completion_length=1, learning_rate=0.01, lr_scheduler_type="constant", logging_steps=1,
                use_cpu=True, bf16=False, report_to=[], save_strategy="no", seed=1,
            ),
        )  # fmt: skip
        trainer.train()
    for line in trainer.state.log_history:
        if "reward" in line:
            print(f"step {line['step']}: reward {line['reward']:.3f}")
    after = probabilities(model, tokenizer)
    for name, one, other in zip(("right", "wrong", "none"), before, after):
        print(f"{name}: probability {one:.3f} before, {other:.3f} after")


if __name__ == "__main__":
    main()
