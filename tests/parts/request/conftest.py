# SPDX-License-Identifier: Apache-2.0
"""The lease requests of a manager, whose loop does not rest."""

import pytest

from blazar_sched.parts.request import manager
from tests import looped
from tests.functional.api.conftest import api  # noqa: F401


@pytest.fixture(autouse=True)
def _no_rest(monkeypatch):
    """A test looks at the loop of lease requests as soon as it wants."""
    monkeypatch.setattr(manager, 'REST', 0)


@pytest.fixture
def requests(world):
    return looped.of(world.manager, manager.LeaseRequests)
