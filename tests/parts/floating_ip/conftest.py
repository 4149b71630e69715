# SPDX-License-Identifier: Apache-2.0
"""A manager with a Neutron of its own, and what it does for floating IPs."""

import pytest

from blazar_sched.parts.floating_ip import healing
from blazar_sched.parts.floating_ip import models
from blazar_sched.parts.floating_ip.manager import FloatingIPs
from blazar_sched.parts.floating_ip.neutron import Neutron
from tests import looped
from tests.functional.api.conftest import api  # noqa: F401
from tests.functional.manager.conftest import ManagerInMemory


class World(ManagerInMemory):
    """A manager and its surroundings, with floating IPs."""

    def begin(self, conf):
        manager = super().begin(conf)
        self.floating_ips = FloatingIPs(
            self.ledger, Neutron(self.neutron), self.clock
        )
        return manager

    def look(self):
        """Let the manager look at the hosts and at the floating IPs."""
        self.monitor.step()
        self.look_at_floating_ips()

    def look_at_floating_ips(self):
        looped.of(self.manager, healing.Healer).step()

    def set_up(self, *names, up=True):
        super().set_up(*names, up=up)
        self.look_at_floating_ips()

    def registered(self, reservation_id=None):
        """Return all floating IPs, or the floating IPs of a reservation."""
        return self.ledger.run(models.list_, reservation_id)


@pytest.fixture
def world(conf):
    world = World(conf)
    yield world
    world.ledger.close()
