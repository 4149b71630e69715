# SPDX-License-Identifier: Apache-2.0
"""The sign-in of the web page: requests to Keystone on behalf of the page.

Only the Keystone of the group ``keystone`` is called, and only with the
requests of this module. Anonymous callers send them, so only some may wait for
Keystone at once, and a password can be guessed a few times a minute only. No
password and no token is logged.
"""

from collections.abc import Iterator
import contextlib
import threading
from typing import Any

import cachetools
import falcon

from blazar_sched.domain import exception
from blazar_sched.parts.page import keystone
from blazar_sched.service.api import validation
from blazar_sched.service.clients.keystone import Keystone

# How many passwords of a user an address may try in the seconds of PERIOD, and
# the number of users and addresses that are remembered.
GUESSES = 10
PERIOD = 60
_MAX_REMEMBERED = 10_000

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


class Attempts:
    """The bounds of the requests to Keystone.

    :param at_once: the number of requests that may wait for Keystone at once
    """

    def __init__(self, at_once: int) -> None:
        self._free = threading.Semaphore(at_once)
        self._lock = threading.Lock()
        self._refused: cachetools.TTLCache[tuple[str, ...], int]
        self._refused = cachetools.TTLCache(_MAX_REMEMBERED, PERIOD)

    @contextlib.contextmanager
    def one(self, *guesser: str) -> Iterator[None]:
        """Send a request to Keystone in the block.

        :param guesser: the address and the user, if there is a password
        :raises TooManyRequests: if too many requests wait, or if the guesser
            was refused too often
        """
        with self._lock:
            if self._refused.get(guesser, 0) >= GUESSES:
                raise exception.TooManyRequests(
                    'too many sign-ins of this user were refused; try again '
                    'in a minute', retry_after=PERIOD,
                )
        if not self._free.acquire(blocking=False):
            raise exception.TooManyRequests(
                'too many such requests are in progress; try again in a moment'
            )
        try:
            yield
        except exception.Unauthorized:
            if guesser:
                with self._lock:
                    count = self._refused.get(guesser, 0)
                    self._refused[guesser] = count + 1
            raise
        finally:
            self._free.release()


class Token:
    """A user's token: issued, with another project as its scope, revoked."""

    def __init__(self, api: Keystone, attempts: Attempts) -> None:
        self._keystone = api
        self._attempts = attempts

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        body = req.media
        identity = _identity(body)
        with self._attempts.one(*_guesser(req, body)):
            token = keystone.issue_token(
                self._keystone, identity, body.get('project_id')
            )
        resp.media = {'token': token}
        resp.status = falcon.HTTP_CREATED
        resp.cache_control = ['no-store']

    def on_delete(self, req: falcon.Request, resp: falcon.Response) -> None:
        with self._attempts.one():
            keystone.revoke_token(self._keystone, _token(req))
        resp.status = falcon.HTTP_NO_CONTENT


class Projects:
    """The projects that a user may choose."""

    def __init__(self, api: Keystone, attempts: Attempts) -> None:
        self._keystone = api
        self._attempts = attempts

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        with self._attempts.one():
            projects = keystone.list_projects(self._keystone, _token(req))
        resp.media = {'projects': projects}
        resp.cache_control = ['no-store']


def _token(req: falcon.Request) -> str:
    token = req.get_header('X-Auth-Token')
    if not token:
        raise exception.Unauthorized('X-Auth-Token is missing')
    return token


def _guesser(req: falcon.Request, body: dict[str, str]) -> tuple[str, ...]:
    """Return who tries a password, () if there is no password.

    Where the headers of a proxy are believed, REMOTE_ADDR is X-Forwarded-For,
    of which the client itself may have sent all but the last address.
    """
    if 'password' not in body:
        return ()
    address = req.remote_addr.rpartition(',')[2].strip()
    return address, body['user'].casefold(), body['domain'].casefold()


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
