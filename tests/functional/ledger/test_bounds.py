# SPDX-License-Identifier: Apache-2.0
"""Each table has a bound, and the operator's guide says which."""

import pathlib
import re

from blazar_sched.service.ledger import models
from tests import tables

PAGE = pathlib.Path(__file__).parents[3] / 'doc/source/admin/scale.rst'
# The tables that a purge deletes from: those that the purge counts, and those
# whose rows go with the rows of a lease.
OF_LEASES = {
    'allocation', 'event', 'idempotency_key', 'reservation',
    *tables.names('OF_LEASES'),
}
# What bounds the other tables: a constant, an option, the purge of another
# table, or what an operator registers or another service has.
OTHERWISE = {
    'discarded_trust': 'deleted in Keystone by the trust loop',
    'flavor': 'the flavors of Nova',
    'host': 'registered by an operator',
    'host_property': 'the capabilities of hosts',
    'instance': 'the servers of Nova', 'ledger': 'one row',
    'ledger_change': '[manager] changes_kept',
    'shelved_server': 'the servers of Nova',
    'writer': 'ledger.writer.REVISIONS_KEPT', **tables.of('BOUNDS'),
}


def test_each_table_has_a_bound(store):
    """A new table is bounded, and is then added here and to the page."""
    purged = store.count_over(0).keys()
    groups = purged, OF_LEASES, OTHERWISE.keys()
    named = set().union(*groups)
    assert named == models.Base.metadata.tables.keys()
    assert sum(map(len, groups)) == len(named)


@tables.EVERY
def test_the_page_names_each_table():
    section = PAGE.read_text().split('What bounds each table\n', 1)[1]
    first_column = re.findall(r'^   \* - (.*(?:\n       .*)*)$', section, re.M)
    named = re.findall('``([a-z_]+)``', '\n'.join(first_column))
    assert sorted(named) == sorted(models.Base.metadata.tables)


def test_rows_of_a_lease_refer_to_the_lease():
    """So the database refuses a purge that leaves such rows."""
    for name in OF_LEASES:
        targets = {
            key.column.table.name
            for key in models.Base.metadata.tables[name].foreign_keys
        }
        assert targets & {'lease', 'reservation'}
