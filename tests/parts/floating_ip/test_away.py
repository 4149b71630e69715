# SPDX-License-Identifier: Apache-2.0
"""Services that can do nothing now, as leases with floating IPs begin and end.
"""

import pytest

from blazar_sched.parts.floating_ip.manager import FloatingIPs
from blazar_sched.parts.floating_ip.neutron import Neutron
from tests.functional.manager import test_away
from tests.functional.manager.test_away import TestAnHour
from tests.standins.neutron import NETWORK
from tests.standins.neutron import NeutronApi
from tests.standins.rest import answer

# What addresses need; the core's tests have the other services.
AWAY = {
    'Keystone does not answer': test_away.AWAY['Keystone does not answer'],
    'Neutron does not answer': test_away.only('network', answer(504, {})),
}


class Cloud(test_away.Cloud):
    """A cloud whose leases have an address, too."""

    def __init__(self, conf, many):
        self.neutron = NeutronApi()
        self.neutron.quota = -1
        super().__init__(conf, many, adapter={'neutron': self.neutron}.get)

    def prepare(self, many):
        registered = FloatingIPs(
            self.ledger, Neutron(self.neutron), self.clock
        )
        self.addresses = [f'203.0.113.{100 + n}' for n in range(2 * many)]
        for address in self.addresses:
            registered.create(NETWORK, address)

    def others(self):
        return [{
            'resource_type': 'virtual:floatingip', 'network_id': NETWORK,
            'amount': 1, 'required_floatingips': [self.addresses.pop()],
        }]

    def be_away(self, meddle):
        self.cloud.meddle = self.neutron.meddle = meddle


@pytest.fixture
def many():
    return 2


@pytest.fixture
def away():
    return AWAY


@pytest.fixture(params=AWAY)
def trouble(request):
    return request.param


@pytest.fixture
def cloud(conf, many):
    # An event that is refused is given up within the minute.
    conf.set_override('event_max_retries', 2, 'manager')
    cloud = Cloud(conf, many)
    yield cloud
    cloud.ledger.close()


@pytest.mark.more
@pytest.mark.parametrize('many', [50])
class TestAnHourOfMany(TestAnHour):
    """The same, with many leases."""
