# SPDX-License-Identifier: Apache-2.0
"""Rows that cannot be imported are refused by id, and nothing is partial."""

import datetime

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.lease import Lease
from blazar_sched.parts.blazar.importing.plan import ImportedLease
from blazar_sched.service.ledger.ledger import Ledger
from tests.parts.blazar import database
from tests.standins.neutron import NETWORK
from tests.standins.rest import answer

HOUR = database.HOUR


def refused(importer, blazar):
    """Return the reason for each refused id."""
    plan = importer.plan(blazar.url)
    return {each.id: each.reason for each in plan.refused}


@pytest.mark.parametrize(
    'status', ['CREATING', 'STARTING', 'UPDATING', 'TERMINATING', 'DELETING']
)
def test_a_lease_under_way(blazar, importer, status):
    lease = blazar.lease(status)
    assert refused(importer, blazar)[lease].startswith(
        f'the lease is {status}'
    )


def test_an_event_under_way(blazar, importer):
    lease = blazar.lease('ERROR')
    ended = blazar.event(lease, 'end_lease', database.NOW, 'IN_PROGRESS')
    assert refused(importer, blazar) == {}, 'Blazar goes by the first one'
    blazar.set('events', ended, created_at=datetime.datetime(2020, 1, 1))
    assert 'wait until Blazar has changed' in refused(importer, blazar)[lease]


def test_a_lease_that_contradicts_itself(blazar, importer):
    number = blazar.host('compute-1')
    lease = blazar.lease('PENDING')
    blazar.hosts(lease, number, status='active')
    assert 'its reservations or events' in refused(importer, blazar)[lease]


def test_a_type_that_blazar_itself_does_not_have(blazar, importer):
    lease = blazar.lease()
    reservation = blazar.hosts(lease)
    blazar.set('reservations', reservation, resource_type='network')
    assert "'network'" in refused(importer, blazar)[lease]


def test_a_reservation_of_the_dummy_plugin(blazar, importer):
    lease = blazar.lease()
    reservation = blazar.hosts(lease)
    blazar.set('reservations', reservation, resource_type='virtual:instance')
    assert 'has no parameters' in refused(importer, blazar)[lease]


def test_parameters_that_cannot_be_read(blazar, importer):
    one, other = blazar.lease(), blazar.lease()
    blazar.hosts(one, count_range='some')
    blazar.hosts(other, resource_properties='["whoever", "$gpu", "yes"]')
    told = refused(importer, blazar)
    assert 'cannot be read' in told[one]
    assert told[other]


def test_a_host_that_nova_does_not_know_goes_with_its_leases(blazar, importer):
    gone = blazar.host('compute-9', '9')
    lease, free = blazar.lease(), blazar.lease()
    blazar.hosts(lease, gone)
    blazar.hosts(free, blazar.host('compute-1'))
    assert refused(importer, blazar) == {
        gone: 'Nova has no hypervisor named compute-9',
        lease: 'host 9 is skipped',
    }


def test_a_host_that_is_there_twice(blazar, importer):
    """Nova has given the hypervisor another id meanwhile."""
    blazar.host('compute-1')
    again = blazar.host('compute-1', '2')
    assert refused(importer, blazar) == {again: 'Blazar has the host twice'}


def test_reservation_that_its_host_cannot_hold_is_refused(blazar, importer):
    number = blazar.host('compute-1')
    pinned, plain = blazar.lease(), blazar.lease()
    specs = {'hw:cpu_policy': 'dedicated'}
    blazar.flavor(pinned, *[number] * 4, extra_specs=specs)
    blazar.flavor(plain, *[number] * 4)
    told = refused(importer, blazar)
    assert told.keys() == {pinned}
    assert 'compute-1 has no room' in told[pinned]


@pytest.mark.parametrize('name', ['hold', 'vcpus', 'trait:HW_X'])
def test_a_capability_that_is_called_as_the_hosts_own(blazar, importer, name):
    number = blazar.host('compute-1', **{name: 'yes'})
    assert name in refused(importer, blazar)[number]


def test_two_leases_of_one_host_at_once(blazar, importer):
    number = blazar.host('compute-1')
    first, second, after = (
        blazar.lease(), blazar.lease(start=2 * HOUR),
        blazar.lease(start=5 * HOUR, end=6 * HOUR),
    )  # fmt: skip
    for lease in (first, second, after):
        blazar.hosts(lease, number)
    told = refused(importer, blazar)
    assert told.keys() == {second}
    assert 'compute-1 has no room' in told[second]


