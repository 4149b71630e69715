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
        'Manages hosts, floating IPs, and the leases of every project.',
        scope_types=SCOPES,
    ),
    # Kept only for policy files that were written for Blazar.
    policy.RuleDefault(
        ADMIN_OR_OWNER,
        f'rule:{ADMIN} or project_id:%(project_id)s',
        'Has any role in a project, or manages every one.',
        scope_types=SCOPES,
    ),
    policy.RuleDefault(
        PROJECT_MEMBER,
        'role:member and project_id:%(project_id)s',
        'Manages the leases of a project.',
        scope_types=SCOPES,
    ),
    policy.RuleDefault(
        PROJECT_READER,
        'role:reader and project_id:%(project_id)s',
        'Sees the leases of a project.',
        scope_types=SCOPES,
    ),
    policy.RuleDefault(
        PROJECT_MEMBER_OR_ADMIN,
        f'rule:{PROJECT_MEMBER} or rule:{ADMIN}',
        'Manages the leases of a project, or of every project.',
        scope_types=SCOPES,
    ),
    policy.RuleDefault(
        PROJECT_READER_OR_ADMIN,
        f'rule:{PROJECT_READER} or rule:{ADMIN}',
        'Sees the leases of a project, or of every project.',
        scope_types=SCOPES,
    ),
]
