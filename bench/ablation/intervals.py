"""Means with 95 % bootstrap intervals over seeds and tasks.

A measure is a matrix of cells, one row a seed and one column a task, a cell a pair (value, weight); its mean
is the sum of weight * value over the sum of weights. A resample draws seeds with replacement and, apart from
that, tasks with replacement: both are samples of what could have been drawn. Of two arms that were asked the
same tasks, the same tasks are drawn for both, so that what makes a task hard falls out of the difference;
seeds are drawn for each on its own, for run 1 of one arm has nothing in common with run 1 of another.
"""

import dataclasses
import math

import numpy

RESAMPLES = 4000
SHARE = 0.95


@dataclasses.dataclass
class Interval:
    mean: float
    low: float
    high: float


def sums_of(matrix):
    """[seeds, tasks]: the products value * weight, and the weights."""
    cells = numpy.array(matrix, dtype=float)
    return cells[:, :, 0] * cells[:, :, 1], cells[:, :, 1]


def mean_of(matrix):
    """None where nothing has a weight."""
    products, weights = sums_of(matrix)
    return float(products.sum() / weights.sum()) if weights.sum() > 0 else None


def quantile(values, share):
    """The smallest of the values that at least that share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(max(math.ceil(share * len(ordered)) - 1, 0), len(ordered) - 1)]


def of_draws(mean, draws):
    known = draws[~numpy.isnan(draws)]
    tail = (1 - SHARE) / 2
    return Interval(mean, float(quantile(known, tail)), float(quantile(known, 1 - tail)))


def drawn(draw, count, resamples):
    """[resamples, count]: how often each of so many was drawn, drawing so many with replacement."""
    chosen = draw.integers(count, size=(resamples, count)) + count * numpy.arange(resamples)[:, None]
    return numpy.bincount(chosen.ravel(), minlength=count * resamples).reshape(resamples, count).astype(float)


def means_of(matrix, draw, tasks):
    """[resamples], NaN where nothing has a weight. `tasks`: as `drawn` has them; seeds are drawn here."""
    products, weights = sums_of(matrix)
    seeds = drawn(draw, len(matrix), len(tasks))
    totals, weights = (((seeds @ sums) * tasks).sum(axis=1) for sums in (products, weights))
    return numpy.divide(totals, weights, out=numpy.full(len(tasks), math.nan), where=weights > 0)


def interval(matrix, resamples=RESAMPLES, seed=0):
    """None where nothing has a weight."""
    mean, draw = mean_of(matrix), numpy.random.default_rng(seed)
    return (
        None
        if mean is None
        else of_draws(mean, means_of(matrix, draw, drawn(draw, len(matrix[0]), resamples)))
    )


def difference(one, other, resamples=RESAMPLES, seed=0):
    """Of one's mean from the other's; their columns are the same tasks. None where either has no weight."""
    means = mean_of(one), mean_of(other)
    if None in means:
        return None
    assert len(one[0]) == len(other[0]), "expected the same tasks on both sides"
    draw = numpy.random.default_rng(seed)
    tasks = drawn(draw, len(one[0]), resamples)
    return of_draws(means[0] - means[1], means_of(one, draw, tasks) - means_of(other, draw, tasks))
