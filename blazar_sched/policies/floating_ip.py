# SPDX-License-Identifier: Apache-2.0
"""Policy rules for floating IPs."""

from oslo_policy import policy

from blazar_sched.policies import base

GET = 'blazar:floatingips:get'
POST = 'blazar:floatingips:post'
DELETE = 'blazar:floatingips:delete'

_ONE = '/v1/floatingips/{floating_ip_id}'

rules = [
    policy.DocumentedRuleDefault(
        GET,
        f'rule:{base.PROJECT_READER_OR_ADMIN}',
        'List floating IPs, or show details of a floating IP.',
        [
            {'path': '/v1/floatingips', 'method': 'GET'},
            {'path': _ONE, 'method': 'GET'},
        ],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        POST,
        f'rule:{base.ADMIN}',
        'Register a floating IP as reservable.',
        [{'path': '/v1/floatingips', 'method': 'POST'}],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        DELETE,
        f'rule:{base.ADMIN}',
        'Make a floating IP no longer reservable.',
        [{'path': _ONE, 'method': 'DELETE'}],
        scope_types=base.SCOPES,
    ),
]
