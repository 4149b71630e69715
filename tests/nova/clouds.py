# SPDX-License-Identifier: Apache-2.0
"""The clouds of the tests: modules that need the same cloud share it.

There is one cloud at a time in a process. It runs until a module needs another
cloud, or none.
"""

import contextlib
import json
from typing import NamedTuple

from nova import conf as nova_conf
from nova.pci import request as pci_request
from nova.virt import fake
import pytest

from demo.cloud import Cloud
from demo.cloud import wait_for

# The PCI devices of each host of a cloud with devices, and their alias.
DEVICES = 3
GPU = 'CUSTOM_PCI_10DE_20B0'
DEVICE = {'vendor_id': '10de', 'product_id': '20b0'}
ALIASES = [json.dumps({'name': 'a100', **DEVICE, 'device_type': 'type-PCI'})]

WITH_DEVICES = {
    'pci': {
        'alias': ALIASES, 'report_in_placement': True,
        'device_spec': [json.dumps(DEVICE)],
    },
    'filter_scheduler': {'pci_in_placement': True},
}


# An image of Nova's stand-in of Glance that the servers are not booted from.
OTHER_IMAGE = 'a2459075-d96c-40d5-893e-577ff92e721c'


class Kind(NamedTuple):
    """What a cloud has from its start on.

    :ivar name: clouds that differ in nothing else have histories of their own
    :ivar hooks: whether nova-api has the filter of this project; without it
        tests are faster, and the scheduler's filters get every request
    :ivar devices: whether each host has PCI devices
    :ivar pending_ttl: 0 where tests tell the ledger of placed servers, if at
        all
    """

    name: str
    hosts: tuple[str, ...]
    vcpus: int = 8
    hooks: bool = False
    devices: bool = False
    pending_ttl: int = 0


FOUR = Kind('four', ('c1', 'c2', 'c3', 'c4'))
PAIR = Kind('pair', ('compute-1', 'compute-2'))
SMALL = Kind('small', ('c1', 'c2', 'c3'), vcpus=4, devices=True)


class SharedCloud(Cloud):
    """A cloud whose options can be restored."""

    def __init__(self, kind):
        super().__init__(
            kind.hosts, kind.vcpus, hooks=kind.hooks,
            options={'pending_ttl': kind.pending_ttl},
            settings=WITH_DEVICES if kind.devices else None,
        )
        self._before = {}

    def configure(self, group='blazar_sched', **options):
        conf = nova_conf.CONF
        known = conf if group == 'DEFAULT' else conf[group]
        for name in options:
            self._before.setdefault((group, name), known[name])
        super().configure(group, **options)

    @contextlib.contextmanager
    def restoring(self):
        """Restore at the end the options that are set meanwhile."""
        outer, self._before = self._before, {}
        try:
            yield self
        finally:
            for (group, name), value in self._before.items():
                super().configure(group, **{name: value})
            self._before = outer

    def boot_each(self, flavor_id, hints, **parameters):
        """Boot a server for each of the hints; return the settled servers."""
        posted = []
        for each in hints:
            posted.append(self.api.post_server({
                'server': {
                    'name': 'server', 'imageRef': self.image_id,
                    'flavorRef': flavor_id, 'networks': 'none', **parameters,
                },
                'os:scheduler_hints': each,
            }))
        return [self.settled(server) for server in posted]

    def evacuate(self, server):
        """Evacuate a server from a host that has failed; return the server.

        Nova changes the host of the server after the task is over.
        """
        self.api.post_server_action(server['id'], {'evacuate': {}})
        self.settled(server, 'ACTIVE', 'SHUTOFF')
        wait_for('evacuation', lambda: all(
            m['status'] in ('done', 'error')
            for m in self.api.api_get('/os-migrations').body['migrations']
            if m['instance_uuid'] == server['id']
            and m['migration_type'] == 'evacuation'
        ))
        return self.show(server)

    def clear(self):
        """Delete all servers, and what remains of their moves."""
        self.delete(*self.servers())
        placement = self._nova.placement.api
        for uuid in self.hosts.values():
            left = placement.get(f'/resource_providers/{uuid}/allocations')
            for consumer in left.body['allocations']:
                placement.delete(f'/allocations/{consumer}')
        self.report()


class _Running:
    """The cloud that runs, if any."""

    def __init__(self):
        self.kind = None
        self.cloud = None
        self._end = contextlib.ExitStack()

    def start(self, kind):
        with contextlib.ExitStack() as stack:
            if kind.devices:
                stack.enter_context(_devices())
            self.cloud = stack.enter_context(SharedCloud(kind))
            self.kind = kind
            self._end = stack.pop_all()

    def stop(self):
        self.kind = None
        self._end.close()


_running = _Running()


def running(kind):
    """Return a cloud of this kind: the one that runs, or a new one."""
    if _running.kind != kind:
        _running.stop()
        _running.start(kind)
    return _running.cloud


def stop_unless(kind):
    """Stop the cloud that runs, unless it is of this kind."""
    if _running.kind not in (None, kind):
        _running.stop()


def kind_of(module):
    """Return the kind of the cloud that the tests of a module need."""
    return getattr(module, 'CLOUD', FOUR)


def kind_for(item):
    """Return the kind of the cloud that a test needs, None for none."""
    needed = 'bare_cloud' in getattr(item, 'fixturenames', ())
    return kind_of(item.module) if needed else None


@contextlib.contextmanager
def _devices():
    """Give each compute PCI devices, which Nova reports in Placement."""
    known = fake.FakeDriver.get_available_resource

    def with_devices(self, nodename):
        return known(self, nodename) | {'pci_passthrough_devices': json.dumps([
            {
                **DEVICE, 'address': f'0000:0{n + 1}:00.0',
                'status': 'available', 'dev_type': 'type-PCI',
                'parent_addr': None, 'numa_node': 0,
                'label': 'label_10de_20b0',
            }
            for n in range(DEVICES)
        ])}

    # Nova keeps what it has read of the aliases.
    pci_request.get_alias_from_config.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fake.FakeDriver, 'get_available_resource', with_devices)
        yield
    pci_request.get_alias_from_config.cache_clear()
