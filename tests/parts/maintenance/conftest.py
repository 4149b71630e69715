# SPDX-License-Identifier: Apache-2.0
"""The maintenances of a manager."""

import pytest

from blazar_sched.domain.window import FOREVER
from blazar_sched.parts.maintenance.manager import Maintenances
from tests import looped
from tests.functional.api.conftest import api  # noqa: F401


@pytest.fixture
def maintenances(world):
    return looped.of(world.manager, Maintenances)


@pytest.fixture
def close(world, maintenances):
    """close(*hosts, start, end): create a maintenance; times are from now."""

    def close(*hosts, start=100, end=200, force=False, dry_run=False,
              requirement=None):
        made = maintenances.create(
            {
                'name': 'rack 7', 'reason': 'power',
                'start': None if start is None else world.now + start,
                'end': end if end == FOREVER else world.now + end,
                'hosts': list(hosts) or None,
                'resource_properties': requirement,
            },
            force, dry_run,
        )
        world.check()
        return made

    return close
