# SPDX-License-Identifier: Apache-2.0
"""Policy rules for thresholds."""

from oslo_policy import policy

from blazar_sched.policies import base

GET = 'blazar:thresholds:get'
POST = 'blazar:thresholds:post'
DELETE = 'blazar:thresholds:delete'

_ONE = '/v1/thresholds/{threshold_id}'

rules = [
    policy.DocumentedRuleDefault(
        GET,
        f'rule:{base.ADMIN}',
        'List thresholds, or show a threshold.',
        [
            {'path': '/v1/thresholds', 'method': 'GET'},
            {'path': _ONE, 'method': 'GET'},
        ],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        POST,
        f'rule:{base.ADMIN}',
        'Create a threshold.',
        [{'path': '/v1/thresholds', 'method': 'POST'}],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        DELETE,
        f'rule:{base.ADMIN}',
        'Delete a threshold.',
        [{'path': _ONE, 'method': 'DELETE'}],
        scope_types=base.SCOPES,
    ),
]
