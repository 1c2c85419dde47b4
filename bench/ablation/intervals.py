"""Means with 95 % bootstrap intervals over seeds and tasks.

A measure is a matrix of cells, one row a seed and one column a task, a cell a pair (value, weight); its mean is the sum of weight * value over
the sum of weights. A resample draws seeds with replacement and, apart from that, tasks with replacement: both are samples of what could have
been drawn. Of two arms that were asked the same tasks, the same tasks are drawn for both, so that what makes a task hard falls out of the
difference; seeds are drawn for each on its own, for run 1 of one arm has nothing in common with run 1 of another.
"""
import dataclasses
import math
import random

RESAMPLES = 4000
SHARE = 0.95


@dataclasses.dataclass
class Interval:
    mean: float
    low: float
    high: float


def mean_of(matrix, seeds=None, tasks=None):
    """None where nothing has a weight."""
    total = weights = 0.0
    for seed in range(len(matrix)) if seeds is None else seeds:
        row = matrix[seed]
        cells = row if tasks is None else [row[t] for t in tasks]
        total += sum(value * weight for value, weight in cells)
        weights += sum(weight for _, weight in cells)
    return total / weights if weights > 0 else None


def quantile(values, share):
    """The smallest of the values that at least that share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(max(math.ceil(share * len(ordered)) - 1, 0), len(ordered) - 1)]


def of_draws(mean, draws):
    known = [draw for draw in draws if draw is not None]
    tail = (1 - SHARE) / 2
    return Interval(mean, quantile(known, tail), quantile(known, 1 - tail))


class Columns:
    """One arm's sums for each task, for the seeds that a resample has drawn."""

    def __init__(self, matrix):
        self.products = [[value * weight for value, weight in row] for row in matrix]
        self.weights = [[weight for _, weight in row] for row in matrix]

    def mean(self, draw, tasks):
        total = weights = 0.0
        for seed in draw.choices(range(len(self.products)), k=len(self.products)):
            total += sum(map(self.products[seed].__getitem__, tasks))
            weights += sum(map(self.weights[seed].__getitem__, tasks))
        return total / weights if weights > 0 else None


def interval(matrix, resamples=RESAMPLES, seed=0):
    """None where nothing has a weight."""
    mean = mean_of(matrix)
    if mean is None:
        return None
    draw, columns, tasks = random.Random(seed), Columns(matrix), range(len(matrix[0]))
    return of_draws(mean, [columns.mean(draw, draw.choices(tasks, k=len(tasks))) for _ in range(resamples)])


def difference(one, other, resamples=RESAMPLES, seed=0):
    """Of one's mean from the other's; their columns are the same tasks. None where either has no weight."""
    means = mean_of(one), mean_of(other)
    if None in means:
        return None
    assert len(one[0]) == len(other[0]), "expected the same tasks on both sides"
    draw, sides, tasks, found = random.Random(seed), (Columns(one), Columns(other)), range(len(one[0])), []
    for _ in range(resamples):
        drawn = draw.choices(tasks, k=len(tasks))
        a, b = (side.mean(draw, drawn) for side in sides)
        found.append(None if a is None or b is None else a - b)
    return of_draws(means[0] - means[1], found)
