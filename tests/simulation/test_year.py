# SPDX-License-Identifier: Apache-2.0
"""Nothing grows without end: a year in short; `growth` plays a whole one."""

import logging

import pytest

from blazar_sched.service.ledger import models
from blazar_sched.service.ledger.ledger import Ledger
from tests.simulation import growth
from tests.simulation import year

# The tables whose rows follow from what happens in the cloud.
FOLLOW = {
    'event', 'idempotency_key', 'lease', 'lease_request', 'ledger_change',
    'maintenance', 'past_allocation', 'reservation', 'reserved_day', 'series',
    'usage_day',
}
HALF_A_DAY = 43200
SERIES, MAX_SERIES = 'metrics, series', 2000


class Short(year.Year):
    """A cloud in which everything is over soon."""

    ahead = 12
    lengths = 2, 4
    endless = 'FREQ=HOURLY;INTERVAL=12'
    finite = 'FREQ=HOURLY;INTERVAL=6;COUNT=4'


@pytest.fixture
def play(tmp_path, request):
    """play(**options) -> what has grown from the third day to the ninth."""

    def play(ratio=growth.RATIO, **options):
        url = f'sqlite:///{tmp_path}/ledger'
        ledger = Ledger(url)
        ledger.upgrade()
        ledger.close()
        played = Short(
            url, hosts=6, leases=14, series_horizon=2 * year.DAY, **options
        )
        with played.playing():
            # Whatever the dice say, everything happens once.
            for action, _ in year.ACTIONS:
                action(played)
            played.play(3)
            begin = growth.counts(played)
            played.play(6)
            end = growth.counts(played)
        return growth.grown(begin, end, ratio), end

    logging.disable()
    yield play
    logging.disable(logging.NOTSET)


def test_no_table_and_no_memory_grows(play):
    # The few leases of a small cloud vary from day to day.
    grown, end = play(
        1.8, keep_leases=HALF_A_DAY, keep_usage=year.DAY, changes_kept=100
    )
    # The first use of a route, and the first refusal of a kind, add metrics.
    assert [name for name in grown if name != SERIES] == []
    assert end[SERIES] < MAX_SERIES


@pytest.mark.more
def test_without_retention_the_tables_grow(play):
    grown, end = play(keep_leases=0, keep_usage=0, changes_kept=10**6)
    assert {t for t in FOLLOW if not end[f'rows, {t}']} == set()
    grown = {name.removeprefix('rows, ') for name in grown}
    assert grown >= {
        'event', 'lease', 'ledger_change', 'reservation', 'usage_day',
    }
    assert grown & models.Base.metadata.tables.keys() <= FOLLOW
