# SPDX-License-Identifier: Apache-2.0
"""The policy rule for offers."""

from oslo_policy import policy

from blazar_sched.policies import base

POST = 'blazar:offers:post'

rules = [
    policy.DocumentedRuleDefault(
        POST,
        f'rule:{base.PROJECT_MEMBER_OR_ADMIN}',
        'Search for windows in which a lease would find room.',
        [{'path': '/v1/offers', 'method': 'POST'}],
        scope_types=base.SCOPES,
    ),
]
