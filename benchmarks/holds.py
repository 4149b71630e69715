# SPDX-License-Identifier: Apache-2.0
"""Holds: how long a request or a loop keeps all other commits waiting.

A hold is a transaction that has the lock on the ledger's row, or a look at the
replica, for which the commits of the same manager wait.

Each route has its largest legal request here, and each loop of a manager has
the most work that a step can have; a test compares the list with the routes
and the loops. There are as many hosts as active leases, each with a lease of
the whole host, and 200 hosts without leases. Nova and Placement are the
stand-ins of the tests, and the API is in the process.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import datetime
import json
import threading
import time
from typing import Any
from unittest import mock

from falcon import testing
import futurist
import oslo_messaging
import sqlalchemy as sa

from benchmarks import database
from benchmarks import ledger
from benchmarks import workload
from benchmarks.measure import percentile
from benchmarks.measure import Result
from benchmarks.measure import Target
from blazar_sched.cmd import service as cmd_service
from blazar_sched.domain import inventory
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.relocation import Features
from blazar_sched.domain.window import FOREVER
from blazar_sched.parts.maintenance import models as maintenances
from blazar_sched.parts.notify import models as webhook_models
from blazar_sched.parts.notify import webhook
from blazar_sched.parts.request.manager import LeaseRequests
from blazar_sched.parts.series import models as series_models
from blazar_sched.replica import state
from blazar_sched.service.api import deploy
from blazar_sched.service.clients import receiver
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.manager.manager import Manager
from tests import loopback
from tests import looped
from tests.standins import neutron
from tests.standins.clients import add_compute_node
from tests.standins.clients import Nova
from tests.standins.clients import Placement

SIZES = (200, 1000, 10_000)
# Seconds of processor time for which a commit may keep all others waiting.
BUDGET = 0.05
FREE_HOSTS = 200
# The most reservations of a lease.
RESERVATIONS = 100
HOUR, DAY = workload.HOUR, workload.DAY
# What several requests need: the leases of a maintenance and of a host.
LEASES_ON_HOST = 200
SERVERS = 100
SERVERS_ON_HOST = 4
# What the loops have to do: the hosts that change, and the servers.
CHANGED_HOSTS, NEW_SERVERS, KEYS = 150, 500, 500
# The least number of creates of which there is a 99th percentile (p99).
CREATES = 100

HELD = 'longest hold, processor time, {} active leases'
BESIDE = 'longest create beside, {} active leases'
P99 = 'p99 of creates beside, {} active leases'
QUIET = 'create a lease'

# An address of IANA, to which nothing is sent.
WEBHOOK = {'url': 'https://192.0.32.7/hook', 'events': ['lease.*']}

Ids = dict[str, str]


class Bus:
    """The calls of the API to a manager in the same process."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager

    def call(self, ctxt: Mapping[str, Any], method: str, **kwargs: Any) -> Any:
        try:
            answer = getattr(self._manager.endpoint, method)(
                {}, **json.loads(json.dumps(kwargs))
            )
        except oslo_messaging.ExpectedException as e:
            raise e.exc_info[1] from e
        return json.loads(json.dumps(answer))


class World:
    """A manager with many active leases, and an API in front of the manager.

    :ivar now: the time of the manager, which a step may set
    """

    def __init__(self, url: str, leases: int) -> None:
        conf = ledger.conf(url)
        conf.clear_override('relocate_instances', 'manager')
        self.now = float(workload.NOW)
        self.nova, placement = Nova(), Placement()
        self.nova.known_flavors = [Flavor('f', 'small', 2, 1024, 10)]
        names = [f'host-{n}' for n in range(leases + FREE_HOSTS)]
        uuids = [
            add_compute_node(self.nova, placement, name, 64, 262144, 2000)
            for name in names
        ]
        _fill(url, list(zip(names, uuids, strict=True)), leases)
        self.manager = Manager(
            conf, self.nova, placement, lambda: self.now,
            adapter={'neutron': neutron.NeutronApi()}.get,
            pool=futurist.SynchronousExecutor(),
        )
        self.ids: Ids = {'host': str(leases), 'free': names[-1]}
        self._client = loopback.client(deploy.deploy(conf, Bus(self.manager)))
        self.manager.ledger.warm()

    def ask(
        self, route: str, body: Any = None, query: str = '', **ids: str
    ) -> testing.Result:
        """Send a request; `route` is a method and a path of the API.

        :raises RuntimeError: if the request is refused, or fails
        """
        method, path = route.split()
        answer = self._client.simulate_request(
            method, path.format(**ids), json=body, query_string=query,
            headers={
                'X-Auth-Token': 'admin', 'OpenStack-API-Version':
                'reservation latest',
            },
        )
        if answer.status_code >= 400:
            raise RuntimeError(f'{route}: {answer.text}')
        return answer

    def made(self, route: str, body: Any) -> str:
        """Create an object; return its id."""
        answer = self.ask(route, body)
        return str(next(iter(answer.json.values()))['id'])

    def step(self, loop: str) -> None:
        for each in self.manager._loops:
            if each.name == loop:
                each._step()


