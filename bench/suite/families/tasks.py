"""Writes the families suite: 43 tasks of real sizes in families that the compiler finds hard, one to five a
family.

    bench/suite/families/tasks.py DIR [--scale small]

DIR/index.jsonl has a line a task: its name and its family. `--scale small` writes the same modules at
sizes for a CPU.
"""

import argparse
import json
import pathlib
import re

# family: {task: (sizes, layers, forward, inputs, ...)}. Sizes are "NAME = real | small".
FAMILIES = {
    "softmax": {
        "softmax_rows": ("ROWS = 512 | 3, COLS = 131072 | 9001", "", "torch.softmax(x, -1)", "ROWS, COLS"),
        "softmax_log_rows": (
            "ROWS = 96 | 2, COLS = 1000000 | 10007",
            "",
            "torch.log_softmax(x, -1)",
            "ROWS, COLS",
        ),
        "softmax_half": (
            "ROWS = 512 | 3, COLS = 262144 | 9000",
            "",
            "torch.softmax(x, -1)",
            "ROWS, COLS, dtype=torch.bfloat16",
        ),
        "softmax_scaled_one_row": (
            "COLS = 100000000 | 20011",
            "",
            "torch.softmax(x * 0.5, 0)",
            "COLS",
        ),
        "softmax_logsumexp_rows": ("ROWS = 256 | 3, COLS = 524288 | 9001", "",
                                   "torch.logsumexp(x, -1)", "ROWS, COLS"),
    },
    "norm": {
        "norm_layer_image": (
            "BATCH = 64 | 2, CHANNELS = 64 | 6, SIDE = 160 | 40",
            "norm = nn.LayerNorm([CHANNELS, SIDE, SIDE])",
            "self.norm(x)",
            "BATCH, CHANNELS, SIDE, SIDE",
        ),
        "norm_l2_rows": (
            "ROWS = 2048 | 3, COLS = 65536 | 9001",
            "",
            "nn.functional.normalize(x, dim=1)",
            "ROWS, COLS",
        ),
        "norm_rms_long": (
            "ROWS = 512 | 3, COLS = 200000 | 9001",
            "",
            "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)",
            "ROWS, COLS",
        ),
        "norm_group": (
            "BATCH = 32 | 2, CHANNELS = 64 | 8, SIDE = 224 | 40",
            "norm = nn.GroupNorm(8, CHANNELS)",
            "self.norm(x)",
            "BATCH, CHANNELS, SIDE, SIDE",
        ),
        "norm_frobenius": (
            "BATCH = 64 | 2, SIDE = 1448 | 70",
            "",
            "x / torch.linalg.vector_norm(x)",
            "BATCH, SIDE, SIDE",
        ),
    },
    "pool": {
        "pool_max_1d": (
            "BATCH = 64 | 2, CHANNELS = 192 | 3, LENGTH = 16384 | 70",
            "pool = nn.MaxPool1d(8, stride=1, padding=4)",
            "self.pool(x)",
            "BATCH, CHANNELS, LENGTH",
        ),
        "pool_average_1d": (
            "BATCH = 64 | 2, CHANNELS = 128 | 3, LENGTH = 32768 | 71",
            "pool = nn.AvgPool1d(8, stride=2, padding=4)",
            "self.pool(x)",
            "BATCH, CHANNELS, LENGTH",
        ),
        "pool_max_3d": (
            "BATCH = 16 | 2, CHANNELS = 32 | 3, DEPTH = 64 | 9, SIDE = 96 | 13",
            "pool = nn.MaxPool3d(3, stride=2, padding=1)",
            "self.pool(x)",
            "BATCH, CHANNELS, DEPTH, SIDE, SIDE",
        ),
        "pool_average_3d": (
            "BATCH = 16 | 2, CHANNELS = 32 | 3, DEPTH = 64 | 9, SIDE = 96 | 13",
            "pool = nn.AvgPool3d(3, stride=2, padding=1)",
            "self.pool(x)",
            "BATCH, CHANNELS, DEPTH, SIDE, SIDE",
        ),
    },
    "scan": {
        "scan_cumprod_rows": (
            "ROWS = 16384 | 3, COLS = 8192 | 900",
            "",
            "torch.cumprod(x, 1)",
            "ROWS, COLS",
        ),
        "scan_cumsum_long": ("ROWS = 32 | 2, COLS = 4194304 | 40001", "", "torch.cumsum(x, 1)", "ROWS, COLS"),
        "scan_cumsum_reversed": (
            "ROWS = 4096 | 3, COLS = 32768 | 9001",
            "",
            "torch.cumsum(x.flip(1), 1).flip(1)",
            "ROWS, COLS",
        ),
        "scan_cumsum_columns": (
            "BATCH = 16 | 2, STEPS = 4096 | 300, CHANNELS = 2048 | 17",
            "",
            "torch.cumsum(x, 1)",
            "BATCH, STEPS, CHANNELS",
        ),
    },
    "transposed": {
        "transposed_1d_strided": (
            "BATCH = 32 | 2, IN = 64 | 5, OUT = 96 | 6, LENGTH = 16384 | 37",
            "conv = nn.ConvTranspose1d(IN, OUT, 5, stride=2, padding=1, dilation=2)",
            "self.conv(x)",
            "BATCH, IN, LENGTH",
        ),
        "transposed_2d_strided": (
            "BATCH = 32 | 2, IN = 64 | 5, OUT = 32 | 6, SIDE = 128 | 11",
            "conv = nn.ConvTranspose2d(IN, OUT, 4, stride=2, padding=1)",
            "self.conv(x)",
            "BATCH, IN, SIDE, SIDE",
        ),
        "transposed_2d_grouped": (
            "BATCH = 32 | 2, IN = 96 | 6, OUT = 96 | 9, SIDE = 96 | 11",
            "conv = nn.ConvTranspose2d(IN, OUT, 3, stride=2, padding=1, output_padding=1, groups=3)",
            "self.conv(x)",
            "BATCH, IN, SIDE, SIDE",
        ),
        "transposed_3d_strided": (
            "BATCH = 8 | 2, IN = 48 | 5, OUT = 24 | 6, DEPTH = 16 | 5, SIDE = 48 | 7",
            "conv = nn.ConvTranspose3d(IN, OUT, 3, stride=2, padding=1, output_padding=1)",
            "self.conv(x)",
            "BATCH, IN, DEPTH, SIDE, SIDE",
        ),
        "transposed_3d_grouped": (
            "BATCH = 8 | 2, IN = 64 | 8, OUT = 64 | 8, DEPTH = 16 | 5, SIDE = 32 | 7",
            "conv = nn.ConvTranspose3d(IN, OUT, (3, 5, 5), stride=2, padding=(1, 2, 2), groups=4)",
            "self.conv(x)",
            "BATCH, IN, DEPTH, SIDE, SIDE",
        ),
    },
    "conv": {
        "conv_depthwise": (
            "BATCH = 32 | 2, CHANNELS = 128 | 6, SIDE = 224 | 19",
            "conv = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, groups=CHANNELS)",
            "self.conv(x)",
            "BATCH, CHANNELS, SIDE, SIDE",
        ),
        "conv_depthwise_pointwise": (
            "BATCH = 32 | 2, CHANNELS = 64 | 6, OUT = 128 | 9, SIDE = 224 | 19",
            "depthwise = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, groups=CHANNELS, bias=False)\n"
            "pointwise = nn.Conv2d(CHANNELS, OUT, 1, bias=False)",
            "self.pointwise(self.depthwise(x))",
            "BATCH, CHANNELS, SIDE, SIDE",
        ),
        "conv_grouped": (
            "BATCH = 32 | 2, CHANNELS = 128 | 8, SIDE = 112 | 13",
            "conv = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, groups=4)",
            "self.conv(x)",
            "BATCH, CHANNELS, SIDE, SIDE",
        ),
        "conv_1d_dilated": (
            "BATCH = 64 | 2, IN = 64 | 5, OUT = 128 | 6, LENGTH = 16384 | 61",
            "conv = nn.Conv1d(IN, OUT, 3, stride=2, dilation=4)",
            "self.conv(x)",
            "BATCH, IN, LENGTH",
        ),
        "conv_3d_few_channels": (
            "BATCH = 16 | 2, IN = 3 | 3, OUT = 24 | 6, DEPTH = 32 | 6, SIDE = 112 | 15",
            "conv = nn.Conv3d(IN, OUT, (3, 5, 5), padding=(1, 2, 2))",
            "self.conv(x)",
            "BATCH, IN, DEPTH, SIDE, SIDE",
        ),
    },
    "product": {
        "product_irregular": (
            "M = 8205 | 83, K = 2949 | 61, N = 5921 | 71",
            "",
            "x @ y",
            "M, K; K, N",
        ),
        "product_small_inner": ("M = 16384 | 83, K = 32 | 32, N = 16384 | 71", "", "x @ y", "M, K; K, N"),
        "product_tall_skinny": ("M = 1000000 | 501, K = 64 | 48, N = 48 | 24", "", "x @ y", "M, K; K, N"),
        "product_long_inner": ("M = 256 | 33, K = 524288 | 5000, N = 256 | 30", "", "x @ y", "M, K; K, N"),
        "product_vector": ("M = 2048 | 17, K = 131072 | 5001", "", "x @ y", "M, K; K, 1"),
    },
    "recurrent": {
        "recurrent_lstm": (
            "BATCH = 128 | 5, STEPS = 512 | 7, IN = 256 | 20, HIDDEN = 512 | 36",
            "rnn = nn.LSTM(IN, HIDDEN, batch_first=True)",
            "self.rnn(x)[0]",
            "BATCH, STEPS, IN",
        ),
        "recurrent_lstm_two_layers": (
            "BATCH = 64 | 5, STEPS = 256 | 7, IN = 128 | 20, HIDDEN = 256 | 36",
            "rnn = nn.LSTM(IN, HIDDEN, num_layers=2, batch_first=True)\nhead = nn.Linear(HIDDEN, 10)",
            "self.head(self.rnn(x)[0][:, -1])",
            "BATCH, STEPS, IN",
        ),
        "recurrent_gru": (
            "BATCH = 128 | 5, STEPS = 512 | 7, IN = 256 | 20, HIDDEN = 512 | 36",
            "rnn = nn.GRU(IN, HIDDEN)",
            "self.rnn(x)",
            "STEPS, BATCH, IN",
        ),
        "recurrent_gru_bidirectional": (
            "BATCH = 64 | 5, STEPS = 256 | 7, IN = 128 | 20, HIDDEN = 256 | 36",
            "rnn = nn.GRU(IN, HIDDEN, bidirectional=True, batch_first=True)",
            "self.rnn(x)[0]",
            "BATCH, STEPS, IN",
        ),
        "recurrent_tanh_wide": (
            "BATCH = 64 | 5, STEPS = 256 | 6, IN = 512 | 20, HIDDEN = 1024 | 72",
            "rnn = nn.RNN(IN, HIDDEN)",
            "self.rnn(x)[0]",
            "STEPS, BATCH, IN",
        ),
        "recurrent_lstm_half": (
            "BATCH = 256 | 5, STEPS = 256 | 7, IN = 512 | 32, HIDDEN = 1024 | 160",
            "rnn = nn.LSTM(IN, HIDDEN, dtype=torch.bfloat16)",
            "self.rnn(x)[0]",
            "STEPS, BATCH, IN, dtype=torch.bfloat16",
        ),
    },
    "chain": {
        "chain_inverted_residual": (
            "BATCH = 64 | 2, CHANNELS = 32 | 8, SIDE = 112 | 15",
            "expand = nn.Conv2d(CHANNELS, 4 * CHANNELS, 1, bias=False)\n"
            "norm1 = nn.BatchNorm2d(4 * CHANNELS)\n"
            "depthwise = nn.Conv2d(4 * CHANNELS, 4 * CHANNELS, 3, padding=1, groups=4 * CHANNELS, "
            "bias=False)\n"
            "norm2 = nn.BatchNorm2d(4 * CHANNELS)\n"
            "project = nn.Conv2d(4 * CHANNELS, CHANNELS, 1, bias=False)\n"
            "norm3 = nn.BatchNorm2d(CHANNELS)\neval",
            "x + self.norm3(self.project(nn.functional.relu6(self.norm2(self.depthwise("
            "nn.functional.relu6(self.norm1(self.expand(x))))))))",
            "BATCH, CHANNELS, SIDE, SIDE",
        ),
        "chain_residual": (
            "BATCH = 64 | 2, CHANNELS = 64 | 16, SIDE = 56 | 14",
            "conv1 = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False)\n"
            "norm1 = nn.BatchNorm2d(CHANNELS)\n"
            "conv2 = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False)\n"
            "norm2 = nn.BatchNorm2d(CHANNELS)\neval",
            "torch.relu(x + self.norm2(self.conv2(torch.relu(self.norm1(self.conv1(x))))))",
            "BATCH, CHANNELS, SIDE, SIDE",
        ),
        "chain_dense": (
            "BATCH = 32 | 2, CHANNELS = 64 | 8, GROWTH = 32 | 4, SIDE = 56 | 14",
            "conv1 = nn.Conv2d(CHANNELS, GROWTH, 3, padding=1)\n"
            "conv2 = nn.Conv2d(CHANNELS + GROWTH, GROWTH, 3, padding=1)\n"
            "conv3 = nn.Conv2d(CHANNELS + 2 * GROWTH, GROWTH, 3, padding=1)",
            "y = torch.cat([x, torch.relu(self.conv1(x))], 1)\n"
            "y = torch.cat([y, torch.relu(self.conv2(y))], 1)\n"
            "torch.cat([y, torch.relu(self.conv3(y))], 1)",
            "BATCH, CHANNELS, SIDE, SIDE",
        ),
        "chain_loop_stacked": (
            "BATCH = 128 | 3, STEPS = 24 | 5, HIDDEN = 256 | 20",
            "inputs = nn.Linear(HIDDEN, HIDDEN)\nstate = nn.Linear(HIDDEN, HIDDEN, bias=False)",
            "h = torch.zeros_like(x[0])\nstates = []\nfor step in range(x.shape[0]):\n"
            "    h = torch.tanh(self.inputs(x[step]) + self.state(h))\n    states.append(h)\n"
            "torch.stack(states)",
            "STEPS, BATCH, HIDDEN",
        ),
    },
}


