# SPDX-License-Identifier: Apache-2.0
"""Requests to Keystone with what a user of the page has given."""

from collections.abc import Mapping
import contextlib
from typing import Any

import requests

from blazar_sched.domain import exception
from blazar_sched.service.clients import rest
from blazar_sched.service.clients.keystone import Keystone

# The seconds for which Keystone may be silent during a request of a user: an
# anonymous caller may have sent it, and it takes a thread of the API.
USER_TIMEOUT = 10.0
_TOKENS = '/auth/tokens'
_CREDENTIAL = 'application_credential'
# What a refusal of a user's own request means. Keystone gives no further
# reason to a user that it does not know.
_REFUSALS: Mapping[int, tuple[type[exception.BlazarSchedError], str]] = {
    400: (exception.Unauthorized, 'Keystone refuses the request'),
    401: (exception.Unauthorized, 'Keystone refuses the sign-in'),
    403: (exception.NotAuthorized, 'Keystone forbids the request'),
    404: (exception.NotAuthorized, 'Keystone has no such project'),
}


def issue_token(
    keystone: Keystone, identity: Mapping[str, Any],
    project_id: str | None = None,
) -> dict[str, Any]:
    """Return a new token of the user who `identity` says.

    Nothing of the request or of the answer is logged.

    :param identity: the methods of Keystone's API, with their values
    :param project_id: the scope of the token; without it, a token of an
        application credential has the project of the credential, and any
        other token has no scope
    :returns: ``id``, ``expires_at``, ``user``, ``project`` and ``roles``,
        the names of the user's roles in the project
    :raises Unauthorized: if Keystone refuses the identity
    :raises NotAuthorized: if Keystone refuses the scope
    :raises Unavailable: if Keystone cannot be reached
    """
    auth: dict[str, Any] = {'identity': identity}
    if project_id is not None:
        auth['scope'] = {'project': {'id': project_id}}
    elif _CREDENTIAL not in identity['methods']:
        auth['scope'] = 'unscoped'
    answer = _ask(
        keystone, 'POST', f'{_TOKENS}?nocatalog', json={'auth': auth}
    )
    token = answer.json()['token']
    project = token.get('project')
    return {
        'id': answer.headers['X-Subject-Token'],
        'expires_at': token['expires_at'],
        'user': _named(token['user']),
        'project': project and _named(project),
        'roles': [role['name'] for role in token.get('roles', ())],
    }


def list_projects(keystone: Keystone, token: str) -> list[dict[str, str]]:
    """Return the id and the name of each project of a token's user.

    :raises Unauthorized: if the token is no longer valid
    :raises NotAuthorized: if the token may not ask
    :raises Unavailable: if Keystone cannot be reached
    """
    answer = _ask(
        keystone, 'GET', '/auth/projects', headers={'X-Auth-Token': token}
    )
    projects = answer.json()['projects']
    return [_named(each) for each in projects if each.get('enabled', True)]


def revoke_token(keystone: Keystone, token: str) -> None:
    """Make a token invalid; a token that is invalid already stays so.

    :raises NotAuthorized: if the token may not be revoked
    :raises Unavailable: if Keystone cannot be reached
    """
    with contextlib.suppress(exception.Unauthorized):
        _ask(
            keystone, 'DELETE', _TOKENS,
            headers={'X-Auth-Token': token, 'X-Subject-Token': token},
        )


def _ask(
    keystone: Keystone, method: str, path: str, **request: Any
) -> requests.Response:
    """Send a request with what the user has given, and nothing else."""
    api = keystone.identity
    if api is None:
        raise exception.Unavailable(
            'this service requests no tokens from Keystone: [keystone] '
            'auth_type is not set'
        )
    with rest.tolerating(*_REFUSALS) as refusals:
        # The log of keystoneauth would have the password.
        return api.request(
            path, method, authenticated=False, log=False,
            timeout=USER_TIMEOUT, **request,
        )
    refusal, message = _REFUSALS[refusals[0].status_code]
    raise refusal(message)


def _named(noun: Mapping[str, Any]) -> dict[str, str]:
    return {'id': noun['id'], 'name': noun['name']}
