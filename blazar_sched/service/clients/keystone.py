# SPDX-License-Identifier: Apache-2.0
"""Keystone, as far as leases need it: trusts, and where to write to.

By a trust its creator, the trustor, lets our own user, the trustee, act for
them long after their token is gone.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
import contextlib
import functools
import threading
import time
from urllib import parse

import cachetools
from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import loading
from keystoneauth1 import plugin
from keystoneauth1 import token_endpoint
from oslo_config import cfg
from oslo_log import log

from blazar_sched.conf import keystone as keystone_conf
from blazar_sched.domain import exception
from blazar_sched.service.clients import rest

LOG = log.getLogger(__name__)

# How many seconds, and of how many trusts, it is remembered what Keystone
# said.
MEMORY = 60.0
_MOST = 10_000
# A trust is a scope of its own: beside it there must be no other.
_OTHER_SCOPES = dict.fromkeys(
    (
        'system_scope',
        'domain_id',
        'domain_name',
        'project_id',
        'project_name',
        'project_domain_id',
        'project_domain_name',
    )
)
_TRUSTS = '/OS-TRUST/trusts'
_UNAUTHORIZED = 401
_FORBIDDEN = 403
_NOT_FOUND = 404

# How Keystone refuses a token for a trust that is no longer good.
_DEAD = (exceptions.Unauthorized, exceptions.Forbidden, exceptions.NotFound)

# Makes the credentials of our user in the scope of a trust.
Impersonate = Callable[[str], plugin.BaseAuthPlugin]
Known = tuple[plugin.BaseAuthPlugin | None]


class Keystone:
    """A client of the identity API; safe to share between threads.

    :param api: a keystoneauth adapter for the identity service, of the user
        that trusts are made for; None where none is configured
    :param impersonate: how that user makes use of a trust
    :param trust_roles: the names of the roles that a trust may lend
    """

    def __init__(
        self,
        api: adapter.Adapter | None,
        impersonate: Impersonate | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        trust_roles: Collection[str] = (),
    ) -> None:
        self._api = api
        self._impersonate = impersonate
        self._trust_roles = frozenset(trust_roles)
        # The credentials of each trust, None for those of a dead one.
        self._known: cachetools.TTLCache[str, Known] = cachetools.TTLCache(
            _MOST, MEMORY, monotonic
        )
        self._lock = threading.Lock()

    def create_trust(
        self, token: str, user_id: str, project_id: str, roles: list[str]
    ) -> str | None:
        """Have the token's owner trust our user; one call to Keystone.

        :param roles: the names of the roles that the token has
        :returns: the trust's id; None where no Keystone is configured, if
            the token has no role that a trust may lend, or if Keystone does
            not let the token delegate, as one that is of a trust or an
            application credential
        :raises Unauthorized: if the token is no longer valid
        :raises Unavailable: if Keystone cannot be asked
        """
        lent = [name for name in roles if name in self._trust_roles]
        if self._api is None or not lent:
            return None
        answer = self._as_bearer(token).request(
            'POST',
            _TRUSTS,
            json={
                'trust': {
                    'trustor_user_id': user_id,
                    'trustee_user_id': self._trustee,
                    'project_id': project_id,
                    'roles': [{'name': name} for name in lent],
                    'impersonation': True,
                    'allow_redelegation': False,
                }
            },
            # The last one to users whose roles are a group's, by federation.
            also=(_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND),
        )
        if answer.status_code == _UNAUTHORIZED:
            raise exception.Unauthorized('the token is no longer valid')
        if not answer.ok:
            LOG.info(
                'User %s cannot lend their roles in project %s: %s',
                user_id, project_id, answer.text[:200],
            )
            return None
        id_: str = rest.document(answer)['trust']['id']
        return id_

    def delete_trust(
        self, trust_id: str | None, token: str | None = None
    ) -> None:
        """Delete a trust, if there is one and it may be deleted.

        :param token: the trustor's; else they are impersonated by the trust
            itself, or, where that is dead, it is deleted by our own user
        :raises Unavailable: if Keystone cannot be asked
        """
        if trust_id is None or self._api is None:
            return
        url = f'{_TRUSTS}/{trust_id}'
        also = (_FORBIDDEN, _NOT_FOUND)
        deleter = self._deleter(trust_id, token)
        answer = deleter.request('DELETE', url, also=(*also, _UNAUTHORIZED))
        if answer.status_code == _UNAUTHORIZED:
            # Another manager has just deleted it, and its token with it.
            answer = self._as(None).request('DELETE', url, also=also)
        if answer.status_code == _FORBIDDEN:
            LOG.warning('Trust %s is left: %s', trust_id, answer.text[:200])
        self._remember(trust_id, (None,))

    def email(self, user_id: str) -> str | None:
        """Return what Keystone has as a user's e-mail address, if anything.

        :returns: None also if there is no such user, or none that our own
            may look at
        :raises Unavailable: if Keystone cannot be asked
        """
        if self._api is None:
            return None
        answer = self._as(None).request(
            'GET',
            f'/users/{parse.quote(user_id, safe="")}',
            also=(_FORBIDDEN, _NOT_FOUND),
        )
        if not answer.ok:
            LOG.warning('User %s: %s', user_id, answer.text[:200])
            return None
        email = rest.document(answer)['user'].get('email')
        return email if isinstance(email, str) else None

    def adapter_for(
        self, trust_id: str | None, service_type: str
    ) -> adapter.Adapter | None:
        """Return an adapter that acts for the creator of a lease.

        Its interface and region are those that the group ``keystone`` says.

        :param trust_id: the lease's
        :returns: None if there is no trust, or if it is dead: deleted with
            its trustor, or lacking a role that they have lost
        :raises Unavailable: if Keystone cannot be asked
        """
        if trust_id is None or self._api is None:
            return None
        with self._lock:
            known = self._known.get(trust_id)
        if known is None:
            known = (self._authenticate(trust_id),)
            self._remember(trust_id, known)
        [auth] = known
        if auth is None:
            return None
        return adapter.Adapter(
            self._api.session,
            auth=auth,
            service_type=service_type,
            interface=self._api.interface,
            region_name=self._api.region_name,
        )

    @property
    def _own(self) -> adapter.Adapter:
        """The adapter of our own user, where there is a cloud."""
        assert self._api is not None
        return self._api

    @functools.cached_property
    def _url(self) -> str:
        """Where Keystone is; remembered, for it must not be asked again."""
        return self._ask(self._own.get_endpoint)

    @functools.cached_property
    def _trustee(self) -> str:
        """The id of our own user; remembered too."""
        return self._ask(self._own.get_user_id)

    def _ask(self, question: Callable[[], str | None]) -> str:
        with _reaching():
            answer = question()
        if not answer:
            raise exception.Unavailable('the catalog has no identity service')
        return answer

    def _remember(self, trust_id: str, known: Known) -> None:
        with self._lock:
            self._known[trust_id] = known

    def _authenticate(self, trust_id: str) -> plugin.BaseAuthPlugin | None:
        """Return credentials that hold a token; None if the trust is dead."""
        assert self._impersonate is not None
        auth = self._impersonate(trust_id)
        with _reaching():
            try:
                auth.get_token(self._own.session)
            except _DEAD as e:
                LOG.info('Trust %s is dead: %s', trust_id, e)
                return None
        return auth

    def _deleter(self, trust_id: str, token: str | None) -> rest.Rest:
        """Return the API as the one who can best delete a trust."""
        if token is None:
            auth = self._authenticate(trust_id)
            if auth is None:
                return self._as(None)
            # Not as `auth`, which would ask for another token if it is dead.
            with _reaching():
                token = auth.get_token(self._own.session)
            assert token is not None
        return self._as_bearer(token)

    def _as_bearer(self, token: str) -> rest.Rest:
        return self._as(token_endpoint.Token(self._url, token))

    def _as(self, auth: plugin.BaseAuthPlugin | None) -> rest.Rest:
        """Return the API as somebody, else as our own user."""
        api = adapter.Adapter(
            self._own.session,
            auth=auth or self._own.auth,
            service_type='identity',
            endpoint_override=self._url,
        )
        return rest.Rest('identity', api, None)


@contextlib.contextmanager
def _reaching() -> Iterator[None]:
    try:
        yield
    except exceptions.ClientException as e:
        raise exception.Unavailable(
            f'identity cannot be reached: {e}'
        ) from e


def load(
    conf: cfg.ConfigOpts, monotonic: Callable[[], float] = time.monotonic
) -> Keystone:
    """Return the client that the group ``keystone`` describes."""

    def impersonate(trust_id: str) -> plugin.BaseAuthPlugin:
        auth = loading.load_auth_from_conf_options(
            conf, keystone_conf.GROUP, trust_id=trust_id, **_OTHER_SCOPES
        )
        # The group names a type of authentication: there is a cloud.
        assert auth is not None
        return auth

    api = rest.load_adapter(conf, keystone_conf.GROUP)
    trust_roles = conf[keystone_conf.GROUP].trust_roles
    return Keystone(api, impersonate, monotonic, trust_roles)
