# SPDX-License-Identifier: Apache-2.0
"""Policy rules of oslo.policy, with Blazar's names.

A rule is declared beside the routes that ask it. Operators have the names in
their policy files: never change a name.
"""

import dataclasses

from oslo_policy import policy

ADMIN = 'admin'
ADMIN_OR_OWNER = 'admin_or_owner'
PROJECT_MEMBER = 'project_member_api'
PROJECT_READER = 'project_reader_api'
PROJECT_MEMBER_OR_ADMIN = 'project_member_or_admin'
PROJECT_READER_OR_ADMIN = 'project_reader_or_admin'

SCOPES = ['project']


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the policy.

    :param role: the base rule that holds by default
    :param text: what the rule allows, by default what its routes do
    """

    name: str
    role: str
    text: str = ''


# The base rules of which the other rules consist, with their checks.
_BASE = (
    Rule(
        ADMIN, 'role:admin',
        'Access of administrators, who manage hosts and the leases of all '
        'projects.',
    ),
    # Kept only for policy files that were written for Blazar.
    Rule(
        ADMIN_OR_OWNER, f'rule:{ADMIN} or project_id:%(project_id)s',
        'Access of all users of the project that owns a lease, and of '
        'administrators.',
    ),
    Rule(
        PROJECT_MEMBER, 'role:member and project_id:%(project_id)s',
        'Access of the members of the project that owns a lease, who manage '
        'its leases.',
    ),
    Rule(
        PROJECT_READER, 'role:reader and project_id:%(project_id)s',
        'Access of the readers of the project that owns a lease, who list '
        'and show its leases.',
    ),
    Rule(
        PROJECT_MEMBER_OR_ADMIN, f'rule:{PROJECT_MEMBER} or rule:{ADMIN}',
        'Access of the members of the project that owns a lease, and of '
        'administrators.',
    ),
    Rule(
        PROJECT_READER_OR_ADMIN, f'rule:{PROJECT_READER} or rule:{ADMIN}',
        'Access of the readers of the project that owns a lease, and of '
        'administrators.',
    ),
)


def base() -> list[policy.RuleDefault]:
    """Return the base rules for oslo.policy."""
    return [
        policy.RuleDefault(each.name, each.role, each.text, scope_types=SCOPES)
        for each in _BASE
    ]
