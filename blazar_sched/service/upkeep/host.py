# SPDX-License-Identifier: Apache-2.0
"""Registration of reservable hosts, and the properties of hosts."""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import functools
from typing import Any

from oslo_config import cfg
from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain import plural
from blazar_sched.domain import provider
from blazar_sched.domain import requirements
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import DEDICATED
from blazar_sched.domain.host import Host
from blazar_sched.domain.host import HOST_NAMES
from blazar_sched.domain.host import IRONIC
from blazar_sched.domain.host import SHARED
from blazar_sched.replica import instance_record
from blazar_sched.replica import state
from blazar_sched.replica import wire
from blazar_sched.service import slices
from blazar_sched.service.clients.nova import Hypervisor
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.clients.placement import Generations
from blazar_sched.service.clients.placement import Placement
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.ledger.tx import Tx
from blazar_sched.service.resources.freepool import Freepool
from blazar_sched.service.upkeep import host_settings

LOG = log.getLogger(__name__)

# The most hosts, and the most reservations on hosts, in a page.
HOSTS = 100
ALLOCATIONS = 5000
# The most properties, and values of each of them, that are listed together,
# and the most characters of such a value.
MAX_PROPERTIES = 1000
MAX_VALUES = 200
MAX_CHARACTERS = 255
# The properties that are not listed: names of hosts, and a long description.
_UNLISTED = frozenset({*HOST_NAMES, 'cpu_info'})

# The fields of a host, by name, whose values come from other services.
Facts = dict[str, Any]
# The traits and the inventory of a resource provider.
_Seen = tuple[tuple[str, ...], Mapping[str, Any]]


