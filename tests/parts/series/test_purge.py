# SPDX-License-Identifier: Apache-2.0
"""The deletion of series that are over."""

from blazar_sched.domain.window import FOREVER
from blazar_sched.parts.series import models
from blazar_sched.parts.series.series import Series
from tests.functional.ledger.conftest import made_once  # noqa: F401
from tests.functional.ledger.conftest import nouns  # noqa: F401
from tests.functional.ledger.conftest import on_every_engine
from tests.functional.ledger.conftest import open_ledger  # noqa: F401
from tests.functional.ledger.conftest import server  # noqa: F401
from tests.functional.ledger.conftest import store  # noqa: F401
from tests.functional.ledger.conftest import url  # noqa: F401
from tests.functional.ledger.test_purge import DAY
from tests.functional.ledger.test_purge import ENDED


@on_every_engine
def test_purge_deletes_series_that_are_over(store, nouns):  # noqa: F811
    """A series stays while it has a lease, or an occurrence to come."""
    lease = nouns.lease(series_id='with-lease')
    series = [
        Series(
            id_, 'name', 'project', 'user', '', 'UTC', '', 60, [], [], 'skip',
            booked_until=booked_until, missing=missing, created_at=1,
        )
        for id_, booked_until, missing in (
            ('over', FOREVER, ['1970-01-03T00:00']),
            ('with-lease', FOREVER, []),
            ('not-booked', ENDED * DAY, []),
            ('missing', FOREVER, ['2970-01-03T00:00']),
        )
    ]

    def work(tx):
        tx.put_lease(lease)
        for each in series:
            tx.run(models.put, each)

    store.commit(work)
    over = store.count_over(ENDED * DAY)
    assert {name for name, count in over.items() if count} == {'series'}
    assert over['series'] == 1
    assert list(store.purge(ENDED * DAY)) == []
    assert {each.id for each in store.run(models.list_)} == {
        'missing', 'not-booked', 'with-lease',
    }
