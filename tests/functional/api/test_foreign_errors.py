# SPDX-License-Identifier: Apache-2.0
"""Refusals of filters and drivers that other packages have."""


from oslo_messaging._drivers import common as rpc_common
from oslo_messaging._drivers import impl_fake
import pytest

from blazar_sched.domain import exception
from blazar_sched.service.bus import rpc
from tests import foreign

PARTS = """
    from blazar_sched.domain import exception
    from blazar_sched.domain.demand import Other
    from blazar_sched.service.enforcement import base
    from blazar_sched.service.resources import base as resources

    class NoBudget(exception.LimitExceeded):
        status = 402

        def __init__(self, project):
            super().__init__(f'{project} has no budget', 'reservations')

    class LicencesGone(exception.NotEnoughHostsAvailable):
        pass

    class ServerBusy(exception.TooManyRequests):
        pass

    class Filter(base.Filter):
        def check(self, change, project):
            if change.lease.name == 'dear':
                raise NoBudget(project.id)

    class Licences(resources.Resource):
        def validate(self, parameters, project_id):
            if parameters['seats'] > 9:
                raise LicencesGone('9 seats are left', field='seats')
            if parameters['seats'] == 7:
                raise ServerBusy('ask later', retry_after=77)
            return Other('acme:licence', parameters)
"""
ENTRY_POINTS = """
    [blazar_sched.resources]
    acme:licence = acme_parts:Licences
    [blazar_sched.enforcement]
    AcmeFilter = acme_parts:Filter
"""


@pytest.fixture
def options(tmp_path, monkeypatch):
    """An installed package with a filter and with a resource type."""
    foreign.install(tmp_path, monkeypatch, 'acme_parts', PARTS, ENTRY_POINTS)
    return (
        '[enforcement]\nenabled_filters = AcmeFilter,MaxLeaseDurationFilter\n'
        'approval_filters = AcmeFilter\n'
    )


@pytest.fixture(params=['bus', 'local'])
def ask(service, monkeypatch, request):
    """ask(version, name, reservation) -> the answer to a new lease.

    The bus serializes exceptions as the driver of RabbitMQ does, where the
    driver in memory does not.
    """
    reply = impl_fake.FakeIncomingMessage.reply

    def serialized(message, answer=None, failure=None):
        if failure:
            error = rpc_common.deserialize_remote_exception(
                rpc_common.serialize_remote_exception(failure),
                [exception.__name__],
            )
            failure = type(error), error, None
        reply(message, answer, failure)

    if request.param == 'bus':
        monkeypatch.setattr(impl_fake.FakeIncomingMessage, 'reply', serialized)
    else:
        local = rpc.Local(service.manager.endpoint)
        monkeypatch.setattr(service.bus, 'call', local.call)
    added = service.api.post('/v1/os-hosts', json={'name': 'compute-1'})
    assert added.status_code == 201

    def ask(version, name, **reservation):
        return service.api.post('/v1/leases', json={
            'name': name, 'start_date': 'now', 'end_date': '2099-01-01 00:00',
            'reservations': [reservation], 'events': [],
        }, version=version)

    return ask


HOST = {
    'resource_type': 'physical:host', 'min': 1, 'max': 1,
    'hypervisor_properties': '', 'resource_properties': '',
}
LICENCE = {'resource_type': 'acme:licence'}


@pytest.mark.parametrize('version', ['1.0', '1.1'])
def test_a_refusal_of_another_package_has_its_own_name(ask, version):
    # 1.0 answers a lack of room with 400.
    no_room = 400 if version == '1.0' else 409
    for name, reservation, status, error, message in (
        ('dear', HOST, 402, 'NoBudget',
         'reservations: admin has no budget; an administrator can approve a '
         'held offer of the lease'),
        ('plain', {**LICENCE, 'seats': 10}, no_room, 'LicencesGone',
         'seats: 9 seats are left'),
        ('plain', {**LICENCE, 'seats': 7}, 429, 'ServerBusy', 'ask later'),
    ):
        answer = ask(version, name, **reservation)
        assert (answer.status_code, answer.json) == (status, {
            'error_code': status, 'error_name': error,
            'error_message': message,
        })
    assert answer.headers['Retry-After'] == '77'
    assert ask(version, 'plain', **HOST).status_code == 201


def test_control_with_an_error_that_travels_as_it_is(ask, monkeypatch):
    """The control: over the bus, the API knows no such class."""
    monkeypatch.setattr(exception, 'portable', lambda error: error)
    answer = ask('1.1', 'plain', **LICENCE, seats=10)
    serialized = impl_fake.FakeIncomingMessage.reply.__name__ == 'serialized'
    assert answer.json['error_name'] == (
        'InternalError' if serialized else 'LicencesGone'
    )
