# SPDX-License-Identifier: Apache-2.0
"""A filter that delegates to another service, in Blazar's wire format.

Each question is a POST of ``context``, ``lease`` and, for an update,
``current_lease``. Status 204 allows the request; 403 refuses the request, with
the reason in ``message``; any other status refuses the request without a
reason. As in StackHPC's Blazar, each lease has the amounts of its resource
classes, and the service can be notified of what was created and updated.
"""

import datetime
import json
from typing import Any

from oslo_config import cfg
from oslo_log import log

from blazar_sched.conf import keystone as keystone_conf
from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.domain.host import Host
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.parts.limit import exception as refusals
from blazar_sched.service.clients import receiver
from blazar_sched.service.clients import rest
from blazar_sched.service.enforcement import base
from blazar_sched.service.ledger import off_hosts

LOG = log.getLogger(__name__)

# Seconds that the service may take to answer, while a client waits, and the
# most bytes of an answer, and characters of a reason, that count.
TIMEOUT = 20
MAX_ANSWER = 65536
MAX_REASON = 500
# The most tries to notify the service of what has happened.
TRIES = 2
# Blazar's paths, and two of StackHPC's Blazar, which other services do not
# have.
CHECK_CREATE, CHECK_UPDATE, ON_END = 'check-create', 'check-update', 'on-end'
COMMIT_CREATE, COMMIT_UPDATE = 'create', 'update'
# The answer's text is only logged: it may not be meant for the user.
DENIED = 'the external service denied the request'
_YES = 204
_NO = 403
_EPOCH = datetime.datetime(1970, 1, 1)
# The properties of a host that are not text.
_NUMBERS = ('vcpus', 'memory_mb', 'local_gb', 'hypervisor_version')

Document = dict[str, Any]


class ExternalServiceFilter(base.Filter):
    """A filter that asks the service.

    :raises ValueError: if the base endpoint is not set
    """

    is_external = True
    handles_end = True

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__(conf)
        self._keystone = conf[keystone_conf.GROUP]
        self._base: str = self._conf.external_service_base_endpoint or ''
        if not self._base:
            raise ValueError(
                'ExternalServiceFilter needs [enforcement] '
                'external_service_base_endpoint'
            )

    def check_external(
        self, request: base.LeaseChange, held: base.Resources,
        current: base.Resources,
    ) -> None:
        """Ask whether a lease may be created, or updated.

        :raises ExternalServiceFilter: if the service refuses, with its message
        :raises Unavailable: if the service cannot be reached
        """
        question = CHECK_UPDATE if request.current else CHECK_CREATE
        self._post(question, request.lease, held, _also(request, current))

    def on_commit(
        self, request: base.LeaseChange, held: base.Resources,
        current: base.Resources,
    ) -> None:
        if not self._conf.external_service_commits:
            return
        question = COMMIT_UPDATE if request.current else COMMIT_CREATE
        self._tell(question, request.lease, held, _also(request, current))

    def on_end(self, lease: Lease, held: base.Resources) -> None:
        self._tell(ON_END, lease, held, {})

    def _tell(
        self, question: str, lease: Lease, held: base.Resources, also: Document
    ) -> None:
        """Notify the service; on failure, retry once."""
        for _ in range(TRIES):
            try:
                return self._post(question, lease, held, also)
            except exception.BlazarSchedError as e:
                failed = e
        raise failed

    def _post(
        self, question: str, lease: Lease, held: base.Resources, also: Document
    ) -> None:
        body = json.dumps({
            'context': self._context(lease),
            'lease': _lease(lease, held),
            **also,
        })
        headers = {
            'Content-Type': 'application/json',
            **rest.cause(), **self._headers(),
        }
        try:
            answer = receiver.post(
                f'{self._base.rstrip("/")}/{question}', headers, body, TIMEOUT,
                most=MAX_ANSWER,
            )
        except exception.Unavailable as e:
            raise exception.Unavailable(
                'the external service is unreachable', detail=e.detail
            ) from e
        if answer.status != _YES:
            raise refusals.ExternalServiceFilter(_reason(answer))

    def _headers(self) -> dict[str, str]:
        if token := self._conf.external_service_token:
            return {'X-Auth-Token': token}
        if token := self._conf.external_service_bearer_token:
            return {'Authorization': f'Bearer {token}'}
        return {}

    def _context(self, lease: Lease) -> Document:
        return {
            'user_id': lease.user_id,
            'project_id': lease.project_id,
            # Present if keystoneauth has loaded a plugin that has the option.
            'auth_url': getattr(self._keystone, 'auth_url', None),
            'region_name': self._keystone.region_name,
        }


def _reason(answer: receiver.Answer) -> str:
    """Return the reason that the service gives to its users."""
    try:
        if answer.status == _NO:
            return str(json.loads(answer.body)['message'])[:MAX_REASON]
    except (ValueError, LookupError, TypeError):
        pass
    LOG.warning(
        'The external service answered %d: %s', answer.status,
        answer.body[:200].decode(errors='replace'),
    )
    return DENIED


def _also(request: base.LeaseChange, current: base.Resources) -> Document:
    if request.current is None:
        return {}
    return {'current_lease': _lease(request.current, current)}


def _lease(lease: Lease, held: base.Resources) -> Document:
    return {
        'id': lease.id,
        'name': lease.name,
        'user_id': lease.user_id,
        'project_id': lease.project_id,
        'trust_id': lease.trust_id,
        'status': lease.status,
        'start_date': _date(lease.start),
        'end_date': _date(lease.end),
        'before_end_date': _date(lease.before_end),
        'reservations': [_reservation(r, held) for r in lease.reservations],
        'resource_requests': base.amounts(lease, _whole_hosts(lease, held)),
    }


def _whole_hosts(lease: Lease, held: base.Resources) -> list[Host]:
    return [
        each
        for r in lease.reservations if r.demand.whole
        for each in held.get(r.id, ()) if isinstance(each, Host)
    ]


def _reservation(reservation: Reservation, held: base.Resources) -> Document:
    return {
        'id': reservation.id,
        'lease_id': reservation.lease_id,
        'resource_type': reservation.resource_type,
        **reservation.demand.encode(),
        'allocations': [
            _host(x) if isinstance(x, Host) else _without_stamps(x)
            for x in held.get(reservation.id, ())
        ],
    }


def _host(host: Host) -> Document:
    """Return a host as in Blazar's code, and as in Blazar's documentation.

    The code shows capabilities beside the other fields, the documentation
    shows them separately.
    """
    shown = host.properties()
    return {
        **shown,
        **{name: int(shown[name]) for name in _NUMBERS},
        'id': host.id,
        'reservable': host.reservable,
        'extra': dict(host.capabilities),
    }


def _without_stamps(resource: off_hosts.Resource) -> Document:
    """Return a resource that is not on hosts, as Blazar shows it."""
    stamps = 'created_at', 'updated_at'
    return {k: v for k, v in resource.items() if k not in stamps}


def _date(at: int | None) -> str | None:
    """Format a time as Blazar does: in UTC, without a time zone."""
    if at is None or at == window.FOREVER:
        return None
    return (_EPOCH + datetime.timedelta(seconds=at)).isoformat()
