# SPDX-License-Identifier: Apache-2.0
"""The policy rule for the capacity."""

from oslo_policy import policy

from blazar_sched.policies import base

GET = 'blazar:capacity:get'

rules = [
    policy.DocumentedRuleDefault(
        GET,
        f'rule:{base.PROJECT_READER_OR_ADMIN}',
        'Show the total and the free capacity of hosts in a time window.',
        [{'path': '/v1/capacity', 'method': 'GET'}],
        scope_types=base.SCOPES,
    ),
]
