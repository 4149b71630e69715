# SPDX-License-Identifier: Apache-2.0
"""The limit on the number of leases, and series that are made in slices."""

import pytest

from blazar_sched.parts.limit.exception import MaxLeases
from blazar_sched.parts.series import models
from tests.parts.series import test_slices
from tests.parts.series.test_slices import windows

conf = test_slices.conf
create = test_slices.create
world = test_slices.world


def test_a_limit_that_a_later_slice_exceeds(world, conf, create, limit):
    limit(enabled_filters=['MaxLeasesFilter'], max_leases_per_project=15)
    world.begin(conf)
    with pytest.raises(MaxLeases):
        create()
    assert windows(world) == []
    assert world.ledger.run(models.list_) == []
