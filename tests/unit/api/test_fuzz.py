# SPDX-License-Identifier: Apache-2.0
"""Arbitrary requests cause no server error, and errors have one shape."""

import json
import re

from falcon import testing
import hypothesis
from hypothesis import strategies as st
import pytest

from blazar_sched.service.api import deploy
from blazar_sched.service.api import routes
from tests import tables

ENVELOPE = {'error_code', 'error_message', 'error_name'}
SETTINGS = hypothesis.settings(
    max_examples=300, deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)

KEYS = st.sampled_from(
    [
        'name', 'id', 'start_date', 'end_date', 'before_end_date', 'events',
        'reservations', 'resource_type', 'min', 'max', 'vcpus', 'memory_mb',
        'disk_gb', 'amount', 'affinity', 'hypervisor_properties',
        'resource_properties', 'before_end', 'private', 'hold', 'unbounded',
        'projects', 'on_end', 'magnetic', 'labels', 'network_id',
        'required_floatingips', 'floating_network_id', 'floating_ip_address',
    ]
) | st.text(max_size=70)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.sampled_from(
        [
            'now', '', 'None', 'True', '2030-01-01 10:00', '9' * 30,
            'physical:host', 'virtual:instance', 'default', '\0', '\ud800',
            '["==", "$vcpus", "4"]', '["and"]', '[' * 3000, 'NaN', '１',
        ]
    )
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=12,
)
RESERVATIONS = st.lists(
    st.fixed_dictionaries(
        {'resource_type': st.sampled_from(
            [
                'physical:host', 'virtual:instance', 'flavor:instance',
                'virtual:floatingip', 'instance:lifetime',
            ]
        )},
        optional=dict.fromkeys(
            (
                'id', 'min', 'max', 'vcpus', 'memory_mb', 'disk_gb',
                'amount', 'affinity', 'hypervisor_properties',
                'resource_properties', 'before_end', 'flavor_id',
                'network_id', 'required_floatingips', 'projects', 'on_end',
                'magnetic', 'labels', 'remove',
            ),
            LEAVES,
        ),
    ),
    max_size=3,
)
# A body similar to a lease, which passes the first checks.
LEASES = st.fixed_dictionaries(
    {'name': st.text(min_size=1, max_size=80)},
    optional={
        'reservations': RESERVATIONS | st.lists(VALUES, max_size=3),
        'start_date': LEAVES,
        'end_date': LEAVES,
        'before_end_date': LEAVES,
    },
)
BODIES = (
    st.binary(max_size=300)
    | VALUES.map(lambda v: json.dumps(v).encode())
    | LEASES.map(lambda v: json.dumps(v).encode())
)
# The form in which a server passes it: bytes, one character each.
LATIN = st.text(
    st.characters(max_codepoint=255, exclude_categories=()), max_size=60
)
PATHS = st.sampled_from([route.path for route in routes.ROUTES]).flatmap(
    lambda path: LATIN.map(lambda v: re.sub('{[a-z_]+}', lambda _: v, path))
) | LATIN.map('/'.__add__)
HEADERS = st.dictionaries(
    st.sampled_from(
        [
            'ACCEPT', 'OPENSTACK_API_VERSION', 'X_AUTH_TOKEN',
            'X_OPENSTACK_REQUEST_ID', 'X_ROLES', 'HOST',
        ]
    ).map('HTTP_'.__add__)
    | st.sampled_from(['CONTENT_TYPE', 'CONTENT_LENGTH', 'QUERY_STRING']),
    LATIN
    | st.sampled_from(
        ['application/json', '*/*', 'reservation 1.0', 'reservation 1.1']
    ),
)
VERSIONS = st.sampled_from(['reservation 1.0', 'reservation 1.1'])
METHODS = st.sampled_from(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'BREW'])


@pytest.fixture
def application(conf, manager, answers):
    manager.answers = answers
    return deploy.deploy(conf, manager)


def send(application, method, path, body, headers=None):
    """Call the API as a WSGI server would; return the status and the body."""
    environ = testing.create_environ(method=method, body=body)
    environ['PATH_INFO'] = path
    environ['CONTENT_TYPE'] = 'application/json'
    environ.update(headers or {})
    said = []
    answer = b''.join(
        application(environ, lambda status, headers, exc=None: said.append(
            (int(status[:3]), dict(headers))
        ))
    )
    [(status, _)] = said
    assert status < 500, answer
    if status >= 400:
        refusal = json.loads(answer)
        assert set(refusal) == ENVELOPE
        assert refusal['error_code'] == status
        assert len(answer) < 4000
    return status, answer


@pytest.mark.row('F87')
@SETTINGS
@hypothesis.given(METHODS, PATHS, BODIES, HEADERS)
def test_any_request(application, method, path, body, headers):
    send(application, method, path, body, headers)


@pytest.mark.row('F87')
@SETTINGS
@hypothesis.given(
    VERSIONS,
    st.sampled_from(
        [
            ('POST', '/v1/leases'),
            ('PUT', '/v1/leases/l1'),
            ('POST', '/v1/os-hosts'),
            ('PUT', '/v1/os-hosts/7'),
            ('PATCH', '/v1/os-hosts/properties/gpu'),
        ]
        + [route for route, (_, body) in tables.of('ROUTES').items() if body]
    ),
    BODIES,
)
def test_any_body(application, version, target, body):
    headers = {'HTTP_OPENSTACK_API_VERSION': version}
    send(application, *target, body, headers)


@SETTINGS
@hypothesis.given(VERSIONS, LEASES)
def test_what_reaches_the_manager_is_what_it_was_promised(
    application, manager, version, body
):
    manager.calls.clear()
    status, _ = send(
        application, 'POST', '/v1/leases', json.dumps(body).encode(),
        {'HTTP_OPENSTACK_API_VERSION': version},
    )
    for _, sent in manager.calls:
        values = sent['values']
        assert set(values) == {
            'name', 'project_id', 'user_id', 'start', 'end', 'before_end',
            'reservations',
        }
        assert values['start'] == 'now' or type(values['start']) is int
        assert type(values['end']) is int
        for reservation in values['reservations']:
            for name in {'min', 'max', 'vcpus', 'amount'} & set(reservation):
                assert type(reservation[name]) is int
                assert 1 <= reservation[name] < 2**31
            assert reservation.get('affinity') in (None, True, False)
