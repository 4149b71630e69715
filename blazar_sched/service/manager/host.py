# SPDX-License-Identifier: Apache-2.0
"""Hosts: what the operator registers as reservable, and their properties."""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
from typing import Any

from blazar_sched.domain import exception
from blazar_sched.domain import host as host_
from blazar_sched.domain import lifetime
from blazar_sched.domain import placing
from blazar_sched.service.clients import nova as nova_
from blazar_sched.service.clients import placement as placement_
from blazar_sched.service.ledger import ledger as ledger_
from blazar_sched.service.manager import instance

MAX_NAME = 64


class Hosts:
    """The reservable hosts.

    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self,
        ledger: ledger_.Ledger,
        nova: nova_.Nova,
        placement: placement_.Placement,
        clock: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._nova = nova
        self._placement = placement
        self._clock = clock

    def create(self, name: str, values: Mapping[str, Any]) -> host_.Host:
        """Register a host by its hypervisor hostname.

        What runs there is recorded in the same commit, so that no lease can
        be placed on a host that only looks empty.

        :param values: capabilities, and the host's own settings
        :raises HostNotFound: if Nova or Placement does not know it
        :raises HostExists: if it is registered already
        :raises Unavailable: if there is no cloud, or none that answers
        """
        now = int(self._clock())
        settings = _settings({}, values)
        hypervisor = self._nova.hypervisor(name)
        wanted = host_.Host(
            uuid=hypervisor.uuid,
            id='',
            hypervisor_hostname=hypervisor.hostname,
            service_name=hypervisor.host,
            hypervisor_type=hypervisor.type,
            hypervisor_version=hypervisor.version,
            cpu_info=hypervisor.cpu_info,
            availability_zone=hypervisor.availability_zone,
            inventory=self._placement.inventories(hypervisor.uuid),
            created_at=now,
            **settings,
        )
        servers = [
            server
            for server in self._nova.servers(host=hypervisor.host)
            if server.node == hypervisor.hostname
        ]

        def work(tx: Any) -> host_.Host:
            if wanted.uuid in tx.replica.hosts:
                raise exception.HostExists(
                    f'host {name!r} is registered already', field='name'
                )
            host: host_.Host = tx.put_host(wanted)
            for server in servers:
                tx.put_instance(
                    instance.record(tx.replica, host.uuid, server)
                )
            return host

        return self._ledger.commit(work)

    def update(self, host_id: str, values: Mapping[str, Any]) -> host_.Host:
        """Change capabilities and settings; a value of None removes it.

        :raises CantAddExtraCapability: if a reservation on the host that is
            not over names a capability that changes
        """
        now = int(self._clock())

        def work(tx: Any) -> host_.Host:
            old = tx.host(host_id)
            settings = _settings(old.capabilities, values)
            new = dataclasses.replace(
                old,
                updated_at=now,
                hold=settings['hold'] if 'hold' in values else old.hold,
                unbounded=settings['unbounded']
                if 'unbounded' in values
                else old.unbounded,
                capabilities=settings['capabilities'],
            )
            _check_free(tx, old, new, now)
            host: host_.Host = tx.put_host(new)
            return host

        return self._ledger.commit(work)

    def delete(self, host_id: str) -> None:
        """Forget a host and what runs there.

        :raises CantDeleteHost: while it has an allocation, also one whose
            lease should have ended and did not
        """
        host = self._ledger.host(host_id)
        _check_unallocated(self._ledger, host)
        self._placement.delete_child(host.hypervisor_hostname)

        def work(tx: Any) -> None:
            gone = tx.host(host_id)
            _check_unallocated(tx, gone)
            tx.delete_host(gone.uuid)

        self._ledger.commit(work)

    def allocations(
        self,
        host_id: str | None,
        lease_id: str | None,
        reservation_id: str | None,
    ) -> list[dict[str, Any]]:
        """Return what is reserved on each host, or on the one.

        What is over is left out, unless a lease or reservation is named.
        """
        if host_id is None:
            hosts, on = self._ledger.hosts(), None
        else:
            hosts = [self._ledger.host(host_id)]
            on = hosts[0].uuid
        named = lease_id is not None or reservation_id is not None
        held = defaultdict(list)
        for allocation, owner in self._ledger.allocations(
            reservation_id=reservation_id,
            lease_id=lease_id,
            host=on,
            after=None if named else int(self._clock()),
        ):
            held[allocation.host].append(
                {
                    'id': allocation.reservation_id,
                    'lease_id': owner,
                    'start': allocation.start,
                    'end': allocation.end,
                }
            )
        return [
            {'host_id': host.id, 'reservations': held[host.uuid]}
            for host in hosts
        ]

    def properties(self) -> list[dict[str, Any]]:
        """Return the capabilities in use, with their values."""
        values = defaultdict(set)
        for host in self._ledger.hosts():
            for name, value in host.capabilities.items():
                values[name].add(value)
        private = self._ledger.properties()
        return [
            {
                'property': name,
                'private': private.get(name, False),
                'values': sorted(values[name]),
            }
            for name in sorted(values)
        ]

    def update_property(self, name: str, private: bool) -> dict[str, Any]:
        """Say whether a capability's name is shown to non-administrators.

        :raises PropertyNotFound: if no host has it
        """

        def work(tx: Any) -> None:
            if not any(name in h.capabilities for h in tx.hosts()):
                raise exception.PropertyNotFound(
                    f'no host has the property {name!r}', field='property'
                )
            tx.put_property(name, private)

        self._ledger.commit(work, placing=False)
        return {'property': name, 'private': private}


def _settings(
    old: Mapping[str, str], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Split values into a Host's hold, unbounded and capabilities.

    :param old: the capabilities so far
    :raises InvalidInput: naming the value that is wrong
    """
    given = dict(values)
    hold = given.pop('hold', None)
    unbounded = given.pop('unbounded', None)
    if hold not in (None, *host_.HOLDS):
        raise exception.InvalidInput(
            f'hold must be one of {", ".join(host_.HOLDS)}', field='hold'
        )
    if unbounded is not None:
        lifetime.parse_unbounded(unbounded, 'unbounded')
    for name, value in given.items():
        _check_capability(name, value)
    capabilities = {
        name: value
        for name, value in {**old, **given}.items()
        if value is not None
    }
    return {
        'hold': hold or host_.SHARED,
        'unbounded': unbounded,
        'capabilities': capabilities,
    }


