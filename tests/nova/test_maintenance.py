# SPDX-License-Identifier: Apache-2.0
"""Who passes on a host that will be closed, or is closed, in a real Nova."""

import dataclasses

import pytest

from blazar_sched.domain.host import ClosedWindow
from blazar_sched.domain.host import MAINTENANCE
from blazar_sched.worker import reasons
from tests.nova.conftest import lasting

HOUR = 3600
SOON = 900


def closed(lab, start, end):
    """Return the fields of a host with a maintenance, in seconds from now."""
    return {'maintenances': (
        ClosedWindow(
            lab.now + start, lab.now + end, MAINTENANCE, 'm1', 'rack 7'
        ),
    )}


@pytest.fixture
def change(lab):
    """change('c1', **fields): change the record of a host."""

    def change(name, **fields):
        [host] = lab.ledger.hosts([lab.cloud.hosts[name]])
        new = dataclasses.replace(host, **fields)
        lab.ledger.commit(lambda tx: tx.put_host(new))
        lab.sync()

    return change


class TestAhead:
    @pytest.fixture(autouse=True)
    def registered(self, lab):
        lab.register('c1', **closed(lab, SOON, HOUR))

    def test_server_that_ends_before_the_maintenance_passes(self, lab):
        assert lab.passes('c1', hints=lasting(SOON - 60))

    def test_server_that_ends_in_the_maintenance_does_not_pass(self, lab):
        assert not lab.passes('c1', hints=lasting(SOON + 60))
        assert not lab.passes('c1', hints=lasting(2 * HOUR))

    def test_server_without_end_does_not_pass(self, lab):
        assert not lab.passes('c1')

    def test_preemptible_with_its_least_runtime_passes(self, lab, change):
        assert lab.passes('c1', lab.flavor(preemptible='true'))
        change('c1', **closed(lab, 60, HOUR))
        assert not lab.passes('c1', lab.flavor(preemptible='true'))

    def test_server_of_a_reservation_passes_before_the_maintenance(self, lab):
        mine = lab.reserve('c1', start=-60)
        assert lab.passes('c1', hints={'reservation': mine})

    def test_server_passes_after_the_maintenance_is_cancelled(
        self, lab, change
    ):
        change('c1', maintenances=())
        assert lab.passes('c1')


class TestClosed:
    @pytest.fixture(autouse=True)
    def registered(self, lab):
        lab.register('c1', **closed(lab, -60, HOUR))

    def test_no_server_passes_on_a_closed_host(self, lab):
        mine = lab.reserve('c1', start=-120, vcpus=2)
        for hints in ({}, lasting(60), {'reservation': mine}):
            assert not lab.passes('c1', hints=hints)
        assert not lab.passes('c1', lab.flavor(preemptible='true'))

    def test_magnetic_reservation_draws_no_server_to_a_closed_host(
        self, lab, change
    ):
        lab.reserve('c1', start=-120, magnetic=True)
        assert not lab.passes('c1')
        change('c1', maintenances=())
        assert lab.passes('c1')

    def test_other_hosts_are_open(self, lab):
        lab.register('c2')
        assert lab.passes('c2')

    def test_all_servers_pass_after_the_maintenance(self, lab, change):
        mine = lab.reserve('c1', start=-120, vcpus=2)
        change('c1', **closed(lab, -120, -60))
        for hints in (lasting(60), {'reservation': mine}):
            assert lab.passes('c1', hints=hints)


class TestHostThatComesOrGoes:
    def test_no_server_passes_before_the_host_comes(self, lab, change):
        lab.register('c1', available_from=lab.now + SOON)
        assert not lab.passes('c1', hints=lasting(60))
        change('c1', available_from=lab.now - 1)
        assert lab.passes('c1')

    def test_server_passes_if_it_ends_before_the_host_goes(self, lab):
        lab.register('c1', available_until=lab.now + SOON)
        assert lab.passes('c1', hints=lasting(SOON - 60))
        assert not lab.passes('c1', hints=lasting(SOON + 60))
        assert not lab.passes('c1')


def test_the_reason_in_words():
    by = ClosedWindow(0, 3600, MAINTENANCE, 'm1', 'rack 7')
    assert reasons.closed(by) == (
        "the host is closed for maintenance 'rack 7' from "
        '1970-01-01T00:00:00Z until 1970-01-01T01:00:00Z'
    )
