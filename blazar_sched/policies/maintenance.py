# SPDX-License-Identifier: Apache-2.0
"""Policy rules for maintenances."""

from oslo_policy import policy

from blazar_sched.policies import base

GET = 'blazar:maintenances:get'
POST = 'blazar:maintenances:post'
PUT = 'blazar:maintenances:put'
DELETE = 'blazar:maintenances:delete'

_ONE = '/v1/maintenances/{maintenance_id}'

rules = [
    policy.DocumentedRuleDefault(
        GET,
        f'rule:{base.ADMIN}',
        'List maintenances, or show a maintenance.',
        [
            {'path': '/v1/maintenances', 'method': 'GET'},
            {'path': _ONE, 'method': 'GET'},
        ],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        POST,
        f'rule:{base.ADMIN}',
        'Close hosts for a maintenance.',
        [{'path': '/v1/maintenances', 'method': 'POST'}],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        PUT,
        f'rule:{base.ADMIN}',
        'Change a maintenance.',
        [{'path': _ONE, 'method': 'PUT'}],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        DELETE,
        f'rule:{base.ADMIN}',
        'End or cancel a maintenance.',
        [{'path': _ONE, 'method': 'DELETE'}],
        scope_types=base.SCOPES,
    ),
]
