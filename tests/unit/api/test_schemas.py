# SPDX-License-Identifier: Apache-2.0
"""The schemas of request bodies are valid JSON Schema.

A process of the service does not check them when it starts.
"""

import importlib
import pkgutil

import jsonschema
import pytest

from blazar_sched.service import api
from blazar_sched.service.api import microversion
from blazar_sched.service.api import validation


def by_version():
    """Return the validators of each schema by version, by their names."""
    found = {}
    versions = set(microversion.KNOWN)
    for each in pkgutil.walk_packages(api.__path__, f'{api.__name__}.'):
        module = importlib.import_module(each.name)
        found |= {
            f'{each.name.rpartition(".")[2]}.{name}': value
            for name, value in vars(module).items()
            if isinstance(value, dict) and set(value) == versions
        }
    return found


BY_VERSION = by_version()


def check(validators):
    for validator in validators.values():
        validator.check_schema(validator.schema)


def test_every_schema_is_found():
    assert {'lease.CREATE', 'lease.UPDATE', 'offer.SEARCH'} <= set(BY_VERSION)


@pytest.mark.parametrize('name', sorted(BY_VERSION))
def test_a_schema_is_valid_in_every_version(name):
    check(BY_VERSION[name])


def test_an_invalid_schema_is_found():
    wrong = validation.by_version(
        lambda version: {'properties': {'name': {'type': 'strin'}}}
    )
    with pytest.raises(jsonschema.SchemaError):
        check(wrong)
