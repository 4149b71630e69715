# SPDX-License-Identifier: Apache-2.0
"""How nova-scheduler loads the classes, and what is imported with them."""

import inspect
import pickle
import subprocess
import sys
import textwrap

from nova.objects import flavor as nova_flavor
from nova.objects import image_meta
from nova.objects import instance_pci_requests as pci_request
from nova.objects import request_spec
from nova.scheduler import filters
from nova.scheduler import host_manager
from nova.scheduler import request_filter
from nova.scheduler import utils
from nova.scheduler import weights
import pytest

from blazar_sched.domain import inventory
from blazar_sched.domain import reservation
from blazar_sched.domain import window
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import INSTANCE_LIFETIME
from blazar_sched.domain.demand import VIRTUAL_INSTANCE
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.inventory import Inventory
from blazar_sched.ext import host_state
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.worker import nova_objects
from blazar_sched.worker import process
from blazar_sched.worker import request
from blazar_sched.worker import threads
from tests import overriding

WEIGHERS = ['LeaseGapWeigher', 'VacateCostWeigher', 'DeviceWeigher']
FILTERS = ['ReservationFilter', 'LifetimeFilter']
NOW = 1_900_000_000


def names(classes):
    return [each.__name__ for each in classes]


@pytest.mark.row('C49', 'C51')
def test_filters_are_found_by_one_line():
    found = filters.HostFilterHandler().get_matching_classes(
        ['blazar_sched.filters.all_filters']
    )

    assert names(found) == FILTERS


@pytest.mark.row('C49', 'C51')
def test_weighers_are_found_by_one_line():
    found = weights.HostWeightHandler().get_matching_classes(
        ['blazar_sched.weighers.all_weighers']
    )

    assert names(found) == WEIGHERS


def test_names_are_not_novas():
    theirs = filters.all_filters() + weights.all_weighers()

    assert not set(names(theirs)) & {*FILTERS, *WEIGHERS}


HOST_STATE = host_manager.HostState('host', 'node', 'cell')


@pytest.mark.parametrize(
    ('read', 'theirs'),
    [
        (host_state.HostState, HOST_STATE),
        (nova_objects.Destination, request_spec.Destination()),
        (nova_objects.Flavor, nova_flavor.Flavor()),
        (nova_objects.Image, image_meta.ImageMeta()),
        (nova_objects.PciRequest, pci_request.InstancePCIRequest()),
        (nova_objects.PciRequests, pci_request.InstancePCIRequests()),
        (nova_objects.RequestGroup, request_spec.RequestGroup()),
        (nova_objects.RequestSpec, request_spec.RequestSpec()),
    ],
)
def test_nova_has_all_that_is_read(read, theirs):
    methods = {name for name in vars(read) if not name.startswith('_')}

    assert inspect.get_annotations(read).keys() | methods <= {*dir(theirs)}


@pytest.mark.parametrize(
    ('theirs', 'names'),
    [
        (HOST_STATE, {'consume_from_request', 'allocation_candidates'}),
        (request_filter, {'ALL_REQUEST_FILTERS'}),
        (utils, {'get_weight_multiplier', 'request_is_rebuild'}),
        (filters.BaseHostFilter, {'RUN_ON_REBUILD', 'filter_all'}),
        (weights.BaseHostWeigher, {
            '_weigh_object', 'weigh_objects', 'weight_multiplier',
        }),
    ],
)
def test_nova_has_all_that_is_called_and_overridden(theirs, names):
    assert names <= {*dir(theirs)}


@pytest.fixture
def objects(monkeypatch, tmp_path):
    from blazar_sched.filters import all_filters
    from blazar_sched.weighers import all_weighers

    # No service responds on this bus, and nothing waits for a response.
    monkeypatch.setattr(threads, 'RPC_TIMEOUT', 0.1)
    with overriding.options(
        transport_url='fake:/', snapshot_path=str(tmp_path / 'snapshot')
    ):
        yield [each() for each in (*all_filters(), *all_weighers())]
        process.stop()


