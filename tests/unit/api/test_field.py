# SPDX-License-Identifier: Apache-2.0
"""The view, the schema and the example derived from an object's fields."""

from operator import itemgetter

import jsonschema
import pytest

from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.microversion import KNOWN
from blazar_sched.service.api.microversion import V1_0
from blazar_sched.service.api.microversion import V1_1

WHEEL = Object(Field('inches', 'Diameter', 16, INTEGER))
CAR = Object(
    Field('name', 'Name of the car', 'beetle', get=itemgetter('title')),
    Field('colour', 'Colour', 'red', Type({'enum': ['red']})),
    Field('colour', 'Any colour', 'blue', since=V1_1),
    Field('sold', 'Whether the car is sold', type=BOOLEAN, required=False),
    Field('wheels', 'Wheels of the car', type=Many(WHEEL)), meaning='A car',
)
ITEM = {'title': 'mini', 'colour': 'red', 'sold': None, 'wheels': []}


def test_a_field_may_have_another_name_in_the_manager():
    assert CAR.show(ITEM, V1_0)['name'] == 'mini'


def test_an_optional_field_is_left_out_where_there_is_none():
    assert 'sold' not in CAR.show(ITEM, V1_0)
    assert CAR.show({**ITEM, 'sold': False}, V1_0)['sold'] is False
    assert 'sold' not in CAR.schema(V1_0)['required']
    with pytest.raises(KeyError):
        CAR.show({'title': 'mini'}, V1_0)


def test_a_newer_field_replaces_an_older_one_of_its_name():
    old, new = (CAR.schema(v)['properties']['colour'] for v in (V1_0, V1_1))
    assert old == {'enum': ['red'], 'description': 'Colour'}
    assert new == {'type': 'string', 'description': 'Any colour'}
    assert CAR.example(V1_0)['colour'] == 'red'
    assert CAR.example(V1_1)['colour'] == 'blue'


@pytest.mark.parametrize('version', KNOWN, ids=str)
def test_the_view_and_the_example_are_as_the_schema_says(version):
    schema = CAR.noun(version)
    validator = jsonschema.Draft202012Validator(schema)
    item = {**ITEM, 'sold': True, 'wheels': [{'inches': 17, 'secret': 1}]}
    validator.validate(CAR.show(item, version))
    [example] = schema['examples']
    validator.validate(example)
    assert example['wheels'] == [{'inches': 16}]
    assert schema['description'] == 'A car'
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({**example, 'wings': 2})
