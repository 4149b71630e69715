# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document describes the API correctly."""

import re

import jsonschema
import microversion_parse
import openapi_spec_validator
from openapi_spec_validator.validation import exceptions
import pytest

from blazar_sched.service.api import microversion
from blazar_sched.service.api import routes
from tests import tables

REQUESTS = [r for r in routes.ROUTES if r.path != routes.DOCUMENT]


def ask(api, method, path, version, **kwargs):
    headers = {'OpenStack-API-Version': f'reservation {version}'}
    return api.request(method, path, headers=headers, **kwargs)


@pytest.fixture(params=microversion.VERSIONS)
def version(request):
    return request.param


@pytest.fixture
def document(api, version):
    answer = ask(api, 'GET', '/openapi.json', version)
    assert answer.status_code == 200
    assert answer.json['info']['version'] == version
    return answer.json


def is_in(version, route):
    """Tell whether a version of the API has a route."""
    return microversion_parse.parse_version_string(version) >= route.since


def check(document, schema, instance):
    """Validate `instance` with a schema of the document."""
    whole = {**schema, 'components': document['components']}
    jsonschema.Draft202012Validator(whole).validate(instance)


def test_document_is_valid_openapi(document):
    openapi_spec_validator.validate(document)
    document['paths']['/made-up'] = {'get': {'parameters': [{'in': 'path'}]}}
    with pytest.raises(exceptions.OpenAPIValidationError):
        openapi_spec_validator.validate(document)


def test_every_noun_has_an_example(document):
    for noun in document['components']['schemas'].values():
        [example] = noun['examples']
        check(document, noun, example)


@pytest.mark.row('C42')
def test_every_route_is_described(document, version):
    there = {
        (method.upper(), path)
        for path, methods in document['paths'].items()
        for method in methods
    }
    assert there == {
        (r.method, r.path) for r in routes.ROUTES if is_in(version, r)
    }
    for path, methods in document['paths'].items():
        for described in methods.values():
            assert described['summary']
            assert len(described['tags']) == path.startswith('/v1/')
            named = {p['name'] for p in described['parameters'] if 'in' in p}
            assert named >= set(re.findall(r'{(\w+)}', path))


@pytest.mark.row('F129')
def test_each_operation_has_its_own_id(document):
    """The generators of clients name the methods of a client by the ids."""
    ids = [
        described['operationId']
        for path, methods in document['paths'].items() if path != '/versions'
        for described in methods.values()
    ]
    assert len(ids) == len(set(ids))
    assert {'create_lease', 'list_leases', 'delete_host'} <= {*ids}
    assert 'handle' not in ids


@pytest.mark.parametrize('route', REQUESTS, ids=lambda r: r.method + r.path)
def test_requests_and_answers_are_as_described(
    api, manager, answers, requests, document, version, route
):
    manager.answers = answers
    path, body = requests[route]
    answer = ask(api, route.method, path, version, json=body)
    if not is_in(version, route):
        assert answer.status_code == 404
        return
    assert answer.status_code == route.status
    described = document['paths'][route.path][route.method.lower()]
    shown = described['responses'][str(route.status)]
    if 'content' in shown:
        schema = shown['content']['application/json']['schema']
        check(document, schema, answer.json)
    else:
        assert answer.content == b''
    if 'requestBody' in described:
        content = described['requestBody']['content']
        check(document, content['application/json']['schema'], body)


def test_refusals_are_as_described(api, document, version):
    answer = ask(api, 'POST', '/v1/leases', version, json={})
    described = document['paths']['/v1/leases']['post']['responses']['400']
    name = described['$ref'].rpartition('/')[2]
    content = document['components']['responses'][name]['content']
    check(document, content['application/json']['schema'], answer.json)


def test_each_version_has_its_own(api):
    properties = {
        version: ask(api, 'GET', '/openapi.json', version).json['components'][
            'schemas'
        ]['Lease']['properties']
        for version in microversion.VERSIONS
    }
    old = properties['1.0']['reservations']['items']['oneOf'][0]
    new = properties['1.1']['reservations']['items']['oneOf'][0]
    assert set(new['properties']) - set(old['properties']) == {
        'projects', 'on_end', 'magnetic', 'labels',
        'hosts', 'before_end_failed', 'on_start', 'on_start_failed',
        'product', 'hosts_waited_for',
    }


PARAMETERS = {
    'virtual:instance': {
        'vcpus': 1, 'memory_mb': 512, 'disk_gb': 0, 'amount': 2,
        'affinity': False, 'resource_properties': '',
    },
    'flavor:instance': {
        'flavor_id': 'm1.small', 'amount': 1, 'affinity': None,
        'name': 'small', 'resources': {'VCPU': 1}, 'vcpus': 1,
        'memory_mb': 512, 'disk_gb': 0, 'ephemeral_gb': 0, 'swap_mb': 0,
        'is_public': True, 'extra_specs': {}, 'resource_properties': '',
        'asked_properties': '',
    },
    **tables.of('RESERVED'),
    'instance:lifetime': {
        'instance_id': 'b1f5d6c4-0000-4000-8000-000000000006',
        'resources': {'VCPU': 1}, 'amount': 1, 'affinity': None,
        'resource_properties': '', 'on_end': 'snapshot',
    },
    'acme:licence': {'seats': 3},
}


@pytest.mark.parametrize('resource_type', PARAMETERS)
def test_a_reservation_of_any_type_is_as_described(
    api, manager, answers, document, version, resource_type
):
    [reservation] = answers['get_lease']['reservations']
    reservation['resource_type'] = resource_type
    reservation['parameters'] = PARAMETERS[resource_type]
    manager.answers = answers
    answer = ask(api, 'GET', '/v1/leases/l1', version)
    assert answer.status_code == 200, answer.text
    check(document, document['components']['schemas']['Lease'],
          answer.json['lease'])
    [shown] = answer.json['lease']['reservations']
    # The projects of a host are hidden from the owner of a reservation.
    assert 'hosts' not in shown
