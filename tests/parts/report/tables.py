# SPDX-License-Identifier: Apache-2.0
"""What usage adds to the tables of the tests: see `tests.tables`."""

ROUTES = {('GET', '/v1/reports/usage'): (200, None)}
READ = {'blazar:usage:get'}
ANSWERS = {'list_usage': [{
    'day': '2030-01-01', 'resource_class': 'VCPU', 'reserved': 48.0,
    'used': 36.5, 'idle': 11.5, 'no_show': 0.0, 'refused': 4.0, 'late': 0.0,
}]}
LOOPS = {'usage', 'usage notifications'}
BOUNDS = {
    'reserved_day': '[manager] keep_usage',
    'usage_day': '[manager] keep_usage',
}