def _fill(url: str, hosts: list[tuple[str, str]], leases: int) -> None:
    """Write hosts, and active leases of the first of the hosts."""
    engine = sa.create_engine(url)
    window = {'start': workload.NOW - DAY, 'end': workload.NOW + 30 * DAY}
    numbers = range(leases)
    with engine.begin() as connection:
        database.insert(connection, models.Host, (
            {
                **database.host_row(n), 'uuid': uuid,
                'hypervisor_hostname': name, 'service_name': name,
            }
            for n, (name, uuid) in enumerate(hosts)
        ))
        database.insert(connection, models.Lease, (
            {**database.lease_row(n, leases), **window, 'status': 'ACTIVE'}
            for n in numbers
        ))
        database.insert(connection, models.Reservation, (
            {**database.reservation_row(n, leases), 'status': 'active'}
            for n in numbers
        ))
        database.insert(connection, models.Allocation, (
            {
                **database.allocation_row(n, leases), **window,
                'host': hosts[n][1],
            }
            for n in numbers
        ))
        for position, (type_, at, status) in enumerate((
            ('start_lease', window['start'], 'DONE'),
            ('end_lease', window['end'], 'UNDONE'),
        )):
            database.insert(connection, models.Event, (
                {
                    **database.event_row(n, leases, position, type_),
                    'time': at, 'status': status,
                }
                for n in numbers
            ))
    engine.dispose()


def at(seconds: float) -> str:
    """Return a time of a request, in seconds from the time of all ledgers."""
    return ledger.date(int(workload.NOW + seconds))


def instances(**more: Any) -> dict[str, Any]:
    return {
        'resource_type': 'virtual:instance', 'amount': 1, 'vcpus': 1,
        'memory_mb': 1, 'disk_gb': 1, **more,
    }


def largest_lease(first: float = 40 * DAY, **more: Any) -> dict[str, Any]:
    """Return the body of a lease with the most reservations."""
    return {
        'name': 'largest', 'start_date': at(first),
        'end_date': at(first + HOUR),
        'reservations': [instances() for _ in range(RESERVATIONS)], **more,
    }


def small_lease(first: float = 50 * DAY) -> dict[str, Any]:
    return {
        'name': 'small', 'start_date': at(first),
        'end_date': at(first + HOUR), 'reservations': [instances()],
    }


def whole_hosts(count: int) -> dict[str, Any]:
    return {'resource_type': 'physical:host', 'min': count, 'max': count}


def largest_series(
    name: str = 'hourly', first: float = HOUR
) -> dict[str, Any]:
    """Return the body of a series with the most occurrences."""
    start = datetime.datetime.fromtimestamp(workload.NOW + first, datetime.UTC)
    return {
        'name': name, 'rrule': 'FREQ=HOURLY', 'time_zone': 'UTC',
        'start': start.strftime('%Y-%m-%dT%H:%M'), 'duration': '10m',
        'reservations': [instances()],
    }


def _maintenance(world: World) -> dict[str, Any]:
    return {
        'name': 'largest', 'hosts': [world.ids['free']],
        'start_date': at(60 * DAY), 'end_date': at(69 * DAY),
    }


