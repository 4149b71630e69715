# SPDX-License-Identifier: Apache-2.0
"""The resources have the fields that the OpenAPI document has."""

import importlib.util
import pathlib

from openstack import fields
import pytest

from blazar_sched.service.api import microversion
from blazar_sched.service.api import openapi
from blazar_sched.service.api import routes
from blazar_sched_client._proxy import Proxy
from blazar_sched_client.resources import Extension
from blazar_sched_client.resources import Offer
from blazar_sched_client.resources import Offers
from blazar_sched_client.resources import PublicProperties
from tests import tables

GENERATOR = pathlib.Path(__file__).parents[2] / 'client/generate.py'
DOCUMENT = openapi.document(routes.ROUTES, microversion.KNOWN[-1])
RESOURCES = [
    *Proxy._resource_registry.values(), Extension, Offers, PublicProperties
]
# A host has capabilities of any name.
MORE = {'Host': {'name', 'properties'}}


def asked(resource):
    """Return the fields that requests about a resource may have.

    A change of offers is of an offer, and a search is not.
    """
    changes = {'put', 'patch'} if resource is not Offers else set()
    creates = {'post'} if resource is not Offer else set()
    return {
        name
        for path, operations in DOCUMENT['paths'].items()
        for method, each in operations.items()
        if path.removeprefix('/v1').replace('{host_id}', '%(host_id)s')
        .split('/{')[0] == resource.base_path
        and method in changes | creates and 'requestBody' in each
        for name in each['requestBody']['content']['application/json'][
            'schema'
        ]['properties']
    }


@pytest.mark.parametrize('resource', RESOURCES, ids=lambda r: r.__name__)
def test_a_resource_has_every_field(resource):
    name = resource.__name__
    shown = set(DOCUMENT['components']['schemas'][name]['properties'])
    if name == 'Offer':
        offers = DOCUMENT['components']['schemas']['Offers']['properties']
        shown |= set(offers['offers']['items']['properties'])
    wanted = shown | asked(resource)
    known = {
        part.name for _, part in resource._attributes_iterator((fields.Body,))
    }
    # Each resource of the SDK has an id and a name.
    assert known - {'id', 'name'} == (
        (wanted | MORE.get(name, set())) - {'id', 'name'}
    )


def test_every_object_of_the_document_has_a_resource():
    assert {
        name for name in DOCUMENT['components']['schemas']
        if not name.startswith('Listed')
    } - {resource.__name__ for resource in RESOURCES} == {'Error', 'Version'}


@pytest.mark.parametrize('name', ['Allocation', 'Lease', 'Property'])
def test_a_list_can_be_asked_for_what_the_api_has(name):
    [resource] = [each for each in RESOURCES if each.__name__ == name]
    path = {'Allocation': '/os-hosts/allocations'}.get(
        name, resource.base_path
    )
    [operation] = [
        operations['get'] for each, operations in DOCUMENT['paths'].items()
        if each == f'/v1{path}'
    ]
    assert set(resource._query_mapping._mapping) == {
        each['name'] for each in operation['parameters'] if 'name' in each
    }


@tables.EVERY
def test_the_resources_are_those_of_the_document():
    """Else: ``tox -e genclient``."""
    spec = importlib.util.spec_from_file_location('generate', GENERATOR)
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    document = openapi.document(routes.ROUTES, microversion.KNOWN[-1])
    assert generate.module(document) == generate.FILE.read_text()
