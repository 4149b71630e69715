# SPDX-License-Identifier: Apache-2.0
"""Leases of Blazar 18 continue under blazar-sched after the import."""

import contextlib
import datetime
import json
import pathlib
import re
import subprocess
import sys

import pytest
import requests

from tests import serving
from tests.cloud import account
from tests.cloud import blazar as blazar_service
from tests.cloud import person
from tests.cloud import polling
from tests.cloud import processes
from tests.cloud import seed
from tests.cloud import site
from tests.cloud.blazar import Blazar
from tests.cloud.blazar import FREEPOOL
from tests.parts.blazar import shown
from tests.services import database
from tests.services import found

ADDRESSES = ('203.0.113.5', '203.0.113.7')
PROGRAMS = pathlib.Path(sys.executable).parent
HOSTS = ['compute-1', 'compute-2', 'compute-3']
_CALLED = ('keystone', 'neutron', 'nova', 'placement')


@pytest.fixture
def blazar(tmp_path, description, admin):
    """Blazar on a cloud that has a freepool, and its `database`."""
    compute, placement = admin.sdk.compute, admin.sdk.placement
    # Blazar creates the resource providers of hosts itself. Those of earlier
    # tests must not be deleted: see Placement.create_child.
    for provider in placement.resource_providers():
        if provider.name.startswith('blazar_'):
            placement.update_resource_provider(
                provider, name=f'before-{provider.id}'
            )
    # An earlier test may have made blazar-sched create the provider.
    pool = (
        compute.find_aggregate(FREEPOOL)
        or compute.create_aggregate(name=FREEPOOL)
    )
    with contextlib.ExitStack() as stack:
        server = found.database(stack, 'mysql')
        url = stack.enter_context(database.made(server))
        made = Blazar(tmp_path, url, description)
        made.database = url
        stack.callback(made.stop)
        made.upgrade()
        made.start()
        yield made
    for host in compute.get_aggregate(pool.id).hosts or ():
        compute.remove_host_from_aggregate(pool.id, host)


class Ours:
    """blazar-sched in one process, with a ledger of its own."""

    def __init__(self, folder, description):
        self._file = folder / 'blazar-sched.conf'
        self._port = serving.free_port()
        user = blazar_service.credentials(description)
        sections = {
            # The cloud's nova-scheduler follows another ledger.
            'DEFAULT': {'transport_url': 'fake://'},
            'database': {'connection': f'sqlite:///{folder}/ledger.sqlite'},
            'api': {
                'auth_strategy': 'keystone',
                'host': '127.0.0.1',
                'port': self._port,
            },
            # One project leases the whole cloud, as it may with Blazar.
            'enforcement': {'max_percent_per_project': -1},
            'keystone_authtoken': user,
            **dict.fromkeys(_CALLED, user),
        }
        self._file.write_text(site.ini(sections))
        self._processes = processes.Processes(folder, PROGRAMS, {})

    @property
    def url(self):
        return f'http://127.0.0.1:{self._port}/v1'

    def db(self, *arguments):
        """Run a command of `blazar-sched db`; return its output."""
        done = subprocess.run(
            [
                PROGRAMS / 'blazar-sched', 'db', '--config-file', self._file,
                *arguments,
            ],
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self):
        self._processes.start(
            'ours', 'blazar-sched', 'serve', '--config-file', self._file
        )
        self._processes.wait('ours', self._answers)

    def stop(self):
        self._processes.end()

    def _answers(self):
        with contextlib.suppress(requests.ConnectionError):
            requests.get(self.url, timeout=60)
            return True
        return False


@pytest.fixture
def ours(tmp_path, description):
    made = Ours(tmp_path, description)
    yield made
    made.stop()


@pytest.fixture
def helper(admin, demo, new_person):
    """An administrator in the project of `demo`."""
    identity = admin.sdk.identity
    role = identity.find_role('admin').id
    grant = demo.project_id, admin.user_id, role
    identity.assign_project_role_to_user(*grant)
    yield new_person('admin', 'demo')
    identity.unassign_project_role_from_user(*grant)


def at(**ahead):
    when = datetime.datetime.now(datetime.UTC) + datetime.timedelta(**ahead)
    return when.strftime('%Y-%m-%d %H:%M')


def book(owner, name, *reservations, start='now', **ahead):
    return owner.lease.create(
        name, start, at(**(ahead or {'days': 1})), list(reservations), []
    )


def active(owner, lease):
    """Wait until a lease is active; return it."""

    def look():
        now = owner.lease.get(lease['id'])
        assert now['status'] != 'ERROR', now
        return now if now['status'] == 'ACTIVE' else None

    return polling.until(look)


def gone(owner, leases):
    """Delete leases, and wait until they are deleted."""
    ids = {lease['id'] for lease in leases}
    for id_ in ids:
        owner.lease.delete(id_)
    polling.until(
        lambda: ids.isdisjoint(each['id'] for each in owner.lease.list())
    )


def in_minutes(entities):
    """Return the output without seconds, which Blazar's API does not have."""
    allocations = entities['allocations'].items()
    entities['allocations'] = {host: sorted(a) for host, a in allocations}
    text = re.sub(r'(T\d\d:\d\d):\d\d(\.\d+)?', r'\1', json.dumps(entities))
    return json.loads(text)