def _many_on_host(world: World, first: float = 60 * DAY) -> None:
    """Create leases to come that are all on one host, and may leave it."""
    requirement = json.dumps(['==', '$hypervisor_hostname', world.ids['free']])
    body = largest_series('on one host', first)
    body['rrule'] += f';COUNT={LEASES_ON_HOST}'
    body['reservations'][0]['resource_properties'] = requirement
    series = world.made('POST /v1/series', body)
    ours = models.Reservation.lease_id.in_(
        sa.select(models.Lease.id).where(models.Lease.series_id == series)
    )
    with world.manager.ledger._to_write.begin() as connection:
        parameters = connection.scalars(
            sa.select(models.Reservation.parameters).where(ours).limit(1)
        ).one()
        connection.execute(sa.update(models.Reservation).where(ours).values(
            parameters={**parameters, 'resource_properties': ''}
        ))


def _one_on_host(world: World) -> None:
    """Create a lease of many reservations that may leave its host."""
    lease = world.made('POST /v1/leases', largest_lease(80 * DAY))
    (allocation, _), *_ = world.manager.ledger.allocations(None, lease)
    (host,) = world.manager.ledger.hosts([allocation.host])
    world.ids |= {'moved': lease, 'left': host.id}


def _new_host(world: World) -> None:
    """Make a hypervisor of many servers."""
    add_compute_node(
        world.nova, world.manager.services.placement, 'new', 2 * SERVERS,
        2 * 262144, 2000,
    )
    for n in range(SERVERS):
        id_ = f'server-{n}'
        world.nova.stored[id_] = Server(
            id_, 'new', 'p1', {inventory.VCPU: 1}, FOREVER, None, False
        )


def _many_in_the_way(world: World) -> None:
    """Let movable servers be on all hosts that have no lease."""
    amounts = {
        inventory.VCPU: 4, inventory.MEMORY_MB: 8192, inventory.DISK_GB: 20
    }
    features = Features(
        {}, {}, None, amounts[inventory.MEMORY_MB], local_disk=False,
        devices=False,
    )
    for name in (*_free_hosts(world), world.ids['free']):
        for n in range(SERVERS_ON_HOST):
            id_ = f'{name}-{n}'
            world.nova.stored[id_] = Server(
                id_, name, 'p1', amounts, FOREVER, None, False,
                features=features,
            )
    world.step('instance sync')


