# SPDX-License-Identifier: Apache-2.0
"""Every error has the same shape, and reveals nothing internal."""

import json
import logging
import re
import sys

from oslo_messaging._drivers import common as rpc_common
import pytest

from blazar_sched.domain import exception
from blazar_sched.service.api import errors
from tests import loopback
from tests import tables

ENVELOPE = {'error_code', 'error_message', 'error_name'}

# The text that clients read: a change here breaks clients.
PUBLISHED = {
    **{
        each.__name__: status for each, status in tables.of('REFUSALS').items()
    },
    'InvalidInput': 400,
    'LimitExceeded': 400,
    'MaxLeaseDuration': 400,
    'MaxStartHorizon': 400,
    'MinStartLead': 400,
    'MaxEndHorizon': 400,
    'MaxResources': 400,
    'Unauthorized': 401,
    'NotAuthorized': 403,
    'NotFound': 404,
    'LeaseNotFound': 404,
    'HostNotFound': 404,
    'PropertyNotFound': 404,
    'Conflict': 409,
    'NoRoom': 409,
    'NotEnoughHostsAvailable': 409,
    'Uncountable': 409,
    'DatabaseAccessDenied': 503,
    'InvalidStatus': 409,
    'CantUpdateParameter': 409,
    'HostExists': 409,
    'HostHavingServers': 409,
    'CantDeleteHost': 409,
    'CantAddExtraCapability': 409,
    'IdempotencyKeyReused': 409,
    'TooManyRequests': 429,
    'Unavailable': 503,
    'NotUpgraded': 503,
}
# 1.0 answers these with 400, which Blazar's clients take for final.
NO_ROOM = {'NoRoom', 'NotEnoughHostsAvailable', *tables.names('NO_ROOM')}
PUBLISHED_BY_API = {
    400: 'InvalidInput', 401: 'Unauthorized', 403: 'NotAuthorized',
    404: 'NotFound', 405: 'MethodNotAllowed', 406: 'NotAcceptable',
    413: 'RequestTooLarge', 415: 'UnsupportedMediaType',
    431: 'HeadersTooLarge', 500: 'InternalError', 503: 'Unavailable',
}


def refusals():
    return {
        name: value
        for name, value in vars(exception).items()
        if isinstance(value, type)
        and issubclass(value, exception.BlazarSchedError)
        and value is not exception.BlazarSchedError
    } | {each.__name__: each for each in tables.of('REFUSALS')}


def over_rpc(error):
    """Return the exception of the RPC client if the manager raised `error`."""
    try:
        raise exception.portable(error)
    except exception.BlazarSchedError:
        sent = rpc_common.serialize_remote_exception(sys.exc_info())
    return rpc_common.deserialize_remote_exception(sent, [exception.__name__])


def test_names_and_codes_are_as_published():
    assert {n: c.status for n, c in refusals().items()} == PUBLISHED
    assert errors.NAMES == PUBLISHED_BY_API


@pytest.mark.parametrize('version', ['1.0', '1.1'])
@pytest.mark.parametrize('travel', [lambda e: e, over_rpc])
@pytest.mark.parametrize('name', PUBLISHED)
def test_the_managers_refusals(api, manager, name, travel, version):
    error = refusals()[name]('there is no room', field='reservations')
    manager.answers['list_leases'] = travel(error)
    answer = api.get('/v1/leases', version=version)
    is_final = version == '1.0' and name in NO_ROOM
    status = 400 if is_final else PUBLISHED[name]
    assert answer.status_code == status
    assert answer.json == {
        'error_code': status, 'error_name': name,
        'error_message': 'reservations: there is no room',
    }
    # A client that can wait is told when to send the request again.
    assert ('Retry-After' in answer.headers) == (status in (429, 503))


@pytest.mark.parametrize('travel', [lambda e: e, over_rpc])
def test_callers_do_not_read_a_detail(api, manager, travel):
    error = exception.Unavailable('Nova is away', detail='at 10.20.30.40')
    assert str(error) == 'Nova is away: at 10.20.30.40'
    manager.answers['list_leases'] = travel(error)
    answer = api.get('/v1/leases')
    assert answer.json['error_message'] == 'Nova is away'
    assert '10.20.30.40' not in answer.text