class Hosts:
    """The operations on reservable hosts.

    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger, nova: Nova,
        placement: Placement, freepool: Freepool, clock: Callable[[], float],
    ) -> None:
        self._default_hold = conf.manager.default_hold
        self._region = conf.nova.region_name or ''
        self._ledger = ledger
        self._nova = nova
        self._placement = placement
        self._freepool = freepool
        self._clock = clock
        #: Called in the commit that registers a host, with the time; each
        #: returns the host, with what a part already has of it.
        self.fill_in: list[Callable[[Tx, Host, int], Host]] = []
        # By provider: what was read of it, and the generation before that.
        self._seen: dict[str, tuple[int, _Seen]] = {}

    def create(self, name: str, values: Mapping[str, Any]) -> Host:
        """Register a host by its hypervisor hostname.

        The servers on the host are recorded in the same commit, so that no
        lease can be placed on a host that only seems empty.

        :param values: capabilities, and the host's own settings
        :raises HostNotFound: if Nova or Placement does not know the host
        :raises HostExists: if the host is registered already
        :raises HostHavingServers: if the host is to be dedicated and is not
            empty
        :raises Unavailable: if there is no cloud, or the cloud does not answer
        """
        now = int(self._clock())
        settings = {
            'hold': self._default_hold,
            **host_settings.settings(values, self._default_hold),
        }
        capabilities = host_settings.capabilities({}, values)
        hypervisor = self._nova.hypervisor(name)
        wanted = Host(
            uuid=hypervisor.uuid, id='',
            hypervisor_hostname=hypervisor.hostname,
            **self._hypervisor_facts(hypervisor),
            **self._provider_facts(
                hypervisor.uuid,
                self._placement.trees(hypervisor.uuid).get(
                    hypervisor.uuid, {}
                ),
                hypervisor.type,
            ),
            **settings, capabilities=capabilities, created_at=now,
        )
        _check_availability(wanted)
        if self._ledger.hosts([wanted.uuid]):
            raise _exists(name)
        servers = [
            server
            for server in self._nova.servers(host=hypervisor.host)
            if server.node == hypervisor.hostname
        ]
        self._prepare(wanted, servers)

        def work(tx: PlacingTx) -> Host:
            replica = tx.replica
            if wanted.uuid in replica.hosts:
                raise _exists(name)
            host = wanted
            for fill_in in self.fill_in:
                host = fill_in(tx, host, now)
            host = tx.put_host(host)
            tx.put_instances([
                instance_record.make(replica, host.uuid, server, now)
                for server in servers
            ])
            return host

        return self._ledger.commit(work)

    def _prepare(self, host: Host, servers: Sequence[Server]) -> None:
        """Make in other services what a host needs to be registered.

        This happens before the ledger promises any capacity of the host; a
        request that is repeated after a failure finds these objects in place.
        """
        if host.hold == DEDICATED:
            if servers:
                raise exception.HostHavingServers(
                    f'{plural.are(len(servers), "server")} on the host: a '
                    'dedicated host must have no servers',
                    field='hold',
                )
            self._freepool.join([host.service_name])
        self._placement.create_child(host.uuid, host.hypervisor_hostname)

    def update(self, host_id: str, values: Mapping[str, Any]) -> Host:
        """Change capabilities and settings; a value of None removes the entry.

        :raises CantAddExtraCapability: if a reservation on the host that is
            not over requires a capability that changes
        """
        now = int(self._clock())
        settings = host_settings.settings(values, self._default_hold)

        def change(source: Reader) -> Host:
            old = source.host(host_id)
            new = dataclasses.replace(
                old, **settings,
                capabilities=host_settings.capabilities(
                    old.capabilities, values
                ),
                updated_at=now,
            )
            _check_availability(new)
            _check_free(source, old, new, now)
            return new

        asked = change(self._ledger)
        # The host joins the pool before the ledger records it as dedicated,
        # and leaves the pool after the ledger records it as shared; a repeated
        # request completes what a failure left undone.
        if settings.get('hold') == DEDICATED and not self._is_taken(
            asked, now
        ):
            self._freepool.join([asked.service_name])
        host = self._ledger.commit(lambda tx: tx.put_host(change(tx)))
        if settings.get('hold') == SHARED:
            self._freepool.leave([host.service_name])
        return host

    def _is_taken(self, host: Host, now: int) -> bool:
        """Tell whether a reservation now has the host as a whole.

        The end of that reservation puts a dedicated host back into the pool.
        """
        return any(
            a.whole and a.start <= now
            for a, _ in self._ledger.allocations(host=host.uuid)
        )

    def delete(self, host_id: str) -> None:
        """Delete a host and the instance records of its servers.

        :raises CantDeleteHost: while the host has an allocation, even if the
            lease of the allocation should have ended and did not
        """
        host = self._ledger.host(host_id)
        _check_unallocated(self._ledger, host)
        if host.hold == DEDICATED:
            self._freepool.leave([host.service_name])

        def work(tx: PlacingTx) -> None:
            gone = tx.host(host_id)
            _check_unallocated(tx, gone)
            tx.delete_host(gone.uuid)

        try:
            self._ledger.commit(work)
        except exception.CantDeleteHost:
            # The host was allocated in the meantime, so the host stays.
            if host.hold == DEDICATED and not self._is_taken(
                host, int(self._clock())
            ):
                self._freepool.join([host.service_name])
            raise

    def sync(self) -> None:
        """Bring the hosts up to date, a slice of them in each commit.

        The allocations of a host that has shrunk below its promised capacity
        are kept, and the host is logged.

        :raises Unavailable: if Nova or Placement does not answer
        """
        hosts = self._ledger.hosts()
        if not hosts:
            return
        hypervisors = {h.uuid: h for h in self._nova.hypervisors()}
        trees = self._placement.trees()
        # A provider that is created again may have the generation of before.
        for uuid in self._seen.keys() - set().union(*trees.values()):
            del self._seen[uuid]
        facts = {}
        for host in hosts:
            known: Facts = {}
            if host.uuid in hypervisors:
                known |= self._hypervisor_facts(hypervisors[host.uuid])
            # The provider may be gone since the trees were listed.
            with contextlib.suppress(exception.HostNotFound):
                known |= self._provider_facts(
                    host.uuid, trees.get(host.uuid, {}),
                    known.get('hypervisor_type', host.hypervisor_type),
                )
            if dataclasses.replace(host, **known) != host:
                facts[host.uuid] = known
        now = int(self._clock())
        for some in slices.of(facts, slices.HOSTS):
            for name in self._ledger.commit(functools.partial(
                _refresh, facts={uuid: facts[uuid] for uuid in some}, now=now
            )):
                LOG.warning('Host %s has less capacity than is reserved', name)

    def is_reserved_node(self, host: Host) -> bool | None:
        """Tell whether a host is a node of Ironic that Nova has reserved.

        :returns: as Placement said at the last `sync`; None before the first
        """
        if host.hypervisor_type != IRONIC:
            return False
        seen = self._seen.get(host.uuid)
        if seen is None:
            return None
        _, (_, inventory) = seen
        return all(held.reserved >= held.total for held in inventory.values())

    def _provider_facts(
        self, root: str, generations: Generations, hypervisor_type: str
    ) -> Facts:
        """Return the facts from Placement, querying Placement only if needed.

        :param root: the resource provider of the host
        :param generations: those of its tree in Placement
        :raises HostNotFound: if Placement does not know the provider
        """
        if root not in generations:
            raise exception.HostNotFound(
                f'Placement knows no resource provider {root}'
            )
        traits, inventory = self._look(
            root, generations[root], self._placement.inventories
        )
        if hypervisor_type == IRONIC:
            # Nova reserves a node while a server is on the node, and while
            # the node is not ready. The timeline counts the server, and the
            # present says nothing about the time of a lease.
            inventory = {
                name: dataclasses.replace(held, reserved=0)
                for name, held in inventory.items()
            }
        children = []
        for uuid, generation in generations.items():
            if uuid == root:
                continue
            # A child provider may be gone since the tree was listed.
            with contextlib.suppress(exception.HostNotFound):
                has, units = self._look(
                    uuid, generation, self._placement.units
                )
                children.append((has, provider.counted(units)))
        found = provider.grouped(children)
        return {
            'inventory': provider.with_children(inventory, found),
            'traits': traits,
            'providers': found,
        }

    def _look(
        self, uuid: str, generation: int,
        read: Callable[[str], Mapping[str, Any]],
    ) -> _Seen:
        """Return the traits and the inventory of a provider.

        :param read: reads the inventory
        """
        seen = self._seen.get(uuid)
        if seen is None or seen[0] != generation:
            what = self._placement.traits(uuid), read(uuid)
            seen = self._seen[uuid] = generation, what
        return seen[1]

    def _hypervisor_facts(self, hypervisor: Hypervisor) -> Facts:
        return {
            'service_name': hypervisor.host,
            'hypervisor_type': hypervisor.type,
            'hypervisor_version': hypervisor.version,
            'cpu_info': hypervisor.cpu_info,
            'availability_zone': hypervisor.availability_zone,
            'movable': hypervisor.movable,
            'region': self._region,
        }

    def allocations(
        self, host_id: str | None, lease_id: str | None,
        reservation_id: str | None, marker: str | None = None,
    ) -> tuple[list[dict[str, Any]], str | None]:
        """Return a page of the reservations on each host, or on one host.

        Reservations that are over are left out, unless a lease or reservation
        is named. The last host of a page may continue on the next page.

        :returns: the page, and the marker of the next page
        """
        after, _, done = (marker or '0').partition('/')
        if host_id is None:
            # The last host of the previous page may continue.
            first = str(int(after) - 1) if done else after
            hosts = self._ledger.hosts(after=first, limit=HOSTS)
        else:
            hosts = [self._ledger.host(host_id)]
        named = lease_id is not None or reservation_id is not None
        held = defaultdict(list)
        for allocation, owner in self._ledger.allocations(
            reservation_id=reservation_id, lease_id=lease_id,
            hosts=[host.uuid for host in hosts],
            after=None if named else int(self._clock()), past=named,
        ):
            place = f'{allocation.start:010}/{allocation.id}'
            held[allocation.host].append((place, allocation, owner))
        page: list[dict[str, Any]] = []
        room = ALLOCATIONS
        for host in hosts:
            rest = [
                each
                for each in held[host.uuid]
                if host.id != after or each[0] > done
            ]
            page.append(_reserved(host, rest[:room]))
            if len(rest) > room:
                return page, f'{host.id}/{rest[room - 1][0]}'
            room = max(1, room - len(rest))
        more = host_id is None and len(hosts) == HOSTS
        return page, hosts[-1].id if more else None

    def properties(self) -> list[dict[str, Any]]:
        """Return the capabilities in use, with their values."""
        values = self._ledger.read_replica(_values)
        private = self._ledger.properties()
        return [
            {
                'property': name,
                'private': private.get(name, False),
                'values': sorted(values[name]),
            }
            for name in sorted(values)
        ]

    def public_properties(self, project_id: str) -> dict[str, Any]:
        """Return the properties that a project may name, with their values.

        The hosts are those in service that are open to the project. The names
        of hosts and private properties are left out.
        """
        hidden = _UNLISTED | {
            name.removeprefix(requirements.SCOPE)
            for name, private in self._ledger.properties().items()
            if private
        }
        hosts = self._ledger.read_replica(
            lambda replica: replica.catalog.visible(
                requirements.ANY, project_id
            )
        )
        values: dict[str, set[str]] = defaultdict(set)
        for host in hosts:
            if host.takes_leases:
                for name, value in host.properties().items():
                    if name not in hidden and value:
                        values[name].add(value)
        shown, _ = wire.fitting(
            _property(name, values[name])
            for name in sorted(values)[:MAX_PROPERTIES]
        )
        zones = _property(
            'availability_zone', values.get('availability_zone', set())
        )
        return {
            'zones': zones['values'],
            'properties': shown,
            'properties_left_out': len(values) - len(shown),
        }

    def unknown_properties(
        self, names: Iterable[str], private: bool, project_id: str | None
    ) -> list[str]:
        """Return the names that match no capability of any host.

        :param names: the names as written in a requirement
        :param private: whether private capabilities count
        :param project_id: the project that the hosts are open to, None for
            all hosts
        """
        hidden = set() if private else {
            name.removeprefix(requirements.SCOPE)
            for name, is_private in self._ledger.properties().items()
            if is_private
        }

        def unknown(replica: state.Replica) -> set[str]:
            left = set(names)
            for host in replica.catalog.visible(requirements.ANY, project_id):
                if not left:
                    break
                for name in host.capabilities:
                    left.discard(name.removeprefix(requirements.SCOPE))
            return left

        left = self._ledger.read_replica(unknown)
        return [name for name in names if name in left | hidden]

    def unknown_hosts(
        self, names: Iterable[str], project_id: str | None
    ) -> list[str]:
        """Return the names that no host has that is open to a project.

        :param project_id: None for all hosts
        """
        known = self._ledger.read_replica(lambda replica: {
            host.hypervisor_hostname for host in
            replica.catalog.visible(requirements.ANY, project_id)
        })
        return [name for name in names if name not in known]

    def update_property(self, name: str, private: bool) -> dict[str, Any]:
        """Set whether a capability's name is shown to non-administrators.

        :raises PropertyNotFound: if no host has the capability
        """

        # Read ahead: the write, for which all others wait, reads no hosts.
        if not self._ledger.read_replica(lambda replica: any(
            name in host.capabilities for host in replica.hosts.values()
        )):
            raise exception.PropertyNotFound(
                f'no host has the property {name!r}', field='property'
            )
        self._ledger.write(lambda tx: tx.put_property(name, private))
        return {'property': name, 'private': private}


def _reserved(
    host: Host, held: Iterable[tuple[str, Allocation, str]]
) -> dict[str, Any]:
    return {
        'host_id': host.id,
        'reservations': [
            {
                'id': allocation.reservation_id,
                'lease_id': lease_id,
                'start': allocation.start,
                'end': allocation.end,
            }
            for _, allocation, lease_id in held
        ],
    }


def _property(name: str, values: set[str]) -> dict[str, Any]:
    """Return a property with its first values."""
    shown = sorted(v for v in values if len(v) <= MAX_CHARACTERS)
    del shown[MAX_VALUES:]
    return {
        'property': name,
        'values': shown,
        'values_left_out': len(values) - len(shown),
    }


def _values(replica: state.Replica) -> dict[str, set[str]]:
    """Return the values of each capability."""
    values = defaultdict(set)
    for host in replica.hosts.values():
        for name, value in host.capabilities.items():
            values[name].add(value)
    return values


def _exists(name: str) -> exception.HostExists:
    return exception.HostExists(
        f'host {name!r} is registered already', field='name'
    )


def _refresh(tx: PlacingTx, facts: Mapping[str, Facts], now: int) -> list[str]:
    """Write the changed hosts; return the names of the overcommitted hosts."""
    short = []
    indexes = tx.replica.indexes
    for old in tx.hosts(facts):
        new = dataclasses.replace(old, **facts[old.uuid])
        if new == old:
            continue
        tx.put_host(dataclasses.replace(new, updated_at=now))
        if indexes.is_too_small(new, now):
            short.append(new.hypervisor_hostname)
    return short


def _check_free(source: Reader, old: Host, new: Host, now: int) -> None:
    """Refuse a change of a capability that a reservation on the host needs."""
    before, after = old.properties(), new.properties()
    changed = {
        name
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    }
    if not changed:
        return
    for allocation, lease_id in source.allocations(host=old.uuid, after=now):
        for reservation in source.lease(lease_id).reservations:
            if reservation.id != allocation.reservation_id:
                continue
            used = changed & reservation.demand.requirement().names()
            if used:
                raise exception.CantAddExtraCapability(
                    f'capability {", ".join(sorted(used))} is required by '
                    f'reservation {reservation.id}',
                    field=min(used),
                )


def _check_availability(host: Host) -> None:
    """Refuse a host that is gone before it comes.

    :raises InvalidInput: naming `available_until`
    """
    come, gone = host.available_from, host.available_until
    if come is not None and gone is not None and gone <= come:
        raise exception.InvalidInput(
            'available_until must be later than available_from',
            field='available_until',
        )


def _check_unallocated(source: Reader, host: Host) -> None:
    held = source.allocations(host=host.uuid)
    if held:
        raise exception.CantDeleteHost(
            f'host {host.hypervisor_hostname} has allocations, for example '
            f'for lease {held[0][1]}'
        )
