# SPDX-License-Identifier: Apache-2.0
"""The common base of the clients: a service's REST API with keystoneauth.

An unexpected status, and a service that cannot be reached, raise Unavailable,
because the same action may work later. A request that times out may have had
its effect, so all requests must be repeatable.
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

# The seconds for which a service may be silent during a request, where the
# group's own `timeout` is not set, so that no call hangs for ever.
TIMEOUT = 60

# The option group of a service type, where the group has a different name.
GROUPS = {'compute': 'nova', 'identity': 'keystone', 'network': 'neutron'}

_guard: contextvars.ContextVar[Callable[[], object] | None]
_guard = contextvars.ContextVar('guard', default=None)


@contextlib.contextmanager
def guarded(check: Callable[[], object]) -> Iterator[None]:
    """Call `check` before each request of this thread.

    Work under a claim makes `check` raise once the claim is lost, so that at
    most the request in progress outlives the claim.
    """
    before = _guard.set(check)
    try:
        yield
    finally:
        _guard.reset(before)


def begin_request() -> None:
    """Check that this thread may send a request to another service."""
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
    """The REST API of a service.

    :param service: the service type for which microversions are sent
    :param api: a keystoneauth adapter; None where no cloud is configured
    :param microversion: the microversion of each request that names no other,
        None for a service without microversions
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

        :param also: statuses beside 2xx that the caller handles
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
        """Return the document at a URL, fetched with GET.

        :raises Unavailable: as `request`, or if the answer is not JSON
        """
        return document(self.request('GET', url, microversion=microversion))


def document(answer: requests.Response) -> Any:
    """Return the JSON document of an answer.

    :raises Unavailable: if the answer is not JSON, such as a proxy's answer
        in place of the service's
    """
    try:
        return answer.json()
    except ValueError as e:
        raise exception.Unavailable(
            f'no JSON in the answer {answer.status_code}: {answer.text[:200]}'
        ) from e
