# SPDX-License-Identifier: Apache-2.0
"""Leases: handlers that translate requests into calls to the manager."""

from collections.abc import Callable
from collections.abc import Mapping
import functools
from typing import Any
from typing import TypedDict

import falcon
import microversion_parse

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import label
from blazar_sched.domain import window
from blazar_sched.service.api import dry_run
from blazar_sched.service.api import extension
from blazar_sched.service.api import idempotency
from blazar_sched.service.api import listing
from blazar_sched.service.api import meaning
from blazar_sched.service.api import microversion
from blazar_sched.service.api import requirement
from blazar_sched.service.api import reservation
from blazar_sched.service.api import times
from blazar_sched.service.api import trust
from blazar_sched.service.api import validation
from blazar_sched.service.api import waiting
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.collection import Collection
from blazar_sched.service.api.field import described
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.idempotency import HEADERS
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.rule import PROJECT_MEMBER_OR_ADMIN
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.schemas import lease as schemas
from blazar_sched.service.api.schemas.reservation import BEFORE_END
from blazar_sched.service.api.schemas.reservation import ON_HOSTS
from blazar_sched.service.api.schemas.reservation import with_defaults
from blazar_sched.service.api.version import LINKS
from blazar_sched.service.api.views.lease import FIELDS
from blazar_sched.service.api.views.lease import LEASE
from blazar_sched.service.api.views.lease import LISTED_LEASE
from blazar_sched.service.api.views.reservation import RESERVATION
from blazar_sched.service.api.waiting import Early

NOW = 'now'
DEFAULT = 'default'

Body = dict[str, Any]
Creation = Callable[[falcon.Request, Caller, Body, bool], Callable[..., Body]]


def list_leases(req: falcon.Request, caller: Caller) -> Body:
    """List the leases of the project, or of all projects for an admin."""
    wanted = _wanted(req, caller)
    limit = listing.limit(req)
    fields = listing.fields(req, FIELDS)
    # One lease more than is shown tells whether more leases follow.
    leases = listing.fetch(
        lambda **page: caller.manager.list_leases(**wanted, **page),
        limit and limit + 1, listing.text(req, 'marker', schemas.MAX_ID),
    )
    links = listing.links(req, leases, limit)
    shown = [LEASE.show(x, caller.version) for x in leases[:limit]]
    if fields is not None:
        shown = [{name: x[name] for name in fields} for x in shown]
    body: Body = {'leases': shown}
    if links:
        body['leases_links'] = links
    return body


def show_lease(
    req: falcon.Request, caller: Caller, lease_id: str
) -> Body | Early:
    """Show a lease; from 1.1 on with its hosts and its remaining servers.

    With `wait_for` the answer comes once the lease has the status, after
    `timeout` seconds, or at once if too many requests wait already. Unless the
    lease had the status, the answer has the header Retry-After.
    """
    get = functools.partial(
        caller.manager.get_lease, lease_id=lease_id, project_id=caller.scope
    )
    if caller.version < microversion.V1_1:
        return get()
    wait = waiting.asked(req, schemas.STATUSES)
    if wait is None:
        return get(use=True)
    retry_after = caller.waiting.until(
        wait, caller.project_id, lambda: str(get()['status'])
    )
    lease = get(use=True)
    if lease['status'] in wait.statuses:
        return lease
    return Early(lease, retry_after)


def create_lease(req: falcon.Request, caller: Caller) -> Body:
    """Create a lease with all of its reservations, or create nothing."""
    return make(req, caller, schemas.CREATE, creation)


def make(
    req: falcon.Request, caller: Caller, schema: validation.ByVersion,
    creation: Creation,
) -> Body:
    """Make the lease of a request, or tell what would be made.

    :param creation: returns the call that makes the lease
    """
    only_asks = dry_run.argument(req)
    body = schemas.read(req.media, schema, caller.version)
    validation.check_body(schema, caller.version, body)
    create = creation(req, caller, body, bool(only_asks))
    if only_asks:
        return create(**only_asks)
    return trust.with_trust(
        req.env.get(trust.TRUSTOR), create,
        functools.partial(create, dry_run=True),
    )


