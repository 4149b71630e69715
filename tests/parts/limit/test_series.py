# SPDX-License-Identifier: Apache-2.0
"""The limit on the number of leases, and series."""

import pytest

from blazar_sched.parts.limit.exception import MaxLeases
from tests.parts.series import test_series
from tests.parts.series.test_series import DAY
from tests.parts.series.test_series import missing
from tests.parts.series.test_series import series_of
from tests.parts.series.test_series import windows

create = test_series.create
wanted = test_series.wanted
world = test_series.world


@pytest.fixture
def conf(conf):
    conf.set_override('series_horizon', test_series.HORIZON, 'manager')
    return conf


class TestLimits:
    """The limits of a project count the leases of a series."""

    @pytest.fixture
    def conf(self, conf):
        for name, value in (
            ('enabled_filters', ['MaxLeasesFilter']),
            ('max_leases_per_project', 11),
        ):
            conf.set_override(name, value, 'enforcement')
        return conf

    def test_a_series_is_refused(self, world, create):
        create()
        with pytest.raises(MaxLeases) as refusal:
            create()
        assert 'occurrence' in str(refusal.value)
        assert len(world.ledger.leases()) == 10

    def test_an_occurrence_waits(self, world, create):
        made = create()
        world.clock.now += 5 * DAY
        series_of(world.manager).step()
        assert len(windows(world, made)) == 11
        shown = series_of(world.manager).get(made['id'], None)
        assert len(missing(shown)) == 4
