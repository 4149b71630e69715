# SPDX-License-Identifier: Apache-2.0
"""The limit on the number of leases, and held offers."""

import pytest

from blazar_sched.parts.limit.exception import MaxLeases
from tests.functional.manager import test_held_offer
from tests.functional.manager.test_held_offer import accept

hold = test_held_offer.hold
search = test_held_offer.search
wanted = test_held_offer.wanted
world = test_held_offer.world


class TestLimits:
    """The operator's limits apply to held offers as they do to leases."""

    @pytest.fixture
    def conf(self, conf):
        for name, value in (
            ('enabled_filters', ['MaxLeasesFilter']),
            ('max_leases_per_project', 1),
        ):
            conf.set_override(name, value, 'enforcement')
        return conf

    def test_the_search_says_so(self, world, hold, search):
        [offer, *_] = search()
        assert offer['limited_by'] is None
        hold()
        assert {each['limited_by'] for each in search()} == {'policy'}

    def test_a_held_offer_counts(self, world, whole, hold):
        offer = hold()[0]
        with pytest.raises(MaxLeases):
            world.create(whole(), start=500, end=600)
        with pytest.raises(MaxLeases):
            hold(start=world.now + 500)
        accept(world, offer['id'])
        with pytest.raises(MaxLeases):
            hold(start=world.now + 500)
