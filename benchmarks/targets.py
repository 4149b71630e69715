# SPDX-License-Identifier: Apache-2.0
"""The works that are measured, and how the index has to stand in them."""

from benchmarks.measure import Target

FROM_NOW = 'fits from now'
FROM_NOW_COLD = 'fits from now, new flavors'
ANY_WINDOW = 'fits in any window'
ANY_WINDOW_UNSEEN = 'fits in any window, new flavors'
NEAR = 'earliest start, near'
FAR = 'earliest start, far'
PAIR = 'add + remove'
PAIR_IN_BATCH = 'add + remove in batches of 1000'
LOAD = 'load'
ROWS_MEMORY = 'memory of the rows, per allocation'
MEMORY = 'memory in all, per allocation'
RESIDENT = 'resident memory, per allocation'

FEW_FROM_NOW = 'fits from now, 10 allocations a host'
FEW_ANY_WINDOW = 'fits in any window, 10 allocations a host'
MANY_FROM_NOW = 'fits from now, the same on 10 times the hosts'
MANY_ANY_WINDOW = 'fits in any window, the same on 10 times the hosts'

SHORT_ON_SPARSE = 'add + remove of 1 h, host with 100 allocations'
SHORT_ON_DENSE = 'add + remove of 1 h, dense host'
LONG_ON_SPARSE = 'add + remove of 180 d, host with 100 allocations'
LONG_ON_DENSE = 'add + remove of 180 d, dense host'

BEFORE_CHURN = 'resident memory before churn'
AFTER_CHURN = 'resident memory after churn'

INDEX = 'index'
ROWS_ONLY = 'index, rows only'


def _beside(
    work: str, ratios: dict[str, float], subject: str = INDEX
) -> list[Target]:
    """Return how many times faster than each peer a subject has to be."""
    return [
        Target(work, subject, against=(work, peer), ratio=ratio)
        for peer, ratio in ratios.items()
    ]


def _within(times: float, work: str, other: str) -> Target:
    """Return that a work may take so many times what another takes."""
    return Target(work, INDEX, against=(other, INDEX), ratio=1 / times)


TARGETS = [
    *_beside(FROM_NOW, {'numpy CSR': 1000, 'intervaltree': 20000}),
    *_beside(ANY_WINDOW, {'numpy CSR': 80, 'intervaltree': 2000}),
    *_beside(
        ANY_WINDOW, {'numpy CSR': 6, 'bisect lists': 18, 'intervaltree': 200},
        ROWS_ONLY,
    ),
    *_beside(NEAR, {'numpy flat': 300}),
    *_beside(FAR, {'numpy flat': 10}),
    *_beside(PAIR, {'intervaltree': 4}),
    _within(1 / 2, PAIR_IN_BATCH, PAIR),
    *_beside(LOAD, {'intervaltree': 8}),
    Target(LOAD, INDEX, at_most=1),
    Target(ROWS_MEMORY, INDEX, at_most=80),
    Target(MEMORY, INDEX, at_most=160),
    _within(12, MANY_FROM_NOW, FEW_FROM_NOW),
    _within(15, MANY_ANY_WINDOW, FEW_ANY_WINDOW),
    _within(5, SHORT_ON_DENSE, SHORT_ON_SPARSE),
    _within(20, LONG_ON_DENSE, LONG_ON_SPARSE),
    _within(1.1, AFTER_CHURN, BEFORE_CHURN),
]