def _displacing(world: World) -> None:
    """Book half of the hosts that servers are on, and delete the lease."""
    lease = world.made('POST /v1/leases', {
        **small_lease(20 * DAY), 'reservations': [whole_hosts(FREE_HOSTS // 2)]
    })
    world.ask('DELETE /v1/leases/{lease_id}', lease_id=lease)


def _displacing_dry(world: World) -> None:
    """Ask whether half of the hosts that servers are on could be booked."""
    try:
        world.ask('POST /v1/leases', {
            **small_lease(20 * DAY),
            'reservations': [whole_hosts(FREE_HOSTS // 2)],
        }, 'dry_run=true')
    except RuntimeError as e:
        if 'are moved on trial' not in str(e):
            raise


def _leases_leave(world: World) -> None:
    """Let leases to come be on hosts to which a server may come."""
    for _ in range(8):
        world.made('POST /v1/leases', {
            **small_lease(25 * DAY), 'reservations': [whole_hosts(1)]
        })


def _small_host(world: World) -> None:
    """Register a host on which no lease of the others has room."""
    add_compute_node(
        world.nova, world.manager.services.placement, 'small', 1, 1, 0
    )
    world.ids['small'] = world.made('POST /v1/os-hosts', {'name': 'small'})


def _request(world: World) -> dict[str, Any]:
    return {
        'name': 'waits', 'duration': '1h', 'start_date': at(HOUR),
        'latest_start_date': at(29 * DAY), 'reservations': [{
            'resource_type': 'physical:host', 'min': FREE_HOSTS + 1,
            'max': FREE_HOSTS + 1,
        }],
    }


def _many_wait(world: World, webhook_id: str) -> None:
    """Let as many notifications wait for a webhook as may."""
    body = json.dumps({'type': 'lease.create', 'data': {'name': 'n' * 1000}})
    with world.manager.ledger._to_write.begin() as connection:
        database.insert(connection, webhook_models.WebhookDelivery, (
            {
                'id': f'{webhook_id[:30]}{n:06}', 'webhook_id': webhook_id,
                'commit': n, 'position': 0, 'body': body, 'subject': str(n),
            }
            for n in range(webhook.MAX_WAITING)
        ))
        connection.execute(sa.update(webhook_models.Webhook).values(
            waiting=webhook.MAX_WAITING,
            waiting_bytes=webhook.MAX_WAITING * len(body),
        ))


def _send(world: World) -> None:
    """Let a receiver accept the notifications of a turn."""
    accepted = receiver.Answer(200)
    with mock.patch.object(receiver, 'post', return_value=accepted):
        world.step('webhooks')


def _offers() -> dict[str, Any]:
    return {
        'reservations': [instances() for _ in range(RESERVATIONS)],
        'duration': '1h', 'limit': 20, 'start_date': at(70 * DAY),
    }


@dataclasses.dataclass(frozen=True)
class Work:
    """The largest request of a route, or the largest step of a loop.

    :param do: sends the request, or takes the step
    :param prepare: makes what the request is about
    """

    do: Callable[[World], object]
    prepare: Callable[[World], object] = lambda world: None


def _reads(route: str, query: str = '', **ids: str) -> Work:
    return Work(lambda world: world.ask(
        route, query=query,
        **{key: world.ids.get(value, value) for key, value in ids.items()},
    ))


def _makes(route: str, body: Callable[[World], Any]) -> Work:
    def do(world: World) -> None:
        world.ids[route.split('/')[2]] = world.made(route, body(world))

    return Work(do)


def _changes(
    route: str, key: str, body: Any = None,
    prepare: Callable[[World], object] = lambda world: None,
) -> Work:
    noun = route.split('/')[2]
    return Work(
        lambda world: world.ask(route, body, **{key: world.ids[noun]}), prepare
    )


ROUTES: dict[str, Work] = {
    **{
        route: _reads(route) for route in (
            'GET /', 'GET /versions', 'GET /v1', 'GET /openapi',
            'GET /v1/leases', 'GET /v1/series', 'GET /v1/maintenances',
            'GET /v1/requests', 'GET /v1/webhooks', 'GET /v1/calendars',
            'GET /v1/os-hosts', 'GET /v1/os-hosts/allocations',
            'GET /v1/os-hosts/properties', 'GET /v1/properties',
            'GET /v1/floatingips', 'GET /v1/capacity', 'GET /v1/limits',
            'GET /v1/reports/usage', 'GET /v1/products', 'GET /v1/timeline',
            'GET /v1/flavors', 'GET /v1/offers',
        )
    },
    # The notification of the lease is one too many for the webhook.
    'POST /v1/leases': dataclasses.replace(
        _makes('POST /v1/leases', lambda world: largest_lease()),
        prepare=lambda world: _many_wait(
            world, world.made('POST /v1/webhooks', WEBHOOK)
        ),
    ),
    'GET /v1/leases/{lease_id}': _reads(
        'GET /v1/leases/{lease_id}', lease_id='leases'
    ),
    'GET /v1/leases/{lease_id}/extension': _reads(
        'GET /v1/leases/{lease_id}/extension', lease_id='leases'
    ),
    'PUT /v1/leases/{lease_id}': _changes(
        'PUT /v1/leases/{lease_id}', 'lease_id',
        {'end_date': at(40 * DAY + 2 * HOUR)},
    ),
    'DELETE /v1/leases/{lease_id}': _changes(
        'DELETE /v1/leases/{lease_id}', 'lease_id'
    ),
    'POST /v1/series': _makes('POST /v1/series', lambda w: largest_series()),
    'GET /v1/series/{series_id}': _reads(
        'GET /v1/series/{series_id}', series_id='series'
    ),
    'PUT /v1/series/{series_id}': _changes(
        'PUT /v1/series/{series_id}', 'series_id', {'duration': '11m'}
    ),
    'DELETE /v1/series/{series_id}': _changes(
        'DELETE /v1/series/{series_id}', 'series_id'
    ),
    'POST /v1/maintenances': dataclasses.replace(
        _makes('POST /v1/maintenances', _maintenance), prepare=_many_on_host
    ),
    'GET /v1/maintenances/{maintenance_id}': _reads(
        'GET /v1/maintenances/{maintenance_id}', maintenance_id='maintenances'
    ),
    'PUT /v1/maintenances/{maintenance_id}': _changes(
        'PUT /v1/maintenances/{maintenance_id}', 'maintenance_id',
        {'start_date': at(71 * DAY), 'end_date': at(80 * DAY)},
        lambda world: _many_on_host(world, 71 * DAY),
    ),
    'DELETE /v1/maintenances/{maintenance_id}': _changes(
        'DELETE /v1/maintenances/{maintenance_id}', 'maintenance_id'
    ),
    'POST /v1/requests': _makes('POST /v1/requests', _request),
    'GET /v1/requests/{request_id}': _reads(
        'GET /v1/requests/{request_id}', request_id='requests'
    ),
    'DELETE /v1/requests/{request_id}': _changes(
        'DELETE /v1/requests/{request_id}', 'request_id'
    ),
    'POST /v1/webhooks': _makes(
        'POST /v1/webhooks', lambda world: WEBHOOK
    ),
    'GET /v1/webhooks/{webhook_id}': _reads(
        'GET /v1/webhooks/{webhook_id}', webhook_id='webhooks'
    ),
    'DELETE /v1/webhooks/{webhook_id}': _changes(
        'DELETE /v1/webhooks/{webhook_id}', 'webhook_id',
        prepare=lambda world: _many_wait(world, world.ids['webhooks']),
    ),
    'POST /v1/calendars': _makes(
        'POST /v1/calendars', lambda world: {'name': 'calendar'}
    ),
    'GET /v1/calendars/{calendar_id}': _reads(
        'GET /v1/calendars/{calendar_id}', calendar_id='calendars'
    ),
    'DELETE /v1/calendars/{calendar_id}': _changes(
        'DELETE /v1/calendars/{calendar_id}', 'calendar_id'
    ),
    'GET /v1/os-hosts/{host_id}': _reads(
        'GET /v1/os-hosts/{host_id}', host_id='host'
    ),
    'GET /v1/os-hosts/{host_id}/allocation': _reads(
        'GET /v1/os-hosts/{host_id}/allocation', host_id='host'
    ),
    'PUT /v1/os-hosts/{host_id}/allocation': Work(lambda world: world.ask(
        'PUT /v1/os-hosts/{host_id}/allocation',
        {'lease_id': world.ids['moved']}, host_id=world.ids['left'],
    ), _one_on_host),
    'POST /v1/os-hosts': dataclasses.replace(
        _makes('POST /v1/os-hosts', lambda world: {'name': 'new'}),
        prepare=_new_host,
    ),
    'PUT /v1/os-hosts/{host_id}': _changes(
        'PUT /v1/os-hosts/{host_id}', 'host_id', {'rack': '7'}
    ),
    'PATCH /v1/os-hosts/properties/{name}': Work(lambda world: world.ask(
        'PATCH /v1/os-hosts/properties/{name}', {'private': True}, name='rack'
    )),
    'DELETE /v1/os-hosts/{host_id}': Work(lambda world: world.ask(
        'DELETE /v1/os-hosts/{host_id}', host_id=world.ids['small']
    ), _small_host),
    'POST /v1/floatingips': _makes('POST /v1/floatingips', lambda world: {
        'floating_network_id': neutron.NETWORK,
        'floating_ip_address': '203.0.113.5',
    }),
    'GET /v1/floatingips/{floating_ip_id}': _reads(
        'GET /v1/floatingips/{floating_ip_id}', floating_ip_id='floatingips'
    ),
    'DELETE /v1/floatingips/{floating_ip_id}': _changes(
        'DELETE /v1/floatingips/{floating_ip_id}', 'floating_ip_id'
    ),
    'POST /v1/offers': Work(lambda world: world.ids.update(
        offers=world.ask('POST /v1/offers', {**_offers(), 'hold': '10m'})
        .json['offers'][0].get('id', '')
    )),
    'GET /v1/offers/{offer_id}': _reads(
        'GET /v1/offers/{offer_id}', offer_id='offers'
    ),
    'PUT /v1/offers/{offer_id}': Work(lambda world: world.ask(
        'PUT /v1/offers/{offer_id}', {'approved': True},
        offer_id=world.ids['offers'],
    )),
    'DELETE /v1/offers/{offer_id}': Work(lambda world: world.ask(
        'DELETE /v1/offers/{offer_id}', offer_id=world.ids['offers']
    )),
}


def _series(world: World) -> None:
    world.made('POST /v1/series', largest_series('to roll on'))
    deleted = world.made('POST /v1/series', largest_series('to delete'))
    with world.manager.ledger._to_write.begin() as connection:
        connection.execute(
            sa.update(series_models.Row).where(series_models.Row.id == deleted)
            .values(deleted_at=1)
        )
    world.now += 10 * DAY


def _ended(world: World) -> None:
    """Let all leases be over for more than a year."""
    with world.manager.ledger._to_write.begin() as connection:
        connection.execute(sa.update(models.Lease).where(
            models.Lease.status == 'ACTIVE'
        ).values(status='TERMINATED', end=1, start=0))
        database.insert(connection, models.IdempotencyKey, (
            {
                'project_id': 'p1', 'key': str(n), 'lease_id': None,
                'digest': '', 'created_at': 0,
            }
            for n in range(KEYS)
        ))
        connection.execute(sa.update(models.Reservation).where(
            models.Reservation.status == 'active'
        ).values(status='deleted'))


def _hosts_fail(world: World) -> None:
    """Let hosts without leases fail, and one host with leases to come."""
    _many_on_host(world, HOUR)
    for name in (*_free_hosts(world)[:CHANGED_HOSTS], world.ids['free']):
        world.nova.nodes[name] = dataclasses.replace(
            world.nova.nodes[name], up=False
        )


def _free_hosts(world: World) -> list[str]:
    """Return the hosts without leases, but for the host `free`."""
    first = int(world.ids['host'])
    return [f'host-{first + n}' for n in range(FREE_HOSTS - 1)]


def _hosts_change(world: World) -> None:
    """Give hosts another inventory in Placement."""
    for held in list(
        world.manager.services.placement.providers.values()
    )[-CHANGED_HOSTS:]:
        held[inventory.DISK_GB] = inventory.Inventory(4000)


def _host_shrinks(world: World) -> None:
    """Let a host lose the room that many leases to come have on the host."""
    _many_on_host(world, 30 * DAY)
    node = world.nova.nodes[world.ids['free']]
    world.manager.services.placement.providers[node.uuid][
        inventory.VCPU
    ] = inventory.Inventory(64, reserved=64)
    world.step('host sync')


def _servers_come(world: World) -> None:
    names = _free_hosts(world)
    for n in range(NEW_SERVERS):
        id_ = f'new-{n}'
        world.nova.stored[id_] = Server(
            id_, names[n % len(names)], 'p1', {inventory.VCPU: 1}, FOREVER,
            None, False,
        )


def _servers_move(world: World) -> None:
    names = _free_hosts(world)
    for n in range(NEW_SERVERS):
        id_ = f'new-{n}'
        world.nova.stored[id_] = dataclasses.replace(
            world.nova.stored[id_], node=names[(n + 1) % len(names)]
        )
        world.manager.instances.notice(id_)


def _maintenance_is_gone(world: World) -> None:
    """Let hosts recover, and another manager leave a maintenance half deleted.
    """
    for name, node in world.nova.nodes.items():
        world.nova.nodes[name] = dataclasses.replace(node, up=True)
    world.step('host monitor')
    id_ = world.made('POST /v1/maintenances', {
        **_maintenance(world), 'hosts': _free_hosts(world)[:CHANGED_HOSTS],
    })
    with world.manager.ledger._to_write.begin() as connection:
        connection.execute(
            sa.delete(maintenances.Row).where(maintenances.Row.id == id_)
        )


def _due(world: World) -> None:
    """Let a lease of many reservations begin."""
    world.made('POST /v1/leases', largest_lease(2 * HOUR))
    world.now += 2 * HOUR + 1


def _waiting(world: World) -> None:
    for _ in range(5):
        world.ask('POST /v1/requests', _request(world))
    # The loop rests after the searches of the requests that were created.
    looped.of(world.manager, LeaseRequests).search_again()
    # There is nothing to search for at the revision of the last search.
    world.made('POST /v1/leases', small_lease())


# The last ones change the time, and all leases.
LOOPS: dict[str, Callable[[World], object]] = {
    'lease requests': _waiting,
    'host monitor': _hosts_fail,
    'maintenance': _maintenance_is_gone,
    'event runner': _due,
    'host sync': _hosts_change,
    'instance sync': _servers_come,
    'instance poll': _servers_move,
    # These have nothing to do by default, or do not write what others wait
    # for.
    **dict.fromkeys((
        'fanout', 'notifier', 'metrics', 'relocation', 'flavor sync',
        'leavable hosts', 'unused reservations', 'closing', 'clearing',
        'webhooks', 'usage', 'usage notifications', 'claim renewer',
        'restorer', 'trust deletion', 'limit sync', 'floating IP healing',
    ), lambda world: None),
    'series': _series,
    'pruner': _ended,
}


def works() -> dict[str, Work]:
    """Return the work of each route and of each loop, in their order.

    A lease is deleted after all other requests about the lease.
    """
    def step(name: str) -> Callable[[World], object]:
        return lambda world: world.step(name)

    return {
        **ROUTES,
        'POST /v1/leases, a dry run': Work(_displacing_dry, _many_in_the_way),
        'POST /v1/leases, servers displaced': Work(
            _displacing, lambda world: None
        ),
        'loop: leavable hosts, leases to come': Work(
            step('leavable hosts'), _leases_leave
        ),
        **{
            f'loop: {name}': Work(step(name), prepare)
            for name, prepare in LOOPS.items()
        },
        'loop: webhooks': Work(_send, lambda world: _many_wait(
            world, world.made('POST /v1/webhooks', WEBHOOK)
        )),
        'loop: host monitor, a host shrinks': Work(
            step('host monitor'), _host_shrinks
        ),
    }


@contextlib.contextmanager
def _holding(seconds: list[float]) -> Iterator[None]:
    """Add the processor time of each hold of a ledger to `seconds`."""
    real, look = Ledger._holding, Ledger._read_replica

    @contextlib.contextmanager
    def spending() -> Iterator[None]:
        began = time.thread_time()
        try:
            yield
        finally:
            if threading.current_thread().name != QUIET:
                seconds.append(time.thread_time() - began)

    @contextlib.contextmanager
    def measured(
        self: Ledger, connection: sa.Connection, step: int
    ) -> Iterator[int]:
        with real(self, connection, step) as revision, spending():
            yield revision

    def looked(
        self: Ledger, query: Callable[[state.Replica], object]
    ) -> object:
        return look(self, spending()(query))

    Ledger._holding = measured  # type: ignore[method-assign, assignment]
    Ledger._read_replica = looked  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Ledger._holding = real  # type: ignore[method-assign]
        Ledger._read_replica = look  # type: ignore[method-assign]


def _creates(world: World, until: threading.Event) -> list[float]:
    """Return the seconds of creates, at least CREATES, beside another work.

    :param until: is set when the other work is over
    """
    seconds = []
    while True:
        began = time.perf_counter()
        world.made('POST /v1/leases', small_lease())
        seconds.append(time.perf_counter() - began)
        if until.is_set() and len(seconds) >= CREATES:
            return seconds


def _beside(world: World, work: Work) -> list[float]:
    """Return the seconds of the creates of another client beside a work."""
    over = threading.Event()
    seconds: list[float] = []
    thread = threading.Thread(
        target=lambda: seconds.extend(_creates(world, over)), name=QUIET
    )
    thread.start()
    try:
        work.do(world)
    finally:
        over.set()
        thread.join()
    return seconds


def _of_creates(
    work: str, leases: int, seconds: Sequence[float]
) -> Iterator[Result]:
    yield Result(work, BESIDE.format(leases), max(seconds), runs=len(seconds))
    yield Result(work, P99.format(leases), percentile(seconds, .99))


def run(
    hosts: int, seed: int, budget: float, say: Callable[[str], None]
) -> Iterator[Result]:
    """Measure each route and each loop, up to so many active leases."""
    for leases in SIZES:
        if leases <= hosts:
            with database.database() as url:
                say(f'holds: {leases} active leases')
                yield from _measured(World(url, leases), leases, say)


def _measured(
    world: World, leases: int, say: Callable[[str], None]
) -> Iterator[Result]:
    held: list[float] = []
    over = threading.Event()
    over.set()
    cmd_service.spare_collections()
    yield from _of_creates(QUIET, leases, _creates(world, over))
    with _holding(held):
        for name, work in works().items():
            say(f'holds: {leases} active leases: {name}')
            work.prepare(world)
            held.clear()
            beside = _beside(world, work)
            yield Result(
                name, HELD.format(leases), max(held, default=0.0),
                runs=len(held),
            )
            yield from _of_creates(name, leases, beside)
    world.manager.ledger.close()


TARGETS = [
    target
    for name in works() for leases in SIZES
    for target in (
        Target(name, HELD.format(leases), at_most=BUDGET),
        # At most twice the time of the creates beside no other work.
        Target(name, P99.format(leases), (QUIET, P99.format(leases)), .5),
    )
]
