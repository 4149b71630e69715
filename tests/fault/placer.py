# SPDX-License-Identifier: Apache-2.0
"""A nova-scheduler that places servers by the filters, over the real bus.

``python -m tests.fault.placer CONFIG PORT SEED COUNT PAUSE CONTROL``: the
servers of the cloud, and the claims in Placement, are those of the process
that serves the port. A build fails now and then; the server then goes to an
alternate by a claim in Placement alone, as nova-conductor does it. With
CONTROL 1 no placed server is noted, and each host may be an alternate.
"""

import os

# Nova reads the variable when it is imported.
os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', '1')

from multiprocessing import managers  # noqa: E402
import random  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
import uuid  # noqa: E402

from nova import objects  # noqa: E402
from nova.scheduler import filters  # noqa: E402
from nova.scheduler import host_manager  # noqa: E402

from blazar_sched.filters import lifetime_filter  # noqa: E402
from blazar_sched.filters import reservation_filter  # noqa: E402
from blazar_sched.worker import nova_objects  # noqa: E402
from blazar_sched.worker import process  # noqa: E402
from tests.standins import rest  # noqa: E402

KEY = b'storm'
VCPUS = 8
PROJECT = 'p' * 32
BUILDS_FAIL = 0.2


class Cloud(managers.BaseManager):
    """The connection to the cloud of the test."""


Cloud.register('placement')


def host_states(servers):
    """Return Nova's HostStates of a cloud: {hostname: {uuid: VCPUs}}."""
    states = []
    for name, here in servers.items():
        state = host_manager.HostState(name, name, 'cell')
        state.uuid = rest.uuid_of(name)
        state.vcpus_total, state.vcpus_used = VCPUS, sum(here.values())
        state.total_usable_ram_mb = state.free_ram_mb = 1 << 20
        state.total_usable_disk_gb = 1 << 10
        state.free_disk_mb, state.disk_mb_used = 1 << 20, 0
        state.instances = dict.fromkeys(here)
        state.num_instances = len(here)
        state.allocation_candidates = [state.uuid]
        states.append(state)
    return states


def spec_of(id_, vcpus, lifetime):
    return objects.RequestSpec(
        instance_uuid=id_, project_id=PROJECT, num_instances=1, is_bfv=True,
        flavor=objects.Flavor(
            vcpus=vcpus, memory_mb=1, root_gb=0, ephemeral_gb=0, swap=0,
            extra_specs={},
        ),
        scheduler_hints={'lifetime': [lifetime]} if lifetime else {},
        numa_topology=None, pci_requests=None, instance_group=None,
    )


def place(chain, placement, draw):
    id_ = str(uuid.UUID(int=draw.getrandbits(128), version=4))
    vcpus = draw.choice((1, 2, 4))
    lifetime = draw.choice(('', f'{draw.randint(1200, 7200)}s'))
    spec = spec_of(id_, vcpus, lifetime)
    states = host_states(placement.servers())
    passing = filters.HostFilterHandler().get_filtered_objects(
        chain, states, spec
    ) or []
    draw.shuffle(passing)
    for chosen in passing:
        if placement.claim(id_, chosen.host, vcpus, lifetime):
            break
    else:
        return
    chosen.consume_from_request(spec)
    if draw.random() >= BUILDS_FAIL:
        placement.build(id_)
        return
    alternates = [
        h for h in passing if h is not chosen and h.allocation_candidates
    ]
    for alternate in alternates[:2]:
        if placement.claim(id_, alternate.host, vcpus, lifetime, True):
            placement.build(id_)
            return
    placement.give_up(id_)


def main(config, port, seed, count, pause, control):
    objects.register_all()
    process.CONF([], project='nova', default_config_files=[config])
    if int(control):
        nova_objects.observe_placements = lambda *args: None
    process.prepare()
    cloud = Cloud(('127.0.0.1', int(port)), KEY)
    cloud.connect()
    placement = cloud.placement()
    draw = random.Random(seed)
    chain = [
        reservation_filter.ReservationFilter(),
        lifetime_filter.LifetimeFilter(),
    ]
    for _ in range(int(count)):
        place(chain, placement, draw)
        time.sleep(draw.random() * 2 * float(pause))


if __name__ == '__main__':
    main(*sys.argv[1:])
