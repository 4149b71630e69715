# SPDX-License-Identifier: Apache-2.0
"""The schemas of request bodies are valid JSON Schema.

A process of the service does not check them when it starts.
"""

import jsonschema
import pytest

from blazar_sched.service.api import microversion
from blazar_sched.service.api import routes
from blazar_sched.service.api import validation

BY_VERSION = {
    f'{route.method} {route.path}': route.body for route in routes.ROUTES
    if route.body
}


def check(validators):
    for validator in validators.values():
        validator.check_schema(validator.schema)


def test_every_schema_is_found():
    assert {'POST /v1/leases', 'POST /v1/os-hosts'} <= set(BY_VERSION)
    for each in BY_VERSION.values():
        assert set(each) == set(microversion.KNOWN)


@pytest.mark.parametrize('name', sorted(BY_VERSION))
def test_a_schema_is_valid_in_every_version(name):
    check(BY_VERSION[name])


def test_an_invalid_schema_is_found():
    wrong = validation.by_version(
        lambda version: {'properties': {'name': {'type': 'strin'}}}
    )
    with pytest.raises(jsonschema.SchemaError):
        check(wrong)
