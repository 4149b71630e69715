# SPDX-License-Identifier: Apache-2.0
"""The policy rules for offers."""

from oslo_policy import policy

from blazar_sched.policies import base

GET = 'blazar:offers:get'
POST = 'blazar:offers:post'
DELETE = 'blazar:offers:delete'

_ONE = '/v1/offers/{offer_id}'

rules = [
    policy.DocumentedRuleDefault(
        GET,
        f'rule:{base.PROJECT_READER_OR_ADMIN}',
        'List the held offers, or show a held offer.',
        [
            {'path': '/v1/offers', 'method': 'GET'},
            {'path': _ONE, 'method': 'GET'},
        ],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        POST,
        f'rule:{base.PROJECT_MEMBER_OR_ADMIN}',
        'Search for windows in which a lease would find room, and hold one.',
        [{'path': '/v1/offers', 'method': 'POST'}],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        DELETE,
        f'rule:{base.PROJECT_MEMBER_OR_ADMIN}',
        'Delete a held offer.',
        [{'path': _ONE, 'method': 'DELETE'}],
        scope_types=base.SCOPES,
    ),
]
