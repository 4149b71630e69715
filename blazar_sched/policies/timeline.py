# SPDX-License-Identifier: Apache-2.0
"""Policy rules for the timeline."""

from oslo_policy import policy

from blazar_sched.policies import base

GET = 'blazar:timeline:get'
GET_NAMES = 'blazar:timeline:get_names'

rules = [
    policy.DocumentedRuleDefault(
        GET,
        f'rule:{base.PROJECT_READER_OR_ADMIN}',
        'Show the timeline of hosts, without the names of hosts and the '
        'leases of other projects.',
        [{'path': '/v1/timeline', 'method': 'GET'}],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        GET_NAMES,
        f'rule:{base.ADMIN}',
        'See all hosts, the names of hosts, private properties, and the '
        'leases and servers of all projects in the timeline. From 1.1 on, '
        'name hosts in the requirements of any request.',
        [{'path': '/v1/timeline', 'method': 'GET'}],
        scope_types=base.SCOPES,
    ),
]
