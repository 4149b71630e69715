# SPDX-License-Identifier: Apache-2.0
"""Client of Keystone: trusts, and the endpoints of leases.

With a trust the creator of a lease, the trustor, lets the service's own user,
the trustee, act for the creator long after the creator's token has expired.
"""

from collections.abc import Callable
from collections.abc import Collection
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

# The seconds for which answers of Keystone are cached, and the maximum number
# of trusts, and of projects, in the cache.
MEMORY = 60.0
_MAX_CACHED = 10_000
# A trust is a scope of its own, beside which no other scope is allowed.
OTHER_SCOPES = dict.fromkeys(
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

# The errors with which Keystone refuses a token for a trust that is no longer
# valid.
_DEAD = (exceptions.Unauthorized, exceptions.Forbidden, exceptions.NotFound)

# Returns the credentials of the service's user in the scope of a trust.
Impersonate = Callable[[str], plugin.BaseAuthPlugin]
Known = tuple[plugin.BaseAuthPlugin | None]


class Keystone:
    """A client of the identity API that threads can share.

    :param api: a keystoneauth adapter for the identity service, of the user
        who is the trustee; None where no identity service is configured
    :param impersonate: returns the trustee's credentials under a trust
    :param trust_roles: the names of the roles that a trust may delegate
    """

    def __init__(
        self, api: adapter.Adapter | None,
        impersonate: Impersonate | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        trust_roles: Collection[str] = (),
    ) -> None:
        self._api = api
        self._impersonate = impersonate
        self._trust_roles = frozenset(trust_roles)
        # The credentials of each trust, None for an invalid trust.
        self._known: cachetools.TTLCache[str, Known] = cachetools.TTLCache(
            _MAX_CACHED, MEMORY, monotonic
        )
        self._projects: cachetools.TTLCache[str, bool] = cachetools.TTLCache(
            _MAX_CACHED, MEMORY, monotonic
        )
        self._lock = threading.Lock()

    def create_trust(
        self, token: str, user_id: str, project_id: str, roles: list[str]
    ) -> str | None:
        """Create a trust from the token's owner to the service's user.

        The creation takes one request to Keystone.

        :param roles: the names of the roles that the token has
        :returns: the trust's id; None where no Keystone is configured, if
            the token has no role that a trust may delegate, or if Keystone
            does not let the token delegate, such as a token of a trust or of
            an application credential
        :raises Unauthorized: if the token is no longer valid
        :raises Unavailable: if Keystone cannot be reached
        """
        lent = [name for name in roles if name in self._trust_roles]
        if self._api is None or not lent:
            return None
        trust = {
            'trustor_user_id': user_id,
            'trustee_user_id': self._trustee,
            'project_id': project_id,
            'roles': [{'name': name} for name in lent],
            'impersonation': True,
            'allow_redelegation': False,
        }
        # Not Found is the answer to users whose roles are those of a group, by
        # federation.
        statuses = _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND
        with rest.tolerating(*statuses) as refusals:
            bearer = self._as_bearer(token)
            answer = bearer.post(_TRUSTS, json={'trust': trust})
            return str(answer.json()['trust']['id'])
        [refusal] = refusals
        if refusal.status_code == _UNAUTHORIZED:
            raise exception.Unauthorized('the token is no longer valid')
        LOG.info(
            'User %s cannot lend their roles in project %s: %s', user_id,
            project_id, refusal.text[:200],
        )
        return None

    def delete_trust(
        self, trust_id: str | None, token: str | None = None
    ) -> None:
        """Delete a trust, if the trust exists and may be deleted.

        :param token: the trustor's token; without a token the trustor is
            impersonated by the trust itself, or, if the trust is invalid, the
            service's own user deletes the trust
        :raises Unavailable: if Keystone cannot be reached
        """
        if trust_id is None or self._api is None:
            return
        url = f'{_TRUSTS}/{trust_id}'
        with rest.tolerating(_FORBIDDEN, _NOT_FOUND) as refusals:
            with rest.tolerating(_UNAUTHORIZED) as overtaken:
                self._deleter(trust_id, token).delete(url)
            if overtaken:
                # Another manager has just deleted the trust and its token.
                self._as(None).delete(url)
        for refusal in refusals:
            if refusal.status_code == _FORBIDDEN:
                LOG.warning(
                    'Could not delete trust %s: %s', trust_id,
                    refusal.text[:200],
                )
        self._remember(trust_id, (None,))

    def email(self, user_id: str) -> str | None:
        """Return a user's e-mail address in Keystone, None without one.

        :returns: None also if there is no such user, or if the service's own
            user may not see the user
        :raises Unavailable: if Keystone cannot be reached
        """
        if self._api is None:
            return None
        with rest.tolerating(_FORBIDDEN, _NOT_FOUND) as refusals:
            url = f'/users/{parse.quote(user_id, safe="")}'
            email = self._as(None).get(url).json()['user'].get('email')
            return email if isinstance(email, str) else None
        LOG.warning(
            'Could not read user %s: %s', user_id, refusals[0].text[:200]
        )
        return None

    def has_project(self, project_id: str) -> bool:
        """Tell whether there is a project of an id.

        Projects that were found are cached.

        :returns: True also where no Keystone is configured, or if the
            service's own user may not see the project
        :raises Unavailable: if Keystone cannot be reached
        """
        if self._api is None:
            return True
        with self._lock:
            if project_id in self._projects:
                return True
        url = f'/projects/{parse.quote(project_id, safe="")}'
        with rest.tolerating(_FORBIDDEN, _NOT_FOUND) as refusals:
            found = self._as(None).get(url).json()['project']
            # A database may compare ids without regard to case.
            if found['id'] != project_id:
                return False
            with self._lock:
                self._projects[project_id] = True
            return True
        return refusals[0].status_code == _FORBIDDEN

    def adapter_for(
        self, trust_id: str | None, service_type: str
    ) -> adapter.Adapter | None:
        """Return an adapter that acts for the creator of a lease.

        The interface and region of the adapter are those of the group
        ``keystone``.

        :param trust_id: the trust of the lease
        :returns: None if there is no trust, or if the trust is invalid:
            deleted with its trustor, or with a role that the trustor has lost
        :raises Unavailable: if Keystone cannot be reached
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
        return rest.beside(self._api, service_type, auth)

    @property
    def identity(self) -> adapter.Adapter | None:
        """The identity API as the service's user, None without a Keystone."""
        return self._api and self._as(None)

    @property
    def _own(self) -> adapter.Adapter:
        """Return the adapter of the service's user, if there is a cloud."""
        assert self._api is not None
        return self._api

    @functools.cached_property
    def _url(self) -> str:
        """Return Keystone's URL, cached so that it is looked up only once."""
        return self._ask(self._own.get_endpoint)

    @functools.cached_property
    def _trustee(self) -> str:
        """Return the id of the service's own user, which is cached too."""
        return self._ask(self._own.get_user_id)

    def _ask(self, question: Callable[[], str | None]) -> str:
        with rest.reaching('identity'):
            answer = question()
        if not answer:
            raise exception.Unavailable('the catalog has no identity service')
        return answer

    def _remember(self, trust_id: str, known: Known) -> None:
        with self._lock:
            self._known[trust_id] = known

    def _authenticate(self, trust_id: str) -> plugin.BaseAuthPlugin | None:
        """Return credentials with a token, None if the trust is invalid."""
        assert self._impersonate is not None
        auth = self._impersonate(trust_id)
        with rest.reaching('identity'):
            try:
                auth.get_token(self._own.session)
            except _DEAD as e:
                LOG.info('Trust %s can no longer be used: %s', trust_id, e)
                return None
        return auth

    def _deleter(self, trust_id: str, token: str | None) -> adapter.Adapter:
        """Return the identity API as the user best fit to delete a trust."""
        if token is None:
            auth = self._authenticate(trust_id)
            if auth is None:
                return self._as(None)
            # Not as `auth`, which would request another token if the token
            # is invalid.
            with rest.reaching('identity'):
                token = auth.get_token(self._own.session)
            assert token is not None
        return self._as_bearer(token)

    def _as_bearer(self, token: str) -> adapter.Adapter:
        return self._as(token_endpoint.Token(self._url, token))

    def _as(self, auth: plugin.BaseAuthPlugin | None) -> adapter.Adapter:
        """Return the identity API with `auth`, else as the service's user."""
        return adapter.Adapter(
            self._own.session, auth=auth or self._own.auth,
            service_type='identity', endpoint_override=self._url,
        )


def load(
    conf: cfg.ConfigOpts, monotonic: Callable[[], float] = time.monotonic
) -> Keystone:
    """Return the client that the group ``keystone`` describes."""

    def impersonate(trust_id: str) -> plugin.BaseAuthPlugin:
        auth = loading.load_auth_from_conf_options(
            conf, keystone_conf.GROUP, trust_id=trust_id, **OTHER_SCOPES
        )
        # The group names an authentication type, so a cloud is configured.
        assert auth is not None
        return auth

    api = rest.load_adapter(conf, keystone_conf.GROUP)
    trust_roles = conf[keystone_conf.GROUP].trust_roles
    return Keystone(api, impersonate, monotonic, trust_roles)
