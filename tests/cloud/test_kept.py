# SPDX-License-Identifier: Apache-2.0
"""Servers kept after their lease are ordinary servers, on a real cloud."""

import datetime

import pytest

from tests.cloud import person

V1_1 = '1.1'
# Seconds to boot the kept server, and from then until the next lease.
LENGTH = datetime.timedelta(seconds=60)
NEXT = datetime.timedelta(seconds=110)
LATER = datetime.timedelta(days=1)
TOLD = 'blazar_vacate_at'


@pytest.fixture(autouse=True)
def host(register):
    return register('compute-1')


@pytest.fixture(params=['hint', 'magnetic', 'instances'])
def keep(request, demo):
    """keep(length) -> an ACTIVE lease, and a function that boots in it."""

    def keep(length):
        wanted = (
            person.instances(on_end='keep')
            if request.param == 'instances'
            else person.hosts(
                on_end='keep', magnetic=request.param == 'magnetic'
            )
        )
        lease = demo.book(wanted, length=length, microversion=V1_1)
        [reservation] = demo.wait_for(lease, 'ACTIVE')['reservations']
        return lease, lambda: boot(demo, request.param, reservation)

    return keep


def boot(who, how, reservation):
    if how == 'hint':
        return who.boot('kept', reservation=reservation['id'])
    if how == 'magnetic':
        return who.boot('kept')
    return who.boot('kept', reservation['id'])


@pytest.mark.parametrize('keep', ['hint', 'magnetic'], indirect=True)
def test_the_next_lease_has_a_kept_server_told_and_moved(
    demo, alt, keep, nova, until, notified
):
    lease, boot = keep(LENGTH)
    # The lease is created while the server without an end is not known.
    following = alt.book(person.hosts(), start=NEXT)
    server = boot()
    assert nova.host_of(server) == 'compute-1'
    demo.wait_for(lease, 'TERMINATED')
    assert nova.status_of(server) == 'ACTIVE'
    following = alt.wait_for(following, 'ACTIVE')
    assert not following['degraded']

    def told():
        return {
            payload['instance_id']
            for payload in notified('instance.vacate')
            if payload['lease_id'] == following['id']
        }

    until(lambda: told() == {server['id']})
    assert nova.status_of(server) == 'ACTIVE'
    assert nova.host_of(server) != 'compute-1'
    # The server is not announced or ended with the lease any more.
    until(lambda: TOLD not in demo.sdk.compute.get_server(server).metadata)
    alt.end(following)
    assert nova.status_of(server) == 'ACTIVE'


@pytest.mark.parametrize('keep', ['instances'], indirect=True)
def test_a_kept_server_is_moved_and_unshelved(demo, admin, keep, nova, until):
    """Its flavor asks for a slot that no host has any more."""
    lease, boot = keep(LATER)
    server = boot()
    demo.end(lease)
    compute = admin.sdk.compute
    compute.live_migrate_server(
        server, host=None, force=False, block_migration='auto'
    )
    until(lambda: nova.host_of(server) not in ('compute-1', None))
    until(lambda: nova.status_of(server) == 'ACTIVE')
    compute.shelve_server(server)
    until(lambda: nova.status_of(server) == 'SHELVED_OFFLOADED')
    compute.unshelve_server(server)
    until(lambda: nova.status_of(server) == 'ACTIVE')


@pytest.mark.parametrize('deleted', [False, True], ids=['ended', 'deleted'])
def test_a_kept_server_counts_as_any_server_without_an_end(
    demo, alt, keep, nova, until, deleted
):
    lease, boot = keep(LATER)
    server = boot()
    if deleted:
        demo.reservation.delete(f'/leases/{lease["id"]}')
    else:
        demo.end(lease)
    assert nova.status_of(server) == 'ACTIVE'
    # The change is seen at once, not only at the next sync of all servers.
    for start in (None, LATER * 2):
        with pytest.raises(person.Refused, match='NotEnoughHosts'):
            alt.book(person.hosts(), start=start)
    demo.sdk.compute.delete_server(server)

    def can_be_booked():
        try:
            return alt.book(person.hosts(), start=LATER * 2)
        except person.Refused:
            return None

    until(can_be_booked)
