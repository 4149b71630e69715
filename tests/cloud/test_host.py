# SPDX-License-Identifier: Apache-2.0
"""``physical:host`` on a real cloud."""

import pytest

from tests.cloud import person


@pytest.mark.row('C25', 'C36', 'C37', 'F1')
def test_a_host_is_the_leases_from_start_to_end(
    demo, alt, register, nova, until, notified
):
    register('compute-1')
    lease = demo.wait_for(demo.book(person.hosts()), 'ACTIVE')
    [reservation] = lease['reservations']
    assert reservation['status'] == 'active'
    with pytest.raises(person.Refused, match='NotEnoughHosts'):
        alt.book(person.hosts())

    mine = demo.boot('mine', reservation=reservation['id'])
    assert nova.host_of(mine) == 'compute-1'
    assert nova.hosts_in(reservation['id']) == ['compute-1']

    over = demo.end(lease)
    assert [r['status'] for r in over['reservations']] == ['deleted']
    assert nova.status_of(mine) is None
    assert nova.hosts_in(reservation['id']) is None
    alt.wait_for(alt.book(person.hosts()), 'ACTIVE')

    demo.reservation.delete(f'/leases/{lease["id"]}')

    def told(event_type):
        return lease['id'] in {p['lease_id'] for p in notified(event_type)}

    for event in (
        'create', 'event.start_lease', 'update', 'event.end_lease', 'delete',
    ):
        until(lambda event=event: told(f'lease.{event}'))
