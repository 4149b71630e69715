# SPDX-License-Identifier: Apache-2.0
"""A spare host is used for leases that have lost a host, and for no others."""

from tests.simulation.promises import registry


@registry.promise_of_ledger()
def a_spare_host_replaces_lost_hosts(world):
    """A reservation comes to a spare host only once it has lost a host.

    A host is lost if it is not available when the reservation leaves it; a
    reservation that found no other room then may get a spare host later.
    """
    hosts = {host.uuid: host for host in world.ledger.hosts()}
    spare = {uuid for uuid, host in hosts.items() if host.spare}
    known = world.spares
    held = {
        (a.reservation_id, a.host) for a in world.book.allocations.values()
    }
    known.bereft.update(
        reservation_id for reservation_id, host in known.held - held
        if not hosts[host].available
    )
    for reservation_id, host in held - known.held:
        # A host that has just become spare may have been taken before.
        if host in known.spare & spare and reservation_id not in known.bereft:
            yield f'{reservation_id} has taken the spare host {host}'
    known.held, known.spare = held, spare
