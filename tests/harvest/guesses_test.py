"""Arguments and inputs that `nereid harvest` guesses: modules whose first guess fails are called after what
their errors ask for.

    guesses_test.py
"""

import sys
import unittest
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from nereid._harvest import arguments, building, inputs


def shapes(cls):
    """Shapes of the inputs of the call that worked."""
    graph = building._of_class(cls)
    return [tuple(leaf.tensor.shape) for leaf in graph.leaves if leaf.kind == "argument"]


class Columns(nn.Module):
    """A vector of 40 features, which no form has."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(40, 5)

    def forward(self, x):
        return self.layer(x)


class Bands(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv1d(6, 24, 3), nn.BatchNorm1d(24)

    def forward(self, x):
        batch, channels, length = x.shape
        return self.norm(self.conv(x)).reshape(batch, -1)


class Volumes(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv3d(5, 4, 2)

    def forward(self, x):
        return self.conv(x).relu()


class Words(nn.Module):
    """Its argument's name does not say that it is integers."""

    def __init__(self):
        super().__init__()
        self.table, self.norm = nn.Embedding(16, 24), nn.LayerNorm(24)

    def forward(self, sentence):
        return self.norm(self.table(sentence))


class Two(nn.Module):
    """Widths of two inputs that differ."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(12, 8), nn.Linear(20, 8)

    def forward(self, left, right):
        return self.a(left) + self.b(right)


class Optional(nn.Module):
    """An argument with a default that does not work."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(32, 32)

    def forward(self, x, context=None):
        return self.layer(context.mean(0)) + x


class Dimensions(nn.Module):
    def __init__(self, spatial_dims, kernel):
        super().__init__()
        self.conv = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[spatial_dims - 1](4, 4, kernel)

    def forward(self, x):
        return self.conv(x)


class Pair(nn.Module):
    """A number would not do."""

    def __init__(self, window):
        super().__init__()
        self.pool = nn.AvgPool2d([min(side, 3) for side in window])

    def forward(self, x):
        return self.pool(x)


class Named(nn.Module):
    """It says what it misses."""

    def __init__(self, n_chans=None, n_outputs=None):
        super().__init__()
        if n_chans is None:
            raise ValueError("n_chans could not be inferred")
        if n_outputs is None:
            raise ValueError("n_outputs is needed")
        self.layer = nn.Linear(n_chans, n_outputs)

    def forward(self, x):
        return self.layer(x)


class Activated(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.how = how()

    def forward(self, x):
        return self.how(x) * 2


class Guesses(unittest.TestCase):
    def test_what_an_error_asks_for_is_given(self):
        self.assertEqual(shapes(Columns)[0][-1], 40)
        self.assertEqual(shapes(Bands)[0][1], 6)
        self.assertEqual(len(shapes(Bands)[0]), 3)
        self.assertEqual(shapes(Volumes)[0][1], 5)
        self.assertEqual([shape[-1] for shape in shapes(Two)], [12, 20])
        self.assertEqual(len(shapes(Words)[0]), 2)
        self.assertEqual(len(shapes(Optional)), 2)
        self.assertTrue(shapes(Named) and shapes(Pair) and shapes(Activated) and shapes(Dimensions))

    def test_the_layers_of_torch_nn(self):
        named = (getattr(nn, name) for name in dir(nn))
        classes = [
            c for c in named if isinstance(c, type) and issubclass(c, nn.Module) and "Lazy" not in c.__name__
        ]
        failed = set()
        for cls in classes:
            try:
                shapes(cls)
            except Exception:
                failed.add(cls.__name__)
        # Containers, a target or a variance with values of its own, and options of which one has to be given.
        self.assertLessEqual(len(failed), 30, failed)
        for name in (
            "Conv1d",
            "Conv3d",
            "MaxPool1d",
            "AvgPool3d",
            "GRUCell",
            "Bilinear",
            "GroupNorm",
            "Embedding",
        ):
            self.assertNotIn(name, failed)

    def test_repairs_differ_from_what_failed(self):
        given = [torch.randn(2, 3, 32, 32), torch.randn(2, 3, 32, 32)]
        for message in (
            "mat1 and mat2 shapes cannot be multiplied (6x32 and 40x5)",
            "Given groups=1, weight of size [4, 8, 3, 3], expected input[2, 3, 32, 32] to have 8 channels, "
            "but got 3 channels",
            "running_mean should contain 3 elements not 16",
            "Expected 3D (unbatched) or 5D (batched) input to conv3d",
            "The size of tensor a (32) must match the size of tensor b (7) at non-singleton dimension 3",
        ):  # fmt: skip
            found = [inputs.signature(each) for each in inputs.repaired(given, RuntimeError(message))]
            self.assertTrue(found, message)
            self.assertEqual(len(set(found)), len(found), message)
            self.assertNotIn(inputs.signature(given), found, message)
        self.assertEqual(list(inputs.repaired(given, RuntimeError("no reason given"))), [])

    def test_a_constructor_that_is_not_understood_is_left(self):
        self.assertEqual(list(arguments.repaired(Pair, {"window": 16}, ValueError("no"))), [])


if __name__ == "__main__":
    unittest.main()
