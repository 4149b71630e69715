# SPDX-License-Identifier: Apache-2.0
"""What the clients have in common: one service's REST API by keystoneauth.

A status that the caller does not expect, and a service that cannot be
reached, are Unavailable: the same action may work later. A request that
times out may have had its effect, so whatever is asked for can be asked for
twice.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import contextvars
from typing import Any

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import loading
from oslo_config import cfg
import requests

from blazar_sched.domain import exception
from blazar_sched.service import faults

# Seconds that a service may be silent during one request, where the group's
# own `timeout` is not set. So no call hangs for ever.
TIMEOUT = 60

# The group of options of a service type, where its name is another.
GROUPS = {'compute': 'nova', 'identity': 'keystone', 'network': 'neutron'}

_guard: contextvars.ContextVar[Callable[[], object] | None]
_guard = contextvars.ContextVar('guard', default=None)


@contextlib.contextmanager
def guarded(check: Callable[[], object]) -> Iterator[None]:
    """Have `check` called before each request of this thread.

    Who works under a claim raises there once it is lost, so that at most the
    request under way outlives it.
    """
    before = _guard.set(check)
    try:
        yield
    finally:
        _guard.reset(before)


def begin_request() -> None:
    """Pass if this thread may ask another service for something."""
    check = _guard.get()
    if check is not None:
        check()


def load_adapter(
    conf: cfg.ConfigOpts, group: str
) -> adapter.Adapter | None:
    """Return the adapter that `group` describes, None without a cloud."""
    if not conf[group].auth_type:
        return None
    auth = loading.load_auth_from_conf_options(conf, group)
    session = loading.load_session_from_conf_options(
        conf, group, auth=auth, timeout=conf[group].timeout or TIMEOUT
    )
    return loading.load_adapter_from_conf_options(
        conf, group, session=session
    )


def beside(
    api: adapter.Adapter | None, service_type: str
) -> adapter.Adapter | None:
    """Return an adapter of the same user and region for another service."""
    return api and adapter.Adapter(
        api.session,
        auth=api.auth,
        service_type=service_type,
        interface=api.interface,
        region_name=api.region_name,
    )


class Rest:
    """One service's REST API.

    :param service: its service type, which microversions are sent for
    :param api: a keystoneauth adapter; None where no cloud is configured
    :param microversion: of each request that names no other, None for a
        service that has none
    """

    def __init__(
        self,
        service: str,
        api: adapter.Adapter | None,
        microversion: str | None,
    ) -> None:
        self._service = service
        self._api = api
        self._microversion = microversion

    def request(
        self,
        method: str,
        url: str,
        json: Any = None,
        also: Collection[int] = (),
        microversion: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """Send a request and return the answer.

        :param also: statuses beside 2xx that the caller deals with
        :raises Unavailable: if there is no cloud, no answer, or another
            status
        """
        if self._api is None:
            group = GROUPS.get(self._service, self._service)
            raise exception.Unavailable(
                f'no {self._service} service is configured: [{group}] '
                'auth_type is not set'
            )
        begin_request()
        try:
            answer = self._api.request(
                url,
                method,
                json=json,
                raise_exc=False,
                microversion=microversion or self._microversion,
                microversion_service_type=self._service,
                headers=dict(headers or {}),
            )
        except exceptions.ClientException as e:
            raise exception.Unavailable(
                f'{self._service} cannot be reached: {e}'
            ) from e
        faults.point(f'{self._service}:asked')
        if not answer.ok and answer.status_code not in also:
            raise exception.Unavailable(
                f'{self._service} answered {answer.status_code} to {method} '
                f'{url}: {answer.text[:200]}'
            )
        return answer

    def ask(self, url: str, microversion: str | None = None) -> Any:
        """GET a document.

        :raises Unavailable: as `request`, or if the answer is no JSON
        """
        return document(self.request('GET', url, microversion=microversion))


def document(answer: requests.Response) -> Any:
    """Return what an answer holds.

    :raises Unavailable: if it is no JSON: some proxy's word, not the service's
    """
    try:
        return answer.json()
    except ValueError as e:
        raise exception.Unavailable(
            f'no JSON in the answer {answer.status_code}: {answer.text[:200]}'
        ) from e
