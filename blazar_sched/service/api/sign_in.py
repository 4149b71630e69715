# SPDX-License-Identifier: Apache-2.0
"""The sign-in of the web page: requests to Keystone on behalf of the page.

Only the Keystone of the group ``keystone`` is called, and only with the
requests of this module. Keystone limits the number of attempts of a user. No
password and no token is logged.
"""

from typing import Any

import falcon

from blazar_sched.domain import exception
from blazar_sched.service.api import validation
from blazar_sched.service.clients.keystone import Keystone

_TEXT = {'type': 'string', 'minLength': 1, 'maxLength': 4096}
_PROJECT = {'project_id': _TEXT}


def _form(*required: str, **optional: Any) -> validation.Schema:
    fields = dict.fromkeys(required, _TEXT)
    return {
        'type': 'object',
        'required': list(required),
        'properties': {**fields, **optional},
        'additionalProperties': False,
    }


_PASSWORD = validation.validator(
    _form('user', 'domain', 'password', **_PROJECT)
)
_CREDENTIAL = validation.validator(
    _form('application_credential_id', 'secret')
)
_TOKEN = validation.validator(_form('token', **_PROJECT))


class Token:
    """A user's token: issued, with another project as its scope, revoked."""

    def __init__(self, keystone: Keystone) -> None:
        self._keystone = keystone

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        body = req.media
        scope = body.get('project_id') if isinstance(body, dict) else None
        resp.media = {
            'token': self._keystone.issue_token(_identity(body), scope)
        }
        resp.status = falcon.HTTP_CREATED
        resp.cache_control = ['no-store']

    def on_delete(self, req: falcon.Request, resp: falcon.Response) -> None:
        self._keystone.revoke_token(_token(req))
        resp.status = falcon.HTTP_NO_CONTENT


class Projects:
    """The projects that a user may choose."""

    def __init__(self, keystone: Keystone) -> None:
        self._keystone = keystone

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.media = {'projects': self._keystone.list_projects(_token(req))}
        resp.cache_control = ['no-store']


def _token(req: falcon.Request) -> str:
    token = req.get_header('X-Auth-Token')
    if not token:
        raise exception.Unauthorized('X-Auth-Token is missing')
    return token


def _identity(body: Any) -> dict[str, Any]:
    """Return the method of Keystone for a form, with the values of the form.

    :raises InvalidInput: if it is none of the forms
    """
    if isinstance(body, dict) and 'token' in body:
        validation.check(_TOKEN, body)
        return {'methods': ['token'], 'token': {'id': body['token']}}
    if isinstance(body, dict) and 'application_credential_id' in body:
        validation.check(_CREDENTIAL, body)
        credential = {
            'id': body['application_credential_id'], 'secret': body['secret']
        }
        return {
            'methods': ['application_credential'],
            'application_credential': credential,
        }
    validation.check(_PASSWORD, body)
    user = {
        'name': body['user'],
        'domain': {'name': body['domain']},
        'password': body['password'],
    }
    return {'methods': ['password'], 'password': {'user': user}}
