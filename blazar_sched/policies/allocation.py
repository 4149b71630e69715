# SPDX-License-Identifier: Apache-2.0
"""Policy rules for allocations."""

from oslo_policy import policy

from blazar_sched.policies import base

GET = 'blazar:oshosts:get_allocations'
PUT = 'blazar:oshosts:reallocate'

rules = [
    policy.DocumentedRuleDefault(
        GET,
        f'rule:{base.ADMIN}',
        'List the allocations of all hosts, or show those of one host.',
        [
            {'path': '/v1/os-hosts/allocations', 'method': 'GET'},
            {'path': '/v1/os-hosts/{host_id}/allocation', 'method': 'GET'},
        ],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        PUT,
        f'rule:{base.ADMIN}',
        'Move the allocations of reservations from a host to other hosts.',
        [{'path': '/v1/os-hosts/{host_id}/allocation', 'method': 'PUT'}],
        scope_types=base.SCOPES,
    ),
]
