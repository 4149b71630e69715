# SPDX-License-Identifier: Apache-2.0
"""A driver of another package is found by its entry point, and used."""


import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.demand import Other
from tests import foreign

DRIVER = """
    from blazar_sched.domain import exception
    from blazar_sched.domain.demand import Other
    from blazar_sched.service.resources import base

    done = []

    class LicenceResource(base.Resource):
        def validate(self, parameters, project_id):
            if parameters.keys() != {'seats'}:
                raise exception.InvalidInput('no seats', field='seats')
            return Other('acme:licence', parameters)

        def start(self, part, now):
            done.append(('start', part.reservation.id, part.allocations))
            return base.Opened(made={'key': 'K-1'})

        def end(self, part):
            done.append(('end', part.reservation.id, part.reservation.made))
            return True
"""
ENTRY_POINT = """
    [blazar_sched.resources]
    acme:licence = acme_licence:LicenceResource
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package with another resource type."""
    foreign.install(tmp_path, monkeypatch, 'acme_licence', DRIVER, ENTRY_POINT)


@pytest.mark.row('C8', 'C9')
def test_a_type_of_another_package_lives_from_start_to_end(
    package, world, whole
):
    import acme_licence
    lease = world.create({'resource_type': 'acme:licence', 'seats': 3})
    (mine,) = lease.reservations
    assert world.lease(lease).reservations[0].demand == Other(
        'acme:licence', {'seats': 3}
    )
    world.run(100)
    assert world.lease(lease).status == 'ACTIVE'
    assert world.lease(lease).reservations[0].made == {'key': 'K-1'}
    world.run(100)
    assert world.lease(lease).status == 'TERMINATED'
    assert acme_licence.done == [
        ('start', mine.id, []), ('end', mine.id, {'key': 'K-1'})
    ]


def test_reservation_that_its_driver_refuses_is_refused(package, world):
    with pytest.raises(exception.InvalidInput) as refused:
        world.create({'resource_type': 'acme:licence', 'chairs': 3})
    assert refused.value.field == 'seats'
    assert world.ledger.leases() == []