def creation(
    req: falcon.Request, caller: Caller, body: Body, only_asks: bool
) -> Callable[..., Body]:
    """Return the call that creates the lease of a request.

    :raises InvalidInput: naming a field that is missing: only 1.0 reads a
        request without reservations
    """
    length = {**_length(body), **_starts(body)}
    if 'duration' not in body and 'end_date' not in body:
        raise exception.InvalidInput(
            'end_date is missing: null means no end', field='end_date'
        )
    if caller.version >= microversion.V1_1 and 'reservations' not in body:
        raise exception.InvalidInput(
            'reservations is missing', field='reservations'
        )
    reservations = reservation.read(caller, [
        with_defaults(r, caller.version) for r in body.get('reservations', ())
    ])
    values: Body = {
        'name': body['name'],
        'project_id': caller.project_id,
        'user_id': caller.user_id,
        'start': _start(body.get('start_date')),
        'end': _end(body.get('end_date'), caller.version),
        'before_end': before_end(body.get('before_end_date')),
        'reservations': reservations,
        **labels(body),
        **length,
    }
    if 'alternatives' in body:
        if 'latest_start' in values:
            raise exception.InvalidInput(
                'alternatives cannot be searched for a start: use one of '
                'alternatives and latest_start_date, or search for offers',
                field='alternatives',
            )
        values['alternatives'] = [
            reservation.read(caller, list(map(with_defaults, each)))
            for each in body['alternatives']
        ]
    more = {**idempotency.argument(req, only_asks), **_offering(caller)}
    return call(caller.manager.create_lease, values, more)


def call(
    send: Callable[..., Body], values: Body, more: Mapping[str, Any]
) -> Callable[..., Body]:
    """Return a call of the manager that takes a trust's id, and dry_run."""
    def call(trust_id: str | None = None, **dry_run: bool) -> Body:
        trusted = {} if trust_id is None else {'trust_id': trust_id}
        return send(values=values | trusted, **more, **dry_run)

    return call


def update_lease(req: falcon.Request, caller: Caller, lease_id: str) -> Body:
    """Make all of the requested changes of a lease, or change nothing."""
    only_asks = dry_run.argument(req)
    body = schemas.read(req.media, schemas.UPDATE, caller.version)
    validation.check_body(schemas.UPDATE, caller.version, body)
    values = {k: body[k] for k in ('name', 'labels') if k in body}
    if 'reservations' in body:
        values['reservations'] = reservation.read(
            caller,
            [
                r if 'id' in r else with_defaults(r, caller.version)
                for r in body['reservations']
            ],
            lease_id,
        )
        if caller.version < microversion.V1_1:
            values['reservations'] = _keep_before_end(
                caller, lease_id, values['reservations']
            )
    if 'start_date' in body:
        values['start'] = _start(body['start_date'])
    if 'end_date' in body:
        ends_now = body['end_date'] == NOW
        values['end'] = (
            NOW if ends_now else _end(body['end_date'], caller.version)
        )
    values |= _length(body)
    if 'before_end_date' in body and (
        body['before_end_date'] or caller.version >= microversion.V1_1
    ):
        values['before_end'] = before_end(body['before_end_date'])
    return caller.manager.update_lease(
        lease_id=lease_id, project_id=caller.scope, values=values,
        **extension.as_far_as_possible(body), **_offering(caller), **only_asks,
    )


def delete_lease(req: falcon.Request, caller: Caller, lease_id: str) -> None:
    """End a lease that has started, and delete the lease."""
    caller.manager.delete_lease(
        lease_id=lease_id, project_id=caller.scope, **dry_run.argument(req)
    )


def _wanted(req: falcon.Request, caller: Caller) -> Body:
    """Return the filters and the order of the requested list of leases."""
    project_id = listing.text(req, 'project_id', schemas.MAX_TEXT)
    status = req.get_param('status')
    if status is not None and status not in schemas.STATUSES:
        raise exception.InvalidInput(
            f'status must be one of {", ".join(schemas.STATUSES)}',
            field='status',
        )
    asked = {
        'name': listing.text(req, 'name', schemas.MAX_TEXT),
        'status': status,
        'sort': listing.sort(req, schemas.SORT_KEYS) or None,
    }
    if caller.version >= microversion.V1_1:
        asked |= _filters(req, caller)
    return {
        # A caller who sees only one project cannot list another project.
        'project_id': project_id if caller.scope is None else caller.scope,
        **{k: v for k, v in asked.items() if v is not None},
    }


def labels(body: Body) -> Body:
    """Return the labels of a request, if any.

    A request without labels has the idempotency digest that it always had.
    """
    return {'labels': body['labels']} if 'labels' in body else {}


def _filters(req: falcon.Request, caller: Caller) -> Body:
    """Return the filters that Blazar does not have."""
    # Where the instances of a member are is not shown to the member.
    host = 'host' if caller.scope is None else 'whole_host'
    now = req.get_param('active_at') == NOW
    return {
        'degraded': listing.boolean(req, 'degraded'),
        'at': NOW if now else listing.time(req, 'active_at'),
        'after': listing.time(req, 'start_date'),
        'before': listing.time(req, 'end_date'),
        'resource_type': listing.text(req, 'resource_type', schemas.MAX_TEXT),
        host: listing.text(req, 'host', schemas.MAX_TEXT),
        'labels': _asked_labels(req) or None,
    }


def _asked_labels(req: falcon.Request) -> list[list[str]]:
    """Return the key and the value of each ``label=key:value``.

    :raises InvalidInput: if there are too many, or one has another form
    """
    found = [
        label.parse(each, ':') for each in req.get_param_as_list('label') or ()
    ]
    if len(found) > label.MAX_LABELS or None in found:
        raise exception.InvalidInput(
            f'label must be key:value, at most {label.MAX_LABELS} times',
            field='label',
        )
    return [list(each) for each in found if each]


