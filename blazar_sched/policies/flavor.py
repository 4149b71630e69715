# SPDX-License-Identifier: Apache-2.0
"""The policy rule for flavors."""

from oslo_policy import policy

from blazar_sched.policies import base

GET = 'blazar:flavors:get'

rules = [
    policy.DocumentedRuleDefault(
        GET,
        f'rule:{base.PROJECT_READER_OR_ADMIN}',
        'List the flavors that the project may use.',
        [{'path': '/v1/flavors', 'method': 'GET'}],
        scope_types=base.SCOPES,
    ),
]
