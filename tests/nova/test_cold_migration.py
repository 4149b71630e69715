# SPDX-License-Identifier: Apache-2.0
"""A server with a PCI device is moved while it is stopped, in a real Nova."""

from keystoneauth1 import adapter
import pytest

from blazar_sched.domain import duration
from blazar_sched.service.upkeep.relocation import MOVE_AT
from blazar_sched.service.upkeep.relocation import PAUSE
from demo.cloud import wait_for

# Fixtures, which pytest finds by their names; a test that uses one of them
# has a parameter of that name.
from tests.nova.manager.test_pci import devices  # noqa: F401
from tests.nova.manager.test_pci import GPU
from tests.nova.test_relocation import clock  # noqa: F401
from tests.nova.test_relocation import cloud  # noqa: F401
from tests.nova.test_relocation import DAY
from tests.nova.test_relocation import HOUR
from tests.nova.test_relocation import LEAD
from tests.nova.test_relocation import module_site  # noqa: F401
from tests.nova.test_relocation import site  # noqa: F401

pytestmark = [pytest.mark.more, pytest.mark.row('F95')]

# Seconds until the chosen time.
CHOSEN = 300


@pytest.fixture
def server(site):  # noqa: F811
    """A server with a GPU that has to leave host c1 for host c2."""
    site.reserve('c3', start=2 * HOUR, length=10 * DAY)
    with_gpu = site.cloud.flavor(
        1, extra_specs={'pci_passthrough:alias': 'a100:1'}
    )
    server = site.boot(flavor=with_gpu, host='c1')
    assert server['status'] == 'ACTIVE', server.get('fault')
    return server


def shown(there, server):
    return there.cloud.show(server)


def gpus_used(there, name):
    """Return the GPUs of a host that are allocated in Placement."""
    placement = adapter.Adapter(
        there.cloud.session(), service_type='placement',
        default_microversion='1.14',
    )
    tree = placement.get(
        f'/resource_providers?in_tree={there.cloud.hosts[name]}'
    ).json()['resource_providers']
    return sum(
        placement.get(
            f'/resource_providers/{each["uuid"]}/usages'
        ).json()['usages'].get(GPU, 0)
        for each in tree
    )


def look_ahead(there, seconds):
    """Let time pass, and a pause, after which the manager looks again."""
    there.clock.ahead += seconds + PAUSE


def test_the_owner_chooses_when_a_server_with_a_device_is_moved(
    site, server  # noqa: F811
):
    lease = site.reserve('c1')
    assert site.record(server).movable == 'cold'
    assert site.record(server).amounts[GPU] == 1
    assert site.path(server) == ['c1', 'c2']

    look_ahead(site, DAY - 2 * LEAD - PAUSE + 1)
    wait_for('notice', lambda: MOVE_AT in shown(site, server)['metadata'])
    assert shown(site, server)['metadata'][MOVE_AT] == (
        duration.format_time(lease.start - LEAD)
    )
    chosen = int(site.clock()) + CHOSEN
    site.nova.set_server_metadata(
        site.nova.server(server['id']), {MOVE_AT: duration.format_time(chosen)}
    )
    assert site.host_of(server) == 'c1'

    look_ahead(site, CHOSEN)
    wait_for('move', lambda: site.host_of(server) == 'c2')
    wait_for('confirmation', lambda: (
        shown(site, server)['status'] == 'ACTIVE'
        and not shown(site, server)['metadata']
    ))
    wait_for('record', lambda: site.path(server) == [])
    # Nova gives up the device on the host that the server has left. On the
    # other host the server keeps the device that the scheduler has allocated
    # beside another one that the compute has claimed: Nova 34 does this in
    # any cold migration, also without this service.
    wait_for('free device', lambda: gpus_used(site, 'c1') == 0)
    assert gpus_used(site, 'c2') > 0

    site.clock.ahead += lease.start - int(site.clock())
    wait_for('start', lambda: (
        site.manager.ledger.lease(lease.id).status == 'ACTIVE'
    ))
    assert not site.manager.ledger.lease(lease.id).degraded
