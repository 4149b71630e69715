# SPDX-License-Identifier: Apache-2.0
"""The end in the record of an instance."""


import pytest

from blazar_sched.domain import window
from blazar_sched.domain.demand import INSTANCE_LIFETIME
from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.reservation import lifetime_id
from blazar_sched.replica import accounting
from blazar_sched.replica import instance_record
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service.clients.nova import Server


class TestEnd:
    NOW = 1000

    @pytest.fixture
    def replica(self):
        replica = state.Replica(accounting.LedgerAccounting)
        replica.apply(1, [record.encode(Host(
            'h', '', 'a', inventory={'VCPU': Inventory(8)}
        ))])
        return replica

    def end(self, replica, **values):
        server = Server(**{
            'uuid': 'x', 'node': 'a', 'project_id': 'p',
            'amounts': {'VCPU': 1}, 'end': window.FOREVER,
            'reservation_id': None, 'preemptible': False, **values,
        })
        return instance_record.make(replica, 'h', server, self.NOW).end

    def own(self, replica, start, end):
        """Give the server a lease of its own."""
        replica.apply(2, [record.encode(record.Reservation(
            lifetime_id('x'), 'lease', 'p', INSTANCE_LIFETIME, start, end
        ))])

    def test_record_has_the_declared_end(self, replica):
        assert self.end(replica) == window.FOREVER
        assert self.end(replica, end=1500) == 1500
        assert self.end(replica, end=900) == 900

    def test_end_is_of_the_own_lease(self, replica):
        self.own(replica, 500, 2500)
        assert self.end(replica, end=1500) == 2500
        assert self.end(replica) == 2500

    def test_record_of_a_server_to_come_ends_at_its_start(self, replica):
        """The server is shelved until its start."""
        assert self.end(replica, start=1200, end=1500) == 1200
        assert self.end(replica, start=1000, end=1500) == 1500
        self.own(replica, 1300, 1600)
        assert self.end(replica, start=1200, end=1500) == 1300
