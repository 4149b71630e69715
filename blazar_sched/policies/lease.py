# SPDX-License-Identifier: Apache-2.0
"""Policy rules for leases."""

from oslo_policy import policy

from blazar_sched.policies import base

GET = 'blazar:leases:get'
POST = 'blazar:leases:post'
PUT = 'blazar:leases:put'
DELETE = 'blazar:leases:delete'
SHARE = 'blazar:leases:share'

_ONE = '/v1/leases/{lease_id}'

rules = [
    policy.DocumentedRuleDefault(
        GET,
        f'rule:{base.PROJECT_READER_OR_ADMIN}',
        'List leases, show details of a lease, or show how far a lease can be '
        'prolonged.',
        [
            {'path': '/v1/leases', 'method': 'GET'},
            {'path': _ONE, 'method': 'GET'},
            {'path': f'{_ONE}/extension', 'method': 'GET'},
        ],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        POST,
        f'rule:{base.PROJECT_MEMBER_OR_ADMIN}',
        'Create a lease.',
        [{'path': '/v1/leases', 'method': 'POST'}],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        PUT,
        f'rule:{base.PROJECT_MEMBER_OR_ADMIN}',
        'Update a lease.',
        [{'path': _ONE, 'method': 'PUT'}],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        DELETE,
        f'rule:{base.PROJECT_MEMBER_OR_ADMIN}',
        'Delete a lease.',
        [{'path': _ONE, 'method': 'DELETE'}],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        SHARE,
        f'rule:{base.PROJECT_MEMBER_OR_ADMIN}',
        'Create or update a lease, create a series or a lease request, or '
        'search for offers, with reservations that are shared with other '
        'projects. These projects get access to the flavors of the leases.',
        [
            {'path': '/v1/leases', 'method': 'POST'},
            {'path': _ONE, 'method': 'PUT'},
            {'path': '/v1/offers', 'method': 'POST'},
            {'path': '/v1/series', 'method': 'POST'},
            {'path': '/v1/series/{series_id}', 'method': 'PUT'},
            {'path': '/v1/requests', 'method': 'POST'},
        ],
        scope_types=base.SCOPES,
    ),
]
