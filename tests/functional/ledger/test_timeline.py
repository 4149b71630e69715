# SPDX-License-Identifier: Apache-2.0
"""The allocations in a window, with the leases that have them."""

from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window
from tests.functional.ledger.conftest import on_every_engine


@on_every_engine
def test_uses_of_hosts_in_a_window(store, nouns, host):
    leases = [
        nouns.lease(start=start, end=end, project_id=project)
        for start, end, project in (
            (10, 20, 'p1'), (20, 30, 'p2'), (30, FOREVER, 'p1'),
        )
    ]
    held = [nouns.allocation(lease, host) for lease in leases]

    def work(tx):
        for lease, allocation in zip(leases, held, strict=True):
            tx.add_lease(lease, [allocation])

    store.commit(work)

    def uses(*window, limit=9, **wanted):
        return [
            (use.allocation, use.lease_id, use.project_id, use.name)
            for use in store.uses(Window(*window), limit, **wanted)
        ]

    everything = [
        (allocation, lease.id, lease.project_id, lease.name)
        for allocation, lease in zip(held, leases, strict=True)
    ]
    assert uses(0, FOREVER) == everything
    # A window does not contain its end, and neither does an allocation.
    assert uses(20, 30) == everything[1:2]
    assert uses(19, 31) == everything
    assert uses(0, 10) == []
    assert uses(0, FOREVER, limit=2) == everything[:2]
    assert uses(0, FOREVER, project_id='p2') == everything[1:2]
    assert uses(0, FOREVER, hosts=[host.uuid]) == everything
    assert uses(0, FOREVER, hosts=['other']) == []


def test_every_commit_has_a_version(store, nouns):
    seen = {store.version()}
    # Neither of these commits has a revision.
    for private in (True, False):
        store.write(lambda tx, p=private: tx.put_property('rack', p))
        seen.add(store.version())
    store.commit(lambda tx: tx.put_host(nouns.host()))
    seen.add(store.version())
    assert len(seen) == 4
    store.dry_run(lambda tx: tx.put_host(nouns.host()))
    assert store.version() in seen
