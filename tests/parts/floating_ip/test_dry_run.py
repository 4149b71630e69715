# SPDX-License-Identifier: Apache-2.0
"""Dry runs of requests about floating IPs, too."""

import pytest

from blazar_sched.parts.floating_ip import models
from blazar_sched.parts.floating_ip.floating_ip import FloatingIP
from tests.functional.manager import test_dry_run
from tests.standins.neutron import NETWORK
from tests.standins.neutron import NeutronApi
from tests.standins.neutron import SUBNET

test_dry_run_is_answered_as_the_request = (
    test_dry_run
    .test_dry_run_is_answered_as_the_request_right_after_and_changes_nothing
)


class Cloud(test_dry_run.CloudWithApi):
    """A cloud with floating IPs."""

    def __init__(self, conf, clock):
        self.neutron = NeutronApi()
        super().__init__(conf, clock, adapter={'neutron': self.neutron}.get)
        self.ledger.commit(_register_addresses)

    def felt(self):
        return len(self.neutron.asked), *super().felt()


def _register_addresses(tx):
    for n in (100, 101, 102):
        tx.run(models.add, FloatingIP(
            f'00000000-0000-4000-8000-000000000{n}', NETWORK, SUBNET,
            f'203.0.113.{n}',
        ))


class Walk(test_dry_run.Walk):
    """Random requests, some of which are about floating IPs."""

    def _others(self):
        return [{
            'resource_type': 'virtual:floatingip',
            'network_id': NETWORK,
            'amount': self.rng.randint(1, 2),
        }]


@pytest.fixture
def walk_of():
    return Cloud, Walk
