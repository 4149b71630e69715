# SPDX-License-Identifier: Apache-2.0
"""Policy rules for host properties."""

from oslo_policy import policy

from blazar_sched.policies import base

GET = 'blazar:oshosts:get_resource_properties'
UPDATE = 'blazar:oshosts:update_resource_properties'
GET_PUBLIC = 'blazar:properties:get'

_PATH = '/v1/os-hosts/properties'

rules = [
    policy.DocumentedRuleDefault(
        GET,
        f'rule:{base.ADMIN}',
        'List the properties of hosts.',
        [{'path': _PATH, 'method': 'GET'}],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        UPDATE,
        f'rule:{base.ADMIN}',
        'Update whether a host property is private or public.',
        [{'path': f'{_PATH}/{{name}}', 'method': 'PATCH'}],
        scope_types=base.SCOPES,
    ),
    policy.DocumentedRuleDefault(
        GET_PUBLIC,
        f'rule:{base.PROJECT_READER_OR_ADMIN}',
        'List the zones and the public properties of the hosts that the '
        'project may use.',
        [{'path': '/v1/properties', 'method': 'GET'}],
        scope_types=base.SCOPES,
    ),
]
