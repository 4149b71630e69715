# SPDX-License-Identifier: Apache-2.0
"""Policy rules for series."""

from oslo_policy import policy

from blazar_sched.policies import base

GET = 'blazar:series:get'
POST = 'blazar:series:post'
PUT = 'blazar:series:put'
DELETE = 'blazar:series:delete'

_ONE = '/v1/series/{series_id}'

rules = [
    policy.DocumentedRuleDefault(
        GET,
        f'rule:{base.PROJECT_READER_OR_ADMIN}',
        'List series, or show a series.',
        [
            {'path': '/v1/series', 'method': 'GET'},
            {'path': _ONE, 'method': 'GET'},
        ],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        POST,
        f'rule:{base.PROJECT_MEMBER_OR_ADMIN}',
        'Create a series of leases.',
        [{'path': '/v1/series', 'method': 'POST'}],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        PUT,
        f'rule:{base.PROJECT_MEMBER_OR_ADMIN}',
        'Change a series from an occurrence on.',
        [{'path': _ONE, 'method': 'PUT'}],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        DELETE,
        f'rule:{base.PROJECT_MEMBER_OR_ADMIN}',
        'Delete a series with its leases that have not started.',
        [{'path': _ONE, 'method': 'DELETE'}],
        scope_types=base.SCOPES,
    ),
]
