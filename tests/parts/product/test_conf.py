# SPDX-License-Identifier: Apache-2.0
"""Products as options: read from a file, and refused."""

import pytest

from blazar_sched.parts.product import conf as product

HOSTS = (
    '{"name": "a100", "resource_type": "physical:host", "max_units": 4, '
    '"description": "8 A100 \\u2013 each", "max_duration": 604800, '
    '"resource_properties": ["==", "$$gpu", "a100"], "projects": ["p7"]}'
)
SIZE = (
    '{"name": "small", "resource_type": "virtual:instance", "vcpus": 2, '
    '"memory_mb": 2048, "disk_gb": 0}'
)
FLAVOR = (
    '{"name": "m1", "resource_type": "flavor:instance", "flavor_id": "42"}'
)


@pytest.fixture
def read(load):
    """read(value, …) -> the products of a file with these values."""
    return lambda *values: product.products(load('product', *values))


def test_products_are_read_from_a_file(read):
    found = read(HOSTS, SIZE, FLAVOR)
    assert list(found) == ['a100', 'small', 'm1']
    a100 = found['a100']
    assert (a100.max_units, a100.max_duration, a100.projects) == (
        4, 604800, ('p7',)
    )
    assert a100.description == '8 A100 – each'
    assert a100.asked(2) == {
        'resource_properties': '["==", "$gpu", "a100"]', 'min': 2, 'max': 2,
    }
    assert found['small'].asked(3)['vcpus'] == 2
    assert found['small'].asked(3)['amount'] == 3
    assert found['m1'].asked(1)['flavor_id'] == '42'


def test_of_two_products_of_one_name_the_last_counts(read):
    [product] = read(SIZE, SIZE.replace('2048', '4096')).values()
    assert product.parameters['memory_mb'] == 4096


@pytest.mark.parametrize(('value', 'named'), [
    ('{', 'Expecting'),
    ('[]', 'object'),
    (HOSTS.replace('physical:host', 'x'), 'resource_type'),
    (HOSTS.replace('"name": "a100"', '"name": ""'), 'name'),
    (HOSTS.replace('604800', '0'), 'max_duration'),
    (HOSTS.replace('604800', '"7d"'), 'max_duration'),
    (HOSTS.replace('4,', 'true,'), 'max_units'),
    (HOSTS.replace('["p7"]', '"p7"'), 'projects'),
    (HOSTS.replace('"=="', '"?="'), 'resource_properties'),
    (HOSTS.replace('max_units', 'slots'), 'slots'),
    (SIZE.replace('vcpus', 'flavor_id'), 'flavor_id'),
    (SIZE.replace(', "disk_gb": 0', ''), 'needs disk_gb'),
    (SIZE.replace('virtual:', 'flavor:'), 'flavor:instance '),
    (FLAVOR.replace('flavor:instance', 'physical:host'), 'no flavor_id'),
])
def test_a_wrong_product_stops_the_service_by_the_name_of_its_field(
    read, value, named
):
    with pytest.raises(ValueError, match=f'is no product: .*{named}'):
        read(value)
