# SPDX-License-Identifier: Apache-2.0
"""Actions of operators on spare hosts: hold hosts back, and give them free."""

from tests.simulation import features
from tests.simulation.actions import registry


@registry.action(5, features.SPARES)
def hold_back(world):
    """Make a host spare, or give a spare host free; one host is not spare."""
    hosts = world.ledger.hosts()
    spare = [host for host in hosts if host.spare]
    if spare and (len(spare) + 1 >= len(hosts) or world.happens(0.3)):
        change_of, change = spare, {'spare': False}
    else:
        change_of = [host for host in hosts if not host.spare]
        change = {'spare': True}
    if change_of:
        host = world.random.choice(change_of)
        world.ask('PUT', f'/v1/os-hosts/{host.id}', change, 'admin')
