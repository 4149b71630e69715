# SPDX-License-Identifier: Apache-2.0
"""What the parts add to the tables of the tests that go through everything.

The tables of a part are in ``tests/parts/PART/tables.py``, each under a name
of its own, and each optional:

- `ROUTES`: the status and the body of a valid request, by method and path
- `VARIABLES`: a value for each variable of a path
- `READ`, `WRITE` and `ADMIN`: the rules that a reader, that only a member and
  that only an administrator passes
- `ANSWERS`: the answers of a manager without faults, by call
- `DRY_RUNS`: the requests that can be dry runs, each by method and path
- `RESERVING`: what a body that reserves has besides, by path
- `LIMITS`: the refusal and the body of what is one too many, by path and
  limit
- `REFUSALS`: the status of each exception, by class
- `BOUNDS`: what bounds the rows of a table, by table
- `LOOPS`: the names of the loops
- `PURGED`: the tables that a purge deletes from
- `BODY_RULES`: the rules that the body of a request needs besides, each with
  the method and the path
- `FAULTY`: by the label of the metric, the class with a loop, its step, the
  method that works on one object, and a function that returns what else is
  replaced, with the function that lists the objects as its argument
"""

from collections.abc import Iterator
import importlib.util
import itertools
import os
from typing import Any

import pytest

from blazar_sched.service import metrics
from blazar_sched.service import parts

# A test that is about all that there is, whichever part has it.
EVERY = pytest.mark.skipif(
    'BLAZAR_SCHED_TEST_PARTS' in os.environ, reason='is about every part'
)


# The metrics from the database of all installed parts.
GAUGES = tuple(itertools.chain.from_iterable(parts.each('models', 'GAUGES')))
METRICS = (*metrics.ALL, *GAUGES)


def of(name: str) -> dict[Any, Any]:
    """Return what all installed parts have in one of their tables."""
    merged: dict[Any, Any] = {}
    for each in _each(name):
        merged |= each
    return merged


def names(name: str) -> set[str]:
    """Return the names that all installed parts have in one of their sets."""
    return set().union(*_each(name))


def _each(name: str) -> Iterator[Any]:
    for part in parts.installed():
        path = f'tests.parts.{part}.tables'
        if importlib.util.find_spec(path) is not None:
            yield getattr(importlib.import_module(path), name, {})
