# SPDX-License-Identifier: Apache-2.0
"""Requests generated from the OpenAPI document, to the whole service."""

import hypothesis
from hypothesis import strategies as st
import pytest

from blazar_sched.service.api import deploy
from blazar_sched.service.api import microversion
from tests import tables

schemathesis = pytest.importorskip(
    'schemathesis', reason='schemathesis is not installed'
)
checks = pytest.importorskip('schemathesis.specs.openapi.checks')


def error_name_is_known(ctx, response, case):
    document = case.operation.schema.raw_schema
    error = document['components']['schemas']['Error']['properties']
    names = [each['name'] for each in error['error_name']['x-names']]
    assert response.status_code < 400 or response.json()['error_name'] in names


CHECKS = [
    error_name_is_known,
    schemathesis.checks.not_a_server_error, checks.status_code_conformance,
    checks.content_type_conformance, checks.response_schema_conformance,
]
TIMES = st.sampled_from(
    [f'20{n}-02-0{n % 9 + 1} {n % 24:02}:00' for n in range(27, 60)]
)
REQUIREMENTS = st.sampled_from(
    ['', '[]', '["==", "$gpu", "a100"]', '["not", ["in", "$gpu", "b", "c"]]']
)
FORMATS = {
    'lease-time': TIMES,
    'requirement': REQUIREMENTS,
    'sort': st.sampled_from(['name', 'end:desc,name:asc', 'created_at']),
    'fields': st.sampled_from(['id', 'name,status', 'reservations']),
}
# Without these settings hardly any text is a valid one.
for name, texts in FORMATS.items():
    schemathesis.openapi.format(name, texts | st.text())
# For each operation. The earlier versions have the same operations as the
# newest, with fewer fields.
EXAMPLES = dict.fromkeys(microversion.VERSIONS, 8) | {
    microversion.VERSIONS[-1]: 25,
}


@pytest.fixture
def there(service):
    """The ids of existing objects, for paths."""
    host = service.api.post(
        '/v1/os-hosts', json={'name': 'compute-1', 'gpu': 'a100'}
    ).json['host']
    lease = service.api.post('/v1/leases', json={
        'name': 'night-run',
        'start_date': '2030-01-01 00:00',
        'end_date': '2030-01-01 01:00',
        'reservations': [
            {'resource_type': 'physical:host', 'min': 1, 'max': 1},
        ],
    }).json['lease']
    return {
        'host_id': host['id'], 'lease_id': lease['id'], 'name': 'gpu',
        **{name: make(service) for name, make in tables.of('MADE').items()},
    }


@pytest.mark.more
@pytest.mark.row('F87')
@pytest.mark.parametrize('version', microversion.VERSIONS)
def test_any_request_is_answered_as_the_document_says(service, there, version):
    # Another test covers tokens.
    headers = {
        microversion.HEADER: f'reservation {version}',
        'X-Auth-Token': 'admin',
        # The client of WSGI applications does not decompress.
        'Accept-Encoding': 'identity',
    }
    document = schemathesis.openapi.from_wsgi(
        '/openapi.json', deploy.deploy(service.conf, service.bus),
        headers=headers,
    )
    settings = hypothesis.settings(
        max_examples=EXAMPLES[version], deadline=None, derandomize=True,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    operations = [result.ok() for result in document.get_all_operations()]
    # The existing objects are deleted last.
    for operation in sorted(operations, key=lambda o: o.method == 'delete'):

        @settings
        @hypothesis.given(_cases(operation, headers, there))
        def ask(case):
            case.call_and_validate(checks=CHECKS)

        ask()


def _cases(operation, headers, there):
    """Yield valid requests, some about existing objects, and arbitrary ones.
    """
    variables = {p.name for p in operation.path_parameters}
    named = {name: there[name] for name in variables & set(there)}
    return st.one_of(
        operation.as_strategy(mode, headers=headers, path_parameters=path)
        for mode in schemathesis.GenerationMode
        for path in (None, named)
    ).filter(
        # Other routes have these paths.
        lambda case: (case.path_parameters or {}).get('host_id')
        not in ('allocations', 'properties')
    )
