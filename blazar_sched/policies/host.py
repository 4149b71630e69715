# SPDX-License-Identifier: Apache-2.0
"""Policy rules for hosts."""

from oslo_policy import policy

from blazar_sched.policies import base

GET = 'blazar:oshosts:get'
POST = 'blazar:oshosts:post'
PUT = 'blazar:oshosts:put'
DELETE = 'blazar:oshosts:delete'

_ONE = '/v1/os-hosts/{host_id}'

rules = [
    policy.DocumentedRuleDefault(
        GET,
        f'rule:{base.ADMIN}',
        'List hosts, or show details of a host.',
        [
            {'path': '/v1/os-hosts', 'method': 'GET'},
            {'path': _ONE, 'method': 'GET'},
        ],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        POST,
        f'rule:{base.ADMIN}',
        'Register a host as reservable.',
        [{'path': '/v1/os-hosts', 'method': 'POST'}],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        PUT,
        f'rule:{base.ADMIN}',
        'Update the capabilities or settings of a host.',
        [{'path': _ONE, 'method': 'PUT'}],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        DELETE,
        f'rule:{base.ADMIN}',
        'Make a host no longer reservable.',
        [{'path': _ONE, 'method': 'DELETE'}],
        scope_types=base.SCOPES,
    ),
]