def fill(root, member, network_id, flavor_id):
    """Create a lease of each type; return the active ones."""
    root.host.create('compute-1', gpu='yes')
    for name in HOSTS[1:]:
        root.host.create(name)
    for address in ADDRESSES:
        root.floatingip.create(network_id, address)
    hosts = person.hosts(resource_properties='["==", "$gpu", "yes"]')
    floating_ips = {
        'resource_type': 'virtual:floatingip',
        'network_id': network_id,
        'amount': 1,
    }
    flavor = {
        'resource_type': 'flavor:instance',
        'flavor_id': flavor_id,
        'amount': 1,
        'affinity': None,
    }
    leases = [
        book(member, 'hosts', hosts),
        book(member, 'addresses', floating_ips),
        book(member, 'flavor', flavor),
        book(member, 'group', person.instances(2, affinity=True)),
    ]
    book(
        member, 'to come', hosts, floating_ips,
        person.instances(1, affinity=False), start=at(days=2), days=3,
    )  # fmt: skip
    return [active(member, lease) for lease in leases]


def left(admin):
    """Return what is in the cloud because of leases."""
    compute = admin.sdk.compute
    return {
        'aggregates': {a.name for a in compute.aggregates()} - {FREEPOOL},
        'flavors': {
            f.id for f in compute.flavors(is_public=None)
            if f.name.startswith('reservation:')
        },
        'classes': [
            c.name for c in admin.sdk.placement.resource_classes()
            if c.name.startswith('CUSTOM_RESERVATION')
        ],
        'groups': list(compute.server_groups(all_projects=True)),
        'addresses': list(admin.sdk.network.ips()),
    }


@pytest.fixture
def boot_in(helper, placement):
    """boot_in(reservation) boots a server on the host of a reservation.

    The host is forced: the cloud's scheduler follows another ledger.
    """

    def boot_in(reservation):
        [host] = placement.slots(reservation['id'])
        return helper.boot('by force', reservation['id'], zone=f'nova:{host}')

    return boot_in


def go_there(blazar, ours):
    blazar.stop()
    ours.db('upgrade')
    dry_run = ours.db('import-blazar', '--dry-run', blazar.database)
    assert 'Everything can be imported' in dry_run
    assert 'Imported' in ours.db('import-blazar', blazar.database)
    ours.start()


def go_back(blazar, ours, removed):
    ours.stop()
    dry_run = ours.db('export-blazar', '--dry-run', blazar.database)
    assert 'Everything can be exported' in dry_run
    for lease in removed:
        assert f'deleted in Blazar: lease {lease["id"]}' in dry_run
    exported = ours.db('export-blazar', blazar.database)
    assert 'Exported. 0 differences found' in exported
    blazar.start()


def test_leases_are_used_and_removed_and_others_go_back(
    blazar, ours, admin, demo, boot_in, nova
):
    def clients(url):
        return (blazar_service.client(p, url) for p in (admin, demo))

    root, member = clients(blazar.url)
    opened = fill(
        root, member, admin.sdk.network.find_network(seed.NETWORK).id,
        admin.sdk.compute.find_flavor('m1.tiny').id,
    )
    [stays] = opened[2]['reservations']
    server = boot_in(opened[-1]['reservations'][0])
    before = shown.shown(root)
    go_there(blazar, ours)
    root, member = clients(ours.url)
    assert shown.shown(root) == before
    assert nova.status_of(server) == 'ACTIVE'

    # Pending leases have objects there too, until the cleanup.
    assert '1 pending leases' in ours.db('tidy-blazar')
    removed = [
        each for each in member.lease.list() if each['id'] != opened[2]['id']
    ]
    gone(member, removed)
    assert nova.status_of(server) is None
    assert left(admin) == {
        'aggregates': {stays['id']}, 'flavors': {stays['id']},
        'classes': [account.class_of(stays['id'])], 'groups': [],
        'addresses': [],
    }
    assert nova.hosts_in(FREEPOOL) == HOSTS
    assert '\n0 inconsistencies' in ours.db('check')

    here = active(member, book(
        member, 'opened here', person.instances(
            2, affinity=True,
            resource_properties='["!=", "$hypervisor_hostname", "compute-1"]',
        ),
    ))  # fmt: skip
    [slots] = here['reservations']
    server = boot_in(slots)
    to_come = book(
        member, 'to start', person.hosts(
            resource_properties='["==", "$gpu", "yes"]'
        ), start=at(days=4), days=5,
    )  # fmt: skip
    before = in_minutes(shown.shown(root))
    go_back(blazar, ours, removed)
    root, member = clients(blazar.url)
    after = in_minutes(shown.shown(root))
    for name, entities in after.items():
        assert entities == before[name]
    done = [a.action for a in admin.sdk.compute.server_actions(server.id)]
    assert done == ['create']
    assert nova.status_of(server) == 'ACTIVE'

    # Its client does not accept 'now'.
    for lease, date in (here, 'end_date'), (to_come, 'start_date'):
        member.lease.request_manager.put(
            f'/leases/{lease["id"]}', body={date: 'now'}
        )
    polling.until(
        lambda: member.lease.get(here['id'])['status'] == 'TERMINATED'
    )
    assert nova.status_of(server) is None
    assert slots['id'] not in left(admin)['flavors']
    [started] = active(member, to_come)['reservations']
    assert nova.hosts_in(started['id']) == HOSTS[:1]
    gone(member, member.lease.list())
    assert not any(left(admin).values())
    assert nova.hosts_in(FREEPOOL) == HOSTS