def test_filters_and_weighers_hold_no_state_and_can_be_pickled(objects):
    for each in objects:
        assert vars(each) == {}
        assert type(pickle.loads(pickle.dumps(each))) is type(each)


def test_filters_run_for_each_instance_of_a_request(objects):
    for each in objects[:2]:
        assert each.run_filter_for_index(1)
        assert not each.RUN_ON_REBUILD


IMPORTS = textwrap.dedent(
    """
    import importlib.abc
    import sys

    BARRED = {barred}

    class Bar(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name.partition('.')[0] not in BARRED:
                return None
            frame = sys._getframe(1)
            while 'importlib' in frame.f_code.co_filename:
                frame = frame.f_back
            who = frame.f_globals['__name__']
            if {everyone} or who.startswith('blazar_sched'):
                print(who, 'imports', name)
            return None

    sys.meta_path.insert(0, Bar())
    import {modules}
    {then}
    """
)


def imported(barred, modules, then='', everyone=False):
    """Return the modules of `barred` that are imported, by whom."""
    done = subprocess.run(
        [
            sys.executable, '-W', 'ignore', '-c',
            IMPORTS.format(
                barred=barred, modules=modules, then=then, everyone=everyone
            ),
        ],
        capture_output=True, text=True, timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_packages_need_no_nova_and_no_service():
    barred = {
        'nova', 'sqlalchemy', 'alembic', 'falcon', 'waitress', 'jsonschema'
    }
    modules = (
        'blazar_sched.filters, blazar_sched.weighers, '
        'blazar_sched.hooks.middleware, '
        'blazar_sched.worker.request, blazar_sched.worker.process'
    )

    assert imported(barred, modules, everyone=True) == []


def test_classes_bring_no_database_and_no_web_framework():
    barred = {'sqlalchemy', 'alembic', 'falcon', 'waitress', 'eventlet'}

    assert imported(
        barred, 'blazar_sched.filters, blazar_sched.weighers',
        'blazar_sched.filters.all_filters(); '
        'blazar_sched.weighers.all_weighers()',
    ) == []


def test_classes_bring_nothing_of_the_service():
    script = (
        'import sys\n'
        'from blazar_sched import filters, weighers\n'
        'filters.all_filters(); weighers.all_weighers()\n'
        "print([m for m in sys.modules if 'blazar_sched.service' in m])"
    )

    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', script], capture_output=True,
        text=True, timeout=60,
    )

    assert done.stdout == '[]\n'


def spec(hints=None, **fields):
    """A RequestSpec as Nova creates it."""
    held = {
        'vcpus': 2, 'memory_mb': 1024, 'root_gb': 10, 'ephemeral_gb': 5,
        'swap': 0, 'extra_specs': {}, **fields,
    }
    is_bfv = held.pop('is_bfv', False)
    return request_spec.RequestSpec(
        instance_uuid='4d8f3a5e-6a8f-4a44-9d5e-0e5b3b7a9c11', project_id='p1',
        flavor=nova_flavor.Flavor(**held), is_bfv=is_bfv,
        scheduler_hints={
            name: value if isinstance(value, list) else [value]
            for name, value in (hints or {}).items()
        },
    )


def read(asked, replica=None):
    return request.read_request(asked, replica, NOW, process.CONF.blazar_sched)


