# SPDX-License-Identifier: Apache-2.0
"""The common base of the clients: sessions of keystoneauth, and the SDK.

An unexpected status, and a service that cannot be reached, raise Unavailable,
because the same action may work later. `refused` is true for a refusal of what
was asked only: a service that cannot be reached, answers 5xx or 429, or does
not accept the user of this service now has decided nothing. A request that
times out may have had its effect, so all requests must be repeatable.
"""

import collections
from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import contextvars
from email import utils
import threading
import time
from typing import Any

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import loading
from keystoneauth1 import plugin
from keystoneauth1 import session
from oslo_config import cfg
from oslo_context import context
import requests

from blazar_sched.domain import exception
from blazar_sched.service import faults

# The seconds for which a service may be silent during a request, where the
# group's own `timeout` is not set, so that no call hangs for ever.
TIMEOUT = 60
_TOO_MANY_REQUESTS = 429
_NOT_IMPLEMENTED = 501
# The 4xx statuses that are no refusal of what was asked: a token that cannot
# be validated now, a time-out, a limit of the rate.
_NOT_NOW = (401, 408, 425, _TOO_MANY_REQUESTS)
REQUEST_ID = 'X-OpenStack-Request-ID'

# The option group of a service type, where the group has a different name.
GROUPS = {'compute': 'nova', 'identity': 'keystone', 'network': 'neutron'}

# The options of an adapter that other clients of the same service have too.
OPTIONS = (
    'connect_retry_delay',
    'endpoint_override',
    'interface',
    'service_name',
    'service_type',
    'status_code_retries',
    'status_code_retry_delay',
)

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


def cause() -> dict[str, str]:
    """Return the header that names the cause of a request to a service.

    The cause is the request to the API, or the event, that this thread works
    on; there is no header if there is none.
    """
    caller = context.get_current()
    id_ = caller and caller.global_id
    return {REQUEST_ID: str(id_)} if id_ else {}


class Turns:
    """Turns of the threads that change the same host in another service.

    The service refuses a change that overtakes another, and each repetition
    takes the service's time from all others.
    """

    # Seconds to wait: a service that hangs keeps no thread longer from its
    # own time-out.
    PATIENCE = 2.0

    def __init__(self) -> None:
        self._locks: dict[str, threading.Lock]
        self._locks = collections.defaultdict(threading.Lock)

    @contextlib.contextmanager
    def of(self, host: str) -> Iterator[None]:
        """Wait until no other thread changes a host, or for a short time."""
        lock = self._locks[host]
        taken = lock.acquire(timeout=self.PATIENCE)
        try:
            yield
        finally:
            if taken:
                lock.release()


class Refusal(Exception):
    """An answer with an error status, as the cause of an Unavailable."""

    def __init__(self, answer: requests.Response) -> None:
        super().__init__(answer.status_code)
        self.answer = answer


@contextlib.contextmanager
def tolerating(*statuses: int) -> Iterator[list[requests.Response]]:
    """Suppress the refusal of a request with one of `statuses`.

    :returns: a list, to which the suppressed answer is appended
    """
    refusals: list[requests.Response] = []
    try:
        yield refusals
    except exception.Unavailable as e:
        refusal = e.__cause__
        if not (
            isinstance(refusal, Refusal)
            and refusal.answer.status_code in statuses
        ):
            raise
        refusals.append(refusal.answer)


class Session(session.Session):
    """A keystoneauth session whose requests to services are guarded.

    A request to a service names the request to the API, or the event, that
    has caused it: the service logs this id as the global request id.
    Requests of keystoneauth itself, for tokens and versions, are part of the
    request to a service that needs them.
    """

    def request(
        self, url: str, method: str, *args: Any, **kwargs: Any
    ) -> requests.Response:
        """Send a request to the service that `endpoint_filter` names.

        :raises Unavailable: if there is no answer, or no JSON in the answer,
            or an error status, of which `tolerating` knows
        """
        service = (kwargs.get('endpoint_filter') or {}).get('service_type')
        if service is None:
            return super().request(url, method, *args, **kwargs)
        begin_request()
        kwargs['raise_exc'] = False
        kwargs['global_request_id'] = cause().get(REQUEST_ID)
        # The SDK would ask twice, whatever the option of the group says.
        kwargs.pop('connect_retries', None)
        with reaching(service):
            answer = super().request(url, method, *args, **kwargs)
        faults.point(f'{service}:asked')
        if not answer.ok:
            raise _error(service, answer, f'{method} {url}') from Refusal(
                answer
            )
        if (
            answer.status_code == 200
            and method != 'DELETE'
            and 'json' not in answer.headers.get('Content-Type', '')
        ):
            # A proxy has answered in place of the service.
            raise _no_json(answer, service)
        return answer

    def get_project_id(
        self, auth: plugin.BaseAuthPlugin | None = None
    ) -> str | None:
        """Return the id of the user's project, which may need a token."""
        with reaching('identity'):
            return super().get_project_id(auth)


class _SessionLoader(loading.session.Session):
    @property
    def plugin_class(self) -> type[session.Session]:
        return Session


