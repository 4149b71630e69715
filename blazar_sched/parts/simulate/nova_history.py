# SPDX-License-Identifier: Apache-2.0
"""The past of a cloud: hosts and instances, read from Nova and Placement.

Only GET requests are sent, with the credentials of an administrator. Nova
does not show the size that a server had before a resize, so a server always
has its last size.
"""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import itertools
from typing import TYPE_CHECKING

from keystoneauth1 import exceptions as keystone_exceptions
import openstack
from openstack import exceptions as sdk_exceptions
import requests
from rich import progress

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import flavor as flavor_rules
from blazar_sched.domain import hints as server_hints
from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.domain.inventory import Inventory
from blazar_sched.parts.simulate import trace

if TYPE_CHECKING:
    from openstack.compute.v2.server import Server
    from openstack.compute.v2.server_action import ServerAction
    from openstack.connection import Connection

# What the SDK raises if a service cannot be asked, or refuses.
_ERRORS = (
    keystone_exceptions.ClientException,
    sdk_exceptions.SDKException,
    requests.RequestException,
)
# A part of the names of resource classes of GPUs, as in CUSTOM_GPU_A100.
_GPU = 'GPU'
# The maximum number of seconds from the request for a server to its launch. A
# later launch is one after a resize, a rebuild or shelving.
_BUILD = 600
_SHELVING = ('shelve', 'shelveOffload')
_UNSHELVING = 'unshelve'


@dataclasses.dataclass(frozen=True, slots=True)
class History:
    """The hosts and instances of a cloud over a window.

    :param servers: the number of servers; a server that was shelved is an
        instance for each of its stays on a host
    :param unread: the number of servers whose actions could not be read, each
        of which counts as never shelved
    """

    hosts: list[trace.Host]
    instances: list[trace.Instance]
    servers: int
    unread: int


def read_cloud(
    cloud: str, begin: int, end: int, bar: progress.Progress
) -> History:
    """Return what `read` does of a cloud.

    :param cloud: name in clouds.yaml, or 'envvars' for the OS_* variables
    :raises Unavailable: if there is no such cloud, or the cloud does not
        answer
    """
    try:
        # A microversion in the configuration of the cloud may be too old.
        with openstack.connect(cloud=cloud, compute_api_version='2') as sdk:
            return read(sdk, begin, end, bar)
    except _ERRORS as e:
        raise exception.Unavailable(
            f'--os-cloud {cloud} cannot be read', detail=str(e)
        ) from e


def read(
    sdk: 'Connection', begin: int, end: int, bar: progress.Progress
) -> History:
    """Return what Nova and Placement know of the window [begin, end).

    Nova is asked for pages of servers, and for the actions of each server that
    may have been shelved; Placement is asked for each resource provider.

    :param begin: epoch seconds, like `end`, which is now
    :param bar: shows the progress
    :raises Unavailable: if a cell of Nova is down
    :raises SDKException: or another error of the SDK, if a service cannot be
        asked
    """
    hosts = _hosts(sdk, bar)
    instances: list[trace.Instance] = []
    servers = unread = 0
    for server in bar.track(_servers(sdk, begin), description='servers'):
        start = max(begin, _time(server.created_at))
        left = min(end, _end(server, end))
        stays = [(start, left)]
        if _may_have_been_shelved(server, begin):
            try:
                stays = list(_stays(
                    start, left, server.compute_host is not None,
                    sdk.compute.server_actions(server),
                ))
            except _ERRORS:
                unread += 1
        found = list(_instances(server, begin, stays))
        servers += bool(found)
        instances += found
    return History(hosts, instances, servers, unread)


def _servers(sdk: 'Connection', begin: int) -> Iterator['Server']:
    """Yield the servers that started, unless deleted before `begin`."""
    seen = set()
    for server in itertools.chain(
        sdk.compute.servers(all_projects=True, sort_key='uuid'),
        sdk.compute.servers(
            all_projects=True, sort_key='uuid', deleted_only=True,
            changes_since=duration.format_time(begin),
        ),
    ):
        if server.flavor is None:
            raise exception.Unavailable(
                f'Nova returned a part of server {server.id}: a cell is down'
            )
        # A server may be deleted between the two lists.
        if server.launched_at and server.id not in seen:
            seen.add(server.id)
            yield server