class _Offering(TypedDict, total=False):
    offering: bool
    names: bool


def _offering(caller: Caller) -> _Offering:
    """Return the arguments that add an offer to a refusal for lack of room.

    The refusal says what is in the way, too, as far as the caller may see it.
    """
    if caller.version < microversion.V1_1:
        return {}
    return {'offering': True, 'names': requirement.sees_host_names(caller)}


def _start(text: str | None) -> int | str:
    if text is None or text == NOW:
        return NOW
    return duration.parse_time(text, 'start_date')


def _end(text: str | None, version: microversion_parse.Version) -> int:
    if text is None:
        return window.FOREVER
    return duration.parse_time(text, 'end_date', times.no_end(version))


def _length(body: Body) -> Body:
    """Return the requested length of a lease, if any.

    :raises InvalidInput: if there is an end, too
    """
    if 'duration' not in body:
        return {}
    if body.get('end_date') is not None:
        raise exception.InvalidInput(
            'duration is in place of end_date: use one of them',
            field='duration',
        )
    return {'duration': times.read_duration(body, 'duration')}


def _starts(body: Body) -> Body:
    """Return the requested range of starts, if any.

    :raises InvalidInput: unless the range can be searched
    """
    for name, needed in (
        ('latest_start_date', 'duration'), ('align', 'latest_start_date')
    ):
        if name in body and needed not in body:
            raise exception.InvalidInput(f'{name} needs {needed}', field=name)
    if 'latest_start_date' not in body:
        return {}
    return {
        'latest_start': times.read_time(body, 'latest_start_date'),
        'align': body.get('align'),
    }


def before_end(text: str | None) -> int | str:
    # Blazar's clients send null or '' for a value that the user left out.
    if not text:
        return DEFAULT
    return duration.parse_time(text, 'before_end_date')


def _keep_before_end(
    caller: Caller, lease_id: str, changes: list[Body]
) -> list[Body]:
    """Return changes of reservations without before_end, which is fixed.

    :raises CantUpdateParameter: if before_end is to be changed
    :raises InvalidInput: if the version has no before_end for the reservation
    """
    name = BEFORE_END
    if not any('id' in change and name in change for change in changes):
        return changes
    lease = caller.manager.get_lease(
        lease_id=lease_id, project_id=caller.scope
    )
    shown = {
        r['id']: RESERVATION.show(r, caller.version).get(name)
        for r in lease['reservations']
        if r['resource_type'] in ON_HOSTS
    }
    kept = []
    for change in changes:
        if name not in change or change.get('id') not in shown:
            kept.append(change)
            continue
        known = shown[change['id']]
        if known is None:
            raise exception.InvalidInput(
                f'{name} is not a parameter of this resource type', field=name
            )
        if change[name] != known:
            raise exception.CantUpdateParameter(
                f'{name} cannot be changed', field=name
            )
        kept.append({k: v for k, v in change.items() if k != name})
    return kept


LEASES = Collection(
    '/v1/leases', Field('lease_id', meaning.LEASE_ID), 'lease', 'leases',
    'blazar:leases', PROJECT_READER_OR_ADMIN, PROJECT_MEMBER_OR_ADMIN, LEASE,
    LISTED_LEASE,
)
_ONE = f'{LEASES.path}/{{lease_id}}'
_LINKS = described(
    'Link to further leases, if `limit` leaves any out',
    LINKS.schema(microversion.V1_0),
)
TO_CREATE = LEASES.to_create(
    create_lease, schemas.CREATE, query=schemas.CHANGING_QUERY,
    headers=HEADERS, also=reservation.RULES,
)
ROUTES = (
    Route(
        'GET', LEASES.path, list_leases, LEASES.readable,
        Answer(
            LISTED_LEASE, 'leases', many=True, as_is=True,
            more={'leases_links': _LINKS},
        ),
        query=schemas.QUERY,
    ),
    TO_CREATE,
    Route(
        'GET', _ONE, show_lease, LEASES.readable, Answer(LEASE, 'lease'),
        variable=LEASES.id, query=schemas.WAITING_QUERY,
    ),
    LEASES.to_update(
        update_lease, schemas.UPDATE, query=schemas.CHANGING_QUERY,
        also=reservation.RULES,
    ),
    Route(
        'DELETE', _ONE, delete_lease, LEASES.writable('delete'), status=204,
        variable=LEASES.id, query=schemas.CHANGING_QUERY,
    ),
    Route(
        'GET', f'{_ONE}/extension', extension.show_extension, LEASES.readable,
        Answer(extension.EXTENSION, 'extension'), since=microversion.V1_1,
        variable=LEASES.id, query=extension.QUERY, changing=True,
    ),
)
