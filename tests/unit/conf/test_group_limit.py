# SPDX-License-Identifier: Apache-2.0
"""Group limits as options: read from a file, and refused."""

import pytest

from blazar_sched.conf import group_limit

RACK = (
    '{"name": "rack 7", "resource_properties": ["==", "$$rack", "7"], '
    '"counted_property": "watts", "max": 12000}'
)
GPUS = '{"name": "GPUs", "resource_class": "CUSTOM_A100", "share": 0.75}'


@pytest.fixture
def read(load):
    """read(value, …) -> the group limits of a file with these values."""
    return lambda *values: group_limit.group_limits(
        load('group_limit', *values)
    )


def test_group_limits_are_read_from_a_file(read):
    rack, gpus = read(RACK, GPUS)
    assert (
        rack.name, rack.resource_properties, rack.counted_property, rack.max
    ) == ('rack 7', '["==", "$rack", "7"]', 'watts', 12000)
    assert (gpus.resource_class, gpus.share, gpus.max) == (
        'CUSTOM_A100', 0.75, None
    )


def test_a_whole_number_is_an_integer_however_written(read):
    [limit] = read(RACK.replace('12000', '1.2e4'))
    assert (limit.max, type(limit.max)) == (12000, int)


def test_of_two_group_limits_of_one_name_the_last_counts(read):
    [limit] = read(RACK, RACK.replace('12000', '9000'))
    assert limit.max == 9000


@pytest.mark.parametrize(
    ('value', 'named'),
    [
        ('{', 'Expecting'),
        (RACK.replace('"name": "rack 7", ', ''), 'name'),
        (RACK.replace('12000', '-1'), 'max'),
        (RACK.replace('12000', '1.5'), 'max'),
        (RACK.replace('12000', '12000, "share": 1'), 'valid under each'),
        (RACK.replace(', "max": 12000', ''), 'not valid'),
        (GPUS.replace('0.75', '1.1'), 'share'),
        (GPUS.replace('CUSTOM_A100', 'A100'), 'resource_class'),
        (GPUS.replace('0.75', 'NaN'), 'NaN'),
        (RACK.replace('"max"', '"resource_class": "VCPU", "max"'), 'not'),
        (RACK.replace('"=="', '"?="'), 'resource_properties'),
        (RACK.replace('"max"', '"most"'), 'most'),
    ],
)
def test_a_wrong_group_limit_stops_the_service(read, value, named):
    with pytest.raises(ValueError, match=f'is no group limit: .*{named}'):
        read(value)