def test_a_message_that_names_its_field_is_left_alone(api, manager):
    manager.answers['list_leases'] = over_rpc(
        exception.InvalidInput('end_date must be later', field='end_date')
    )
    answer = api.get('/v1/leases')
    assert answer.json['error_message'] == 'end_date must be later'


@pytest.mark.parametrize('status, request_', [
    (400, {'method': 'POST', 'path': '/v1/leases', 'body': '{'}),
    (400, {'method': 'POST', 'path': '/v1/leases'}),
    (400, {'path': '/v1/leases/\0'}),
    (400, {'path': '/v1/os-hosts/allocations',
           'query_string': 'lease_id=%00'}),
    (400, {'path': '/v1/os-hosts/properties',
           'query_string': 'all=perhaps'}),
    (400, {'path': '/v1/leases',
           'headers': {'OpenStack-API-Version': 'reservation one'}}),
    (401, {'path': '/v1/leases', 'headers': {'X-Auth-Token': ':'}}),
    (403, {'path': '/v1/os-hosts', 'headers': {'X-Auth-Token': 'bob'}}),
    (404, {'path': '/v1/no-such-thing'}),
    (404, {'path': '/v2/leases'}),
    (404, {'path': '/v1/plugins'}),
    (405, {'method': 'PUT', 'path': '/v1/leases', 'json': {}}),
    (405, {'method': 'POST', 'path': '/', 'json': {}}),
    (406, {'path': '/v1/leases', 'headers': {'Accept': 'text/html'}}),
    (406, {'path': '/v1/leases', 'headers': {'Accept': 'garbage'}}),
    (406, {'path': '/v1/leases',
           'headers': {'OpenStack-API-Version': 'reservation 1.9'}}),
    (413, {'method': 'POST', 'path': '/v1/leases',
           'body': '"' + 'x' * 114688 + '"'}),
    (415, {'method': 'POST', 'path': '/v1/leases', 'body': 'a=1',
           'headers': {
               'Content-Type': 'application/x-www-form-urlencoded'}}),
    (415, {'method': 'POST', 'path': '/v1/leases', 'body': '{}',
           'headers': {'Content-Type': 'text/plain'}}),
])
def test_the_apis_own_refusals(api, manager, status, request_):
    answer = api.request(**request_)
    assert answer.status_code == status, answer.text
    assert answer.headers['content-type'] == 'application/json'
    assert set(answer.json) == ENVELOPE
    assert answer.json['error_code'] == status
    assert answer.json['error_name'] == PUBLISHED_BY_API[status]
    assert answer.json['error_message']
    assert manager.calls == []


def test_an_unexpected_error_is_plain_outside_and_whole_in_the_log(
    api, manager, caplog
):
    manager.answers['list_leases'] = RuntimeError('the secret is 42')
    with caplog.at_level(logging.ERROR):
        answer = api.get('/v1/leases')
    assert answer.status_code == 500
    assert set(answer.json) == ENVELOPE
    assert answer.json['error_name'] == 'InternalError'
    assert 'secret' not in answer.text
    request_id = answer.headers['x-openstack-request-id']
    [line] = [r for r in caplog.records if request_id in r.getMessage()]
    assert 'the secret is 42' in str(line.exc_info[1])


def test_a_refusal_is_in_the_log_with_its_reason(api, manager, caplog):
    caplog.set_level(logging.INFO)
    manager.answers['list_leases'] = exception.Unavailable('no manager')
    api.get('/v1/leases')
    api.get('/v1/leases', params={'limit': '-1'})
    told = [r.getMessage() for r in caplog.records if 'asked' in r.msg]
    assert [re.sub('.* s: ', '', line) for line in told] == [
        'Unavailable: no manager',
        'InvalidInput: limit must be an integer from 1 to 2147483647',
    ]


def test_a_manager_that_answers_nonsense_is_our_fault(api, manager):
    manager.answers['list_leases'] = [{'id': 'l1'}]
    answer = api.get('/v1/leases')
    assert answer.status_code == 500
    assert set(answer.json) == ENVELOPE


