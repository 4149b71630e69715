# SPDX-License-Identifier: Apache-2.0
"""The policy rules for lease requests."""

from oslo_policy import policy

from blazar_sched.policies import base

GET = 'blazar:requests:get'
POST = 'blazar:requests:post'
PRIORITIZE = 'blazar:requests:prioritize'
DELETE = 'blazar:requests:delete'

_ONE = '/v1/requests/{request_id}'

rules = [
    policy.DocumentedRuleDefault(
        GET,
        f'rule:{base.PROJECT_READER_OR_ADMIN}',
        'List lease requests, or show a lease request.',
        [
            {'path': '/v1/requests', 'method': 'GET'},
            {'path': _ONE, 'method': 'GET'},
        ],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        POST,
        f'rule:{base.PROJECT_MEMBER_OR_ADMIN}',
        'Create a lease request, which waits until a lease finds room.',
        [{'path': '/v1/requests', 'method': 'POST'}],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        PRIORITIZE,
        f'rule:{base.ADMIN}',
        'Give a lease request a priority above normal.',
        [{'path': '/v1/requests', 'method': 'POST'}],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        DELETE,
        f'rule:{base.PROJECT_MEMBER_OR_ADMIN}',
        'Cancel a lease request.',
        [{'path': _ONE, 'method': 'DELETE'}],
        scope_types=base.SCOPES,
    ),
]
