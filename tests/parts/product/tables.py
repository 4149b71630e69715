# SPDX-License-Identifier: Apache-2.0
"""What products add to the tables of the tests: see `tests.tables`."""

from blazar_sched.parts.product.exception import MaxUnits

ROUTES = {('GET', '/v1/products'): (200, None)}
READ = {'blazar:products:get'}
OF_ONE_PROJECT = {'list_products'}
ANSWERS = {
    'list_products': [{
        'name': 'a100', 'description': '', 'free': 3,
        'resource_type': 'physical:host', 'parameters': {},
        'max_duration': 604800, 'max_units': None,
    }],
}
REFUSALS = {MaxUnits: 400}
