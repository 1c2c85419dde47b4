"""Shapes of models, and what a run of reinforcement learning needs of a GPU's memory."""

QWEN3 = {
    "0.6b": {
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "tie_word_embeddings": True,
        "vocab_size": 151936,
    },
    "8b": {
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "tie_word_embeddings": False,
        "vocab_size": 151936,
    },
    # For a dry run on a CPU.
    "toy": {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "tie_word_embeddings": True,
        "vocab_size": 6144,
    },
}
# Prompts a step (in groups of eight answers), answers that are written at a time, rows of one forward.
STEPS = {
    "0.6b": {"prompts": 32, "sequences": 256, "rows": 8},
    "8b": {"prompts": 16, "sequences": 128, "rows": 2},
    "toy": {"prompts": 2, "sequences": 8, "rows": 1},
}
# GB besides weights, gradients and optimizer: keys and values of the answers under way, activations of one
# forward, logits, CUDA's own.
WORKING = {"0.6b": 12, "8b": 14, "toy": 0}


def parameters(shape):
    """Of a Qwen3 of this shape."""
    hidden, heads, pairs, dim = (
        shape[key] for key in ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim")
    )
    attention = hidden * dim * (2 * heads + 2 * pairs) + 2 * dim
    layer = attention + 3 * hidden * shape["intermediate_size"] + 2 * hidden
    embeddings = shape["vocab_size"] * hidden * (1 if shape["tie_word_embeddings"] else 2)
    return shape["num_hidden_layers"] * layer + embeddings + hidden


def gigabytes(shape, ranks, offload=False):
    """That a GPU holds of `ranks`: bfloat16 weights and gradients, gradients in float32 (the engine needs
    whole weights, so all of these are whole), and its share of masters and two moments, unless these are the
    host's."""
    return parameters(shape) * (2 + 2 + 4 + (0 if offload else 12 / ranks)) / 1e9


def host_gigabytes(shape):
    """That masters and two moments take of the host's memory, whatever the number of ranks."""
    return parameters(shape) * 12 / 1e9
