# SPDX-License-Identifier: Apache-2.0
"""The deletion of maintenances that are over."""

from blazar_sched.domain.window import FOREVER
from blazar_sched.parts.maintenance import models
from blazar_sched.parts.maintenance.maintenance import Maintenance
from tests.functional.ledger.conftest import made_once  # noqa: F401
from tests.functional.ledger.conftest import open_ledger  # noqa: F401
from tests.functional.ledger.conftest import store  # noqa: F401
from tests.functional.ledger.conftest import url  # noqa: F401
from tests.functional.ledger.test_purge import DAY
from tests.functional.ledger.test_purge import ENDED


def test_purge_deletes_maintenances_that_are_over(store):  # noqa: F811
    for id_, end in (('over', ENDED), ('later', FOREVER)):
        new = Maintenance(id_, 'name', '', 0, end)
        store.write(lambda tx, new=new: tx.run(models.put, new))
    over = store.count_over(ENDED * DAY)
    assert {name: n for name, n in over.items() if n} == {'maintenance': 1}
    assert list(store.purge(ENDED * DAY)) == []
    assert [each.id for each in store.run(models.list_)] == ['later']