@contextlib.contextmanager
def reaching(service: str) -> Iterator[None]:
    """Raise Unavailable if a service cannot be reached."""
    try:
        yield
    except exceptions.ClientException as e:
        raise exception.Unavailable(
            f'the {service} service cannot be reached now', detail=str(e),
            service=service,
        ) from e


def load_adapter(conf: cfg.ConfigOpts, group: str) -> adapter.Adapter | None:
    """Return the adapter that `group` describes, None without a cloud."""
    if not conf[group].auth_type:
        return None
    auth = loading.load_auth_from_conf_options(conf, group)
    options = conf[group]
    session = _SessionLoader().load_from_conf_options(
        conf, group, auth=auth, timeout=options.timeout or TIMEOUT,
        connect_retries=options.connect_retries or 0,
    )
    return loading.load_adapter_from_conf_options(conf, group, session=session)


def beside(
    api: adapter.Adapter | None, service_type: str,
    auth: plugin.BaseAuthPlugin | None = None,
) -> adapter.Adapter | None:
    """Return an adapter for another service of the same region.

    :param auth: the user's credentials; None for the user of `api`
    """
    return api and adapter.Adapter(
        api.session, auth=auth or api.auth, service_type=service_type,
        interface=api.interface, region_name=api.region_name,
    )


def required(api: adapter.Adapter | None, service: str) -> adapter.Adapter:
    """Return `api`, if there is a cloud whose catalog has the service.

    :raises Unavailable: if not, or if there is no answer
    """
    if api is None:
        group = GROUPS.get(service, service)
        raise exception.Unavailable(
            f'no {service} service is configured: [{group}] auth_type is not '
            'set', service=service,
        )
    with reaching(service):
        if not api.get_endpoint(service_type=service):
            raise exception.Unavailable(
                f'the catalog has no {service}', service=service
            )
    return api


def connect(
    api: adapter.Adapter | None, service: str, microversion: str | None = None
) -> Any:
    """Return the SDK's proxy of a service, which is an adapter as well.

    :param api: an adapter of a `Session`, which has the user, the region and
        the endpoint of the proxy; None where no cloud is configured
    :param microversion: the microversion of each request that names no other
    :raises Unavailable: if there is no cloud, or no answer
    """
    # Only managers need the SDK, of more than 500 modules.
    from openstack.connection import Connection
    from openstack.exceptions import SDKException

    api = required(api, service)
    options: dict[str, Any] = {
        f'{service}_{name}': getattr(api, name) for name in OPTIONS
    }
    options[f'{service}_default_microversion'] = microversion
    try:
        with reaching(service):
            cloud = Connection(
                session=api.session, region_name=api.region_name, **options
            )
            proxy = getattr(cloud, service)
    except SDKException as e:
        raise exception.Unavailable(
            f'the {service} service cannot be used now', detail=str(e),
            service=service,
        ) from e
    proxy.auth = api.auth
    return proxy


def pages(
    api: adapter.Adapter, url: str, key: str, microversion: str | None = None,
    **query: str,
) -> Iterator[Any]:
    """Yield the objects of a list, page by page, as the service shows them.

    Lists may be long, and an object of the SDK costs half a millisecond.
    """
    microversion = microversion or api.default_microversion
    while True:
        answer = api.get(url, params=query, microversion=microversion)
        page = answer.json()
        yield from page[key]
        links = page.get(f'{key}_links', ())
        if not any(link['rel'] == 'next' for link in links):
            return
        query['marker'] = page[key][-1]['id']


def document(refusal: requests.Response) -> Any:
    """Return the JSON document of an answer with an error status.

    :raises Unavailable: if the answer is not JSON
    """
    try:
        return refusal.json()
    except ValueError as e:
        raise _no_json(refusal) from e


def _error(
    service: str, answer: requests.Response, request: str
) -> exception.Unavailable:
    """Return the exception for an answer with an error status."""
    status = answer.status_code
    message = f'the {service} service answered {status}'
    detail = f'{request}: {answer.text[:200]}'
    wait = _wait(answer)
    if status == _TOO_MANY_REQUESTS:
        return exception.TooManyRequests(
            message, detail=detail, service=service, wait=wait
        )
    return exception.Unavailable(
        message, detail=detail, service=service, wait=wait,
        refused=status == _NOT_IMPLEMENTED
        or 400 <= status < 500 and status not in _NOT_NOW,
    )


def _wait(answer: requests.Response) -> float:
    """Return the seconds of a Retry-After, 0 if there are none."""
    said = answer.headers.get('Retry-After', '')
    if said.isascii() and said.isdigit():
        return float(said)
    with contextlib.suppress(ValueError, OverflowError):
        at = utils.parsedate_to_datetime(said)
        return max(0.0, at.timestamp() - time.time())
    return 0.0


def _no_json(
    answer: requests.Response, service: str = ''
) -> exception.Unavailable:
    return exception.Unavailable(
        f'no JSON in the answer {answer.status_code} of another service',
        detail=answer.text[:200], service=service,
    )