class TestRequest:
    """The fields that are read from a RequestSpec."""

    @pytest.mark.parametrize(
        'fields, disk_gb',
        [
            ({}, 15),
            ({'swap': 1}, 16),
            ({'swap': 1024}, 16),
            ({'swap': 1025}, 17),
            ({'is_bfv': True, 'swap': 512}, 6),
        ],
        ids=str,
    )
    def test_disk(self, fields, disk_gb):
        assert read(spec(**fields)).amounts == (2, 1024, disk_gb)

    def test_without_hints_and_extra_specs(self):
        bare = spec()
        bare.scheduler_hints = None
        del bare.flavor.extra_specs

        asked = read(bare)

        assert not asked.bound
        assert not asked.preemptible

    def test_a_megabyte_of_hint(self):
        """A3: a long hint, however the hint passes the limit of the API."""
        hint = 'x' * (1 << 20)

        asked = read(spec({'reservation': hint, 'lifetime': hint}))

        assert asked.reservation_id == hint

    @pytest.mark.parametrize('value', ['true', 'True', '1', 'yes', 'on'])
    def test_preemptible(self, value):
        extra_specs = {'blazar:preemptible': value}

        assert read(spec(extra_specs=extra_specs)).preemptible

    @pytest.mark.row('C35')
    @pytest.mark.parametrize('seen', [False, True])
    @pytest.mark.parametrize('start', [NOW, NOW + 1])
    def test_back_onto_its_place(self, start, seen):
        """A shelved server returns to its allocation.

        This holds also if the feed still has the server where it was shelved.
        A server that moves ahead of its start has no allocation yet.
        """
        asked = spec()
        uuid = asked.instance_uuid
        own = reservation.lifetime_id(uuid)
        held = {c: Inventory(8) for c in inventory.RESOURCE_CLASSES}
        nouns = [
            Host('h', '1', 'h', inventory=held),
            record.Reservation(
                own, 'l', 'p1', INSTANCE_LIFETIME, start, NOW + 500
            ),
            Allocation('a', own, 'h', start, NOW + 500, {'VCPU': 2}),
        ]
        if seen:
            nouns.append(Instance(uuid, 'h', 'p1', {'VCPU': 2}, end=start))
        replica = state.Replica(accounting.SchedulerAccounting)
        replica.apply(1, map(record.encode, nouns))

        found = read(asked, replica)

        early = seen and start > NOW
        assert found.reservation_id == (None if early else own)
        assert found.end == (start if early else NOW + 500)

    @pytest.mark.parametrize('named, over, expected', [
        ({}, False, None),
        ({'extra_specs': {'blazar:reservation': 'r'}}, False, 'r'),
        ({'extra_specs': {'blazar:reservation': 'r2'}}, False, 'r2'),
        ({'hint': 'r'}, False, 'r'),
        ({'hint': 'r'}, True, None),
        ({'hint': 'r2'}, False, None),
    ], ids=str)
    def test_reservation_of_a_server_after_its_resize(
        self, named, over, expected
    ):
        """Its record names a reservation by its old flavor.

        The reservation r2 is unknown: no flavor of it is free for servers, and
        what once had a hint of it counts for itself.
        """
        hint = named.get('hint')
        asked = spec({'reservation': hint} if hint else {}, **{
            name: value for name, value in named.items() if name != 'hint'
        })
        replica = state.Replica(accounting.SchedulerAccounting)
        # A replica has no reservation that is over.
        replica.apply(1, map(record.encode, (
            Host('h', '1', 'h'),
            *[record.Reservation(
                'r', 'l', 'p1', VIRTUAL_INSTANCE, NOW - 500, NOW + 500,
                slot={'VCPU': 2},
            )][over:],
            Instance(
                asked.instance_uuid, 'h', 'p1', {'VCPU': 2}, end=NOW + 500,
                reservation_id='r', claim='r',
            ),
        )))

        found = read(asked, replica)

        assert found.reservation_id == expected
        assert found.end == (NOW + 500 if expected == 'r' else window.FOREVER)


class TestFilterAll:
    """filter_all responds to any input."""

    @pytest.fixture
    def host_states(self):
        found = [host_manager.HostState(name, name, 'cell') for name in 'ab']
        # This host has never reported, so it has no uuid.
        found[0].uuid = '9a4d4a52-6a27-4b5e-8a10-6e9d3f1c2b77'
        return found

    @pytest.mark.parametrize('n', [0, 1])
    @pytest.mark.parametrize(
        'asked', [None, 7, object()], ids=['none', 'number', 'object']
    )
    def test_filters_pass_all_hosts_for_a_nonsense_request(
        self, objects, host_states, n, asked
    ):
        # No replica: no host is known to be reservable.
        assert objects[n].filter_all(iter(host_states), asked) == host_states
