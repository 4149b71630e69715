# SPDX-License-Identifier: Apache-2.0
"""The base rules of which the other rules consist, with Blazar's names."""

from oslo_policy import policy

ADMIN = 'admin'
ADMIN_OR_OWNER = 'admin_or_owner'
PROJECT_MEMBER = 'project_member_api'
PROJECT_READER = 'project_reader_api'
PROJECT_MEMBER_OR_ADMIN = 'project_member_or_admin'
PROJECT_READER_OR_ADMIN = 'project_reader_or_admin'

SCOPES = ['project']

rules = [
    policy.RuleDefault(
        ADMIN,
        'role:admin',
        'Access of administrators, who manage hosts, floating IPs, and the '
        'leases of all projects.',
        scope_types=SCOPES,
    ),
    # Kept only for policy files that were written for Blazar.
    policy.RuleDefault(
        ADMIN_OR_OWNER,
        f'rule:{ADMIN} or project_id:%(project_id)s',
        'Access of all users of the project that owns a lease, and of '
        'administrators.',
        scope_types=SCOPES,
    ),
    policy.RuleDefault(
        PROJECT_MEMBER,
        'role:member and project_id:%(project_id)s',
        'Access of the members of the project that owns a lease, who manage '
        'its leases.',
        scope_types=SCOPES,
    ),
    policy.RuleDefault(
        PROJECT_READER,
        'role:reader and project_id:%(project_id)s',
        'Access of the readers of the project that owns a lease, who list '
        'and show its leases.',
        scope_types=SCOPES,
    ),
    policy.RuleDefault(
        PROJECT_MEMBER_OR_ADMIN,
        f'rule:{PROJECT_MEMBER} or rule:{ADMIN}',
        'Access of the members of the project that owns a lease, and of '
        'administrators.',
        scope_types=SCOPES,
    ),
    policy.RuleDefault(
        PROJECT_READER_OR_ADMIN,
        f'rule:{PROJECT_READER} or rule:{ADMIN}',
        'Access of the readers of the project that owns a lease, and of '
        'administrators.',
        scope_types=SCOPES,
    ),
]