def _end(server: 'Server', now: int) -> int:
    """Return when a server left its host for good, `now` if it did not."""
    if server.status not in ('DELETED', 'SOFT_DELETED'):
        return now
    return _time(server.terminated_at or server.updated_at)


def _may_have_been_shelved(server: 'Server', begin: int) -> bool:
    """Tell whether a server may have left or reached a host since `begin`.

    Nova sets the time of the launch again when a server is unshelved.
    """
    built = max(begin, _time(server.created_at) + _BUILD)
    return server.compute_host is None or _time(server.launched_at) > built


def _stays(
    start: int, end: int, on_host: bool, actions: Iterable['ServerAction']
) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each stay on a host, the last stay first.

    A stay that ended before `start` is yielded with a start after its end.

    :param on_host: whether the server was on a host at its end
    :param actions: the last action first, as Nova lists them
    """
    left = end if on_host else None
    for each in actions:
        # An action that has failed has a message.
        if each.message is not None:
            continue
        if each.action in _SHELVING and left is None:
            left = _time(each.start_time)
        elif each.action == _UNSHELVING and left is not None:
            yield max(start, _time(each.start_time)), left
            left = None
    if left is not None:
        yield start, left


def _instances(
    server: 'Server', begin: int, stays: Iterable[tuple[int, int]]
) -> Iterator[trace.Instance]:
    """Yield an instance for each stay, none for a server of a reservation.

    The simulation draws its own leases, with the instances that use them.
    """
    flavor = server.flavor
    specs = flavor.extra_specs or {}
    hints = server_hints.of_server(server.scheduler_hints)
    vcpus, memory_mb, gpus = _size(
        flavor_rules.resources(flavor.vcpus, flavor.ram, 0, specs)
    )
    reserved = flavor_rules.reservation_id(specs) or hints.get(
        server_hints.RESERVATION
    )
    # A bare metal server has no VCPUs.
    if reserved or not vcpus:
        return
    try:
        ends = server_hints.read(hints, specs, _time(server.created_at)).end
    except exception.InvalidInput:
        ends = window.FOREVER
    for start, end in stays:
        declared = ends - start if start < ends < window.FOREVER else None
        kind = trace.UNBOUNDED if declared is None else trace.BOUNDED
        if flavor_rules.is_preemptible(specs):
            kind = trace.PREEMPTIBLE
        if start < end:
            yield trace.Instance(
                start - begin, end - start, vcpus, memory_mb, kind, declared,
                gpus,
            )


def _hosts(sdk: 'Connection', bar: progress.Progress) -> list[trace.Host]:
    """Return the enabled hosts with VCPUs, with the capacity in Placement."""
    names = {
        each.id: each.name for each in sdk.compute.hypervisors(details=True)
        if each.status == 'enabled'
    }
    # The capacity of each host with its child providers, by resource class.
    capacities: dict[str, Counter[str]] = {id_: Counter() for id_ in names}
    providers = [
        each for each in sdk.placement.resource_providers()
        if each.root_provider_id in names
    ]
    for provider in bar.track(providers, description='hosts'):
        for held in sdk.placement.resource_provider_inventories(provider):
            capacities[provider.root_provider_id][held.resource_class] += (
                Inventory(
                    held.total, held.reserved, held.allocation_ratio
                ).capacity
            )
    hosts = (
        trace.Host(names[id_], *_size(held))
        for id_, held in capacities.items()
    )
    return [each for each in hosts if each.vcpus and each.memory_mb]


def _size(amounts: Mapping[str, int]) -> tuple[int, int, int]:
    """Return the vCPUs, MB and GPUs in amounts by class."""
    return (
        amounts.get(inventory.VCPU, 0) + amounts.get(inventory.PCPU, 0),
        amounts.get(inventory.MEMORY_MB, 0),
        sum(held for name, held in amounts.items() if _GPU in name),
    )


def _time(text: str) -> int:
    return duration.parse_time(text, 'time of Nova')