@pytest.mark.row('F87')
@pytest.mark.parametrize('body', [
    '[' * 57000, '{"a":' * 20000, '{"name": ' + '[' * 900 + ']' * 900 + '}',
    'NaN', '{"name": NaN}', '{"name": Infinity}', '{"name": -Infinity}',
    '{"name": 1e999}', '{"name": -1e999}', '{"name": "a", "name": "b"}',
    '{"name": ' + '9' * 5000 + '}', '{"name": "a\\u0000b"}',
    '{"name": "\\ud800"}', '{"name\\u0000": "a"}', b'{"name": "\xff"}',
    '{"name": "a"}'.encode('utf-16'), b'\xef\xbb\xbf{"name": "a"}',
    '{"name": "a"} x', "{'name': 'a'}", '{"name": "a\nb"}', '"', ' ', 'null',
    'true', '0', '""', '[]',
], ids=lambda body: repr(body[:20]))
@pytest.mark.parametrize('method, path', [
    ('POST', '/v1/leases'),
    ('PUT', '/v1/leases/l1'),
    ('POST', '/v1/os-hosts'),
    ('PUT', '/v1/os-hosts/7'),
    ('PUT', '/v1/os-hosts/7/allocation'),
    ('PATCH', '/v1/os-hosts/properties/gpu'),
])
def test_body_that_is_no_strict_json_is_refused(
    api, manager, method, path, body
):
    answer = api.request(
        method, path, body=body, headers={'Content-Type': 'application/json'}
    )
    assert answer.status_code == 400, answer.text
    assert set(answer.json) == ENVELOPE
    assert manager.calls == []


def test_the_size_limit_is_configured(conf, manager):
    from blazar_sched.service.api import deploy
    conf.set_override('max_request_body_size', 1024, 'api')
    api = loopback.client(deploy.deploy(conf, manager))
    body = json.dumps({'name': 'x' * 2000})
    assert api.post('/v1/leases', body=body).status_code == 413
    body = json.dumps({'name': 'x' * 900})
    assert api.post('/v1/leases', body=body).status_code == 400


def test_an_error_never_echoes_a_large_value(api):
    body = {'name': ['x' * 100000]}
    answer = api.post('/v1/leases', json=body)
    assert answer.status_code == 400
    assert len(answer.text) < 1000


def test_request_ids(api, manager):
    manager.answers['list_leases'] = []
    given = 'req-12345678-1234-1234-1234-123456789abc'
    form = re.compile(r'req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
    for sent, kept in [
        (given, given), (None, None), ('req-forged\nline', None),
        (given + 'x', None), ('', None),
    ]:
        headers = {} if sent is None else {'X-OpenStack-Request-ID': sent}
        answer = api.get('/v1/leases', headers=headers)
        local = answer.headers['x-openstack-request-id']
        assert form.fullmatch(local)
        assert local != given
        assert manager.contexts[-1]['request_id'] == local
        assert manager.contexts[-1]['global_request_id'] == kept


@pytest.mark.parametrize('header, version', [
    (None, '1.0'),
    ('reservation 1.0', '1.0'),
    ('reservation 1.1', '1.1'),
    ('reservation latest', '1.2'),
    ('compute 2.96', '1.0'),
    ('compute 2.96, reservation 1.1', '1.1'),
])
def test_versions_by_header(api, manager, header, version):
    manager.answers['list_leases'] = []
    headers = {} if header is None else {'OpenStack-API-Version': header}
    answer = api.get('/v1/leases', headers=headers)
    assert answer.status_code == 200
    said = answer.headers['openstack-api-version']
    assert said == f'reservation {version}'
    assert answer.headers['vary'] == 'OpenStack-API-Version'


@pytest.mark.parametrize('header, status', [
    ('reservation 0.9', 406),
    ('reservation 1.3', 406),
    ('reservation 1.9', 406),
    ('reservation 1.11', 406),
    ('reservation 2.0', 406),
    ('reservation 2', 400),
    ('1.1', 400),
    ('compute 2.96, 1.5', 400),
    ('reservation', 400),
    ('reservation 1.0.0', 400),
    ('reservation x.y', 400),
    ('reservation ' + '9' * 5000 + '.0', 400),
])
def test_unknown_versions_are_refused(api, manager, header, status):
    headers = {'OpenStack-API-Version': header}
    answer = api.get('/v1/leases', headers=headers)
    assert answer.status_code == status
    assert answer.headers['vary'] == 'OpenStack-API-Version'
    # No version was used.
    assert 'openstack-api-version' not in answer.headers
    assert manager.calls == []