def sizes_of(text, small):
    """{"ROWS": 512} of "ROWS = 512 | 3"."""
    return {name: int(b if small else a) for name, a, b in re.findall(r"(\w+) = (\d+) \| (\d+)", text)}


def indented(lines, depth):
    return "".join(" " * depth + line + "\n" for line in lines)


def source_of(sizes, layers, forward, inputs):
    """A task's file: sizes are integers of the module, layers attributes, forward's last line its result."""
    head = "".join(f"{name} = {value}\n" for name, value in sizes.items())
    made = ["self." + line for line in layers.splitlines() if line != "eval"]
    made += ["self.eval()"] if layers.endswith("eval") else []
    tensors = inputs.split("; ")
    names = ", ".join("xyz"[: len(tensors)])
    *before, last = forward.splitlines()
    drawn = ", ".join(f"torch.randn({tensor})" for tensor in tensors)
    return (
        f"import torch\nimport torch.nn as nn\n\n{head}\n\nclass Model(nn.Module):\n    def __init__(self):\n"
        + indented(["super().__init__()", *made], 8)
        + f"\n    def forward(self, {names}):\n"
        + indented([*before, f"return {last}"], 8)
        + f"\n\ndef get_inputs():\n    return [{drawn}]\n\n\ndef get_init_inputs():\n    return []\n"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--scale", choices=("real", "small"), default="real")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True)
    with open(arguments.folder / "index.jsonl", "w") as index:
        for family, tasks in FAMILIES.items():
            for name, (sizes, *rest) in tasks.items():
                source = source_of(sizes_of(sizes, arguments.scale == "small"), *rest)
                (arguments.folder / f"{name}.py").write_text(source)
                index.write(json.dumps({"task": name, "family": family}) + "\n")


if __name__ == "__main__":
    main()