def _check_capability(name: str, value: Any) -> None:
    if not 0 < len(name) <= MAX_NAME:
        raise exception.InvalidInput(
            f'a capability has a name of 1 to {MAX_NAME} characters',
            field=name[:MAX_NAME],
        )
    if name in host_.Host(uuid='', id='', hypervisor_hostname='').properties():
        raise exception.InvalidInput(
            f"{name} is the host's own and cannot be set", field=name
        )
    if value is not None and not isinstance(value, str):
        raise exception.InvalidInput(
            f'the capability {name} must be text', field=name
        )


def _check_free(
    tx: Any, old: host_.Host, new: host_.Host, now: int
) -> None:
    """Refuse to change a capability that a reservation there depends on."""
    names = old.capabilities.keys() | new.capabilities.keys()
    changed = {
        name
        for name in names
        if old.capabilities.get(name) != new.capabilities.get(name)
    }
    if not changed:
        return
    for allocation, lease_id in tx.allocations(host=old.uuid, after=now):
        for reservation in tx.lease(lease_id).reservations:
            if reservation.id != allocation.reservation_id:
                continue
            used = changed & placing.requirement(reservation).names()
            if used:
                raise exception.CantAddExtraCapability(
                    f'{", ".join(sorted(used))} is required by reservation '
                    f'{reservation.id}',
                    field=min(used),
                )


def _check_unallocated(source: Any, host: host_.Host) -> None:
    held = source.allocations(host=host.uuid)
    if held:
        raise exception.CantDeleteHost(
            f'host {host.id} has allocations, such as those of lease '
            f'{held[0][1]}'
        )