def test_active_lease_is_imported_before_a_lease_booked_earlier(
    blazar, importer
):
    number = blazar.host('compute-1')
    to_come, open_ = blazar.lease(), blazar.lease('ACTIVE', -HOUR)
    blazar.instances(to_come, *[number] * 4)
    blazar.instances(open_, number, status='active')
    assert refused(importer, blazar).keys() == {to_come}


def test_a_lease_that_is_refused_takes_no_room(blazar, importer):
    one, two = blazar.host('compute-1'), blazar.host('compute-2', '2')
    first, both, last = blazar.lease(), blazar.lease(), blazar.lease()
    blazar.hosts(first, one)
    blazar.hosts(both, two, one)
    blazar.hosts(last, two)
    assert refused(importer, blazar).keys() == {both}


def test_a_floating_ip_that_two_have_at_once(blazar, importer):
    address = blazar.floating_ip(NETWORK, '203.0.113.5')
    leases = [blazar.lease(), blazar.lease()]
    for lease in leases:
        blazar.floating_ips(lease, NETWORK, address)
    assert refused(importer, blazar).keys() == {leases[1]}


def test_an_address_that_is_none(blazar, importer):
    address = blazar.floating_ip(NETWORK, 'here')
    lease = blazar.lease()
    blazar.floating_ips(lease, NETWORK, address)
    assert refused(importer, blazar).keys() == {address, lease}


def test_the_rest_can_be_imported(blazar, importer, site):
    good = blazar.lease()
    blazar.hosts(good, blazar.host('compute-1'))
    bad = blazar.lease('CREATING')
    plan = importer.plan(blazar.url)
    assert [each.id for each in plan.refused] == [bad]
    importer.write(plan)
    ledger = site.manager().ledger
    assert [lease.id for lease in ledger.leases()] == [good]
    assert ledger.check() == []


def test_a_ledger_that_is_not_empty(blazar, importer):
    blazar.host('compute-1')
    plan = importer.plan(blazar.url)
    importer.write(plan)
    with pytest.raises(exception.Conflict, match='has, or had'):
        importer.plan(blazar.url)
    with pytest.raises(exception.Conflict, match='has, or had'):
        importer.write(plan)


def test_a_plan_that_would_break_the_ledger_leaves_it_empty(
    blazar, importer, site
):
    number = blazar.host('compute-1')
    lease = blazar.lease()
    blazar.hosts(lease, number)
    plan = importer.plan(blazar.url)
    # This can only happen by a defect of the plan.
    eventless = Lease(
        id='other', name='', project_id='', user_id='', start=1, end=2,
        status=states.LEASE_PENDING,
    )  # fmt: skip
    plan.leases.append(ImportedLease(eventless, (), {}))
    with pytest.raises(exception.Conflict, match='would be inconsistent'):
        importer.write(plan)
    ledger = site.manager().ledger
    assert ledger.hosts() == ledger.leases() == []
    assert ledger.snapshot()['revision'] == 0


def test_a_ledger_that_is_not_upgraded(blazar, importer, monkeypatch):
    def refuse(self):
        raise exception.NotUpgraded('run db upgrade')

    monkeypatch.setattr(Ledger, 'require_current', refuse)
    with pytest.raises(exception.NotUpgraded):
        importer.plan(blazar.url)


def test_nova_that_does_not_answer(blazar, importer, site):
    blazar.host('compute-1')
    site.cloud.meddle = lambda method, path: _Trouble()
    with pytest.raises(exception.Unavailable):
        importer.plan(blazar.url)


class _Trouble:
    effect = False

    def answer(self):
        return answer(503)


def test_another_database(importer, tmp_path):
    with pytest.raises(exception.Unavailable):
        importer.plan(f'sqlite:///{tmp_path}/nothing.sqlite')
    assert not (tmp_path / 'nothing.sqlite').exists()
    with pytest.raises(exception.InvalidInput, match='only the database of'):
        importer.plan(f'sqlite:///{tmp_path}/ledger.sqlite')
    with pytest.raises(exception.InvalidInput):
        importer.plan('nonsense')
