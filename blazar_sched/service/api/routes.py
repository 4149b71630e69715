# SPDX-License-Identifier: Apache-2.0
"""The table of all routes of the API.

A handler is called with the request, its caller, and the variables of its
path by name; it returns the body of the response, possibly with an entity tag.
The policy is checked before the handler runs, so that no handler can omit the
check.
"""

from collections import defaultdict
from collections.abc import Callable
import dataclasses
import functools
import re
import types
from typing import Any

import falcon
import microversion_parse

from blazar_sched import policies
from blazar_sched.domain import exception
from blazar_sched.service.api import allocation
from blazar_sched.service.api import auth
from blazar_sched.service.api import capacity
from blazar_sched.service.api import errors
from blazar_sched.service.api import etag
from blazar_sched.service.api import extension
from blazar_sched.service.api import flavor
from blazar_sched.service.api import floating_ip
from blazar_sched.service.api import host
from blazar_sched.service.api import lease
from blazar_sched.service.api import lease_request
from blazar_sched.service.api import maintenance
from blazar_sched.service.api import microversion
from blazar_sched.service.api import offer
from blazar_sched.service.api import openapi
from blazar_sched.service.api import policy
from blazar_sched.service.api import series
from blazar_sched.service.api import timeline
from blazar_sched.service.api import validation
from blazar_sched.service.api import version
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.caller import Manager
from blazar_sched.service.api.property import list_properties
from blazar_sched.service.api.property import list_public_properties
from blazar_sched.service.api.property import update_property
from blazar_sched.service.api.schemas import lease as schemas
from blazar_sched.service.bus import calls


@dataclasses.dataclass(frozen=True, slots=True)
class Route:
    """A route of the API.

    `status` is the status of success; without a `rule`, anyone may call the
    route. Versions older than `since` do not have the route.
    """

    method: str
    path: str
    handler: Callable[..., dict[str, Any] | etag.Tagged | None]
    status: int
    rule: str | None
    since: microversion_parse.Version = microversion.V1_0


LEASES = '/v1/leases'
LEASE = '/v1/leases/{lease_id}'
EXTENSION = '/v1/leases/{lease_id}/extension'
REQUESTS = '/v1/requests'
REQUEST = '/v1/requests/{request_id}'
HOSTS = '/v1/os-hosts'
HOST = '/v1/os-hosts/{host_id}'
ALLOCATIONS = '/v1/os-hosts/allocations'
ALLOCATION = '/v1/os-hosts/{host_id}/allocation'
PROPERTIES = '/v1/os-hosts/properties'
PROPERTY = '/v1/os-hosts/properties/{name}'
FLOATING_IPS = '/v1/floatingips'
FLOATING_IP = '/v1/floatingips/{floating_ip_id}'
CAPACITY = '/v1/capacity'
TIMELINE = '/v1/timeline'
PUBLIC_PROPERTIES = '/v1/properties'
FLAVORS = '/v1/flavors'
SERIES = '/v1/series'
ONE_SERIES = '/v1/series/{series_id}'
MAINTENANCES = '/v1/maintenances'
MAINTENANCE = '/v1/maintenances/{maintenance_id}'
OFFERS = '/v1/offers'
OFFER = '/v1/offers/{offer_id}'

# The id of a lease or a floating IP, or the id of a host.
_ID = re.compile('[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]{1,19}')

# The number of characters kept of the name of an unknown parameter.
_MAX_SHOWN = 64

# The path of the OpenAPI document, whose own name ends in .json.
DOCUMENT = '/openapi'


def show_document(
    req: falcon.Request, caller: Caller | None
) -> openapi.Document:
    """Show the OpenAPI document of the requested version."""
    return openapi.document(ROUTES, req.env[microversion.VERSION])


# Each path is also valid with .json at its end, see app.RequestChecks.
ROUTES = (
    Route('GET', '/', version.list_versions, 300, None),
    Route('GET', '/versions', version.list_versions, 300, None),
    Route('GET', DOCUMENT, show_document, 200, None),

    Route('GET', LEASES, lease.list_leases, 200, policies.lease.GET),
    Route('POST', LEASES, lease.create_lease, 201, policies.lease.POST),
    Route('GET', LEASE, lease.show_lease, 200, policies.lease.GET),
    Route('PUT', LEASE, lease.update_lease, 200, policies.lease.PUT),
    Route('DELETE', LEASE, lease.delete_lease, 204, policies.lease.DELETE),
    Route('GET', EXTENSION, extension.show_extension, 200,
          policies.lease.GET, microversion.V1_1),

    Route('GET', SERIES, series.list_series, 200, policies.series.GET,
          microversion.V1_1),
    Route('POST', SERIES, series.create_series, 201, policies.series.POST,
          microversion.V1_1),
    Route('GET', ONE_SERIES, series.show_series, 200, policies.series.GET,
          microversion.V1_1),
    Route('PUT', ONE_SERIES, series.update_series, 200, policies.series.PUT,
          microversion.V1_1),
    Route('DELETE', ONE_SERIES, series.delete_series, 204,
          policies.series.DELETE, microversion.V1_1),

    Route('GET', MAINTENANCES, maintenance.list_maintenances, 200,
          policies.maintenance.GET, microversion.V1_1),
    Route('POST', MAINTENANCES, maintenance.create_maintenance, 201,
          policies.maintenance.POST, microversion.V1_1),
    Route('GET', MAINTENANCE, maintenance.show_maintenance, 200,
          policies.maintenance.GET, microversion.V1_1),
    Route('PUT', MAINTENANCE, maintenance.update_maintenance, 200,
          policies.maintenance.PUT, microversion.V1_1),
    Route('DELETE', MAINTENANCE, maintenance.delete_maintenance, 204,
          policies.maintenance.DELETE, microversion.V1_1),

    Route('GET', REQUESTS, lease_request.list_lease_requests, 200,
          policies.lease_request.GET, microversion.V1_1),
    Route('POST', REQUESTS, lease_request.create_lease_request, 201,
          policies.lease_request.POST, microversion.V1_1),
    Route('GET', REQUEST, lease_request.show_lease_request, 200,
          policies.lease_request.GET, microversion.V1_1),
    Route('DELETE', REQUEST, lease_request.cancel_lease_request, 204,
          policies.lease_request.DELETE, microversion.V1_1),


    Route('GET', HOSTS, host.list_hosts, 200, policies.host.GET),
    Route('POST', HOSTS, host.create_host, 201, policies.host.POST),
    Route('GET', HOST, host.show_host, 200, policies.host.GET),
    Route('PUT', HOST, host.update_host, 200, policies.host.PUT),
    Route('DELETE', HOST, host.delete_host, 204, policies.host.DELETE),

    Route('GET', ALLOCATIONS, allocation.list_allocations, 200,
          policies.allocation.GET),
    Route('GET', ALLOCATION, allocation.show_allocation, 200,
          policies.allocation.GET),
    Route('PUT', ALLOCATION, allocation.update_allocation, 200,
          policies.allocation.PUT),

    Route('GET', PROPERTIES, list_properties, 200,
          policies.property.GET),
    Route('PATCH', PROPERTY, update_property, 200,
          policies.property.UPDATE),

    Route('GET', FLOATING_IPS, floating_ip.list_floating_ips, 200,
          policies.floating_ip.GET),
    Route('POST', FLOATING_IPS, floating_ip.create_floating_ip, 201,
          policies.floating_ip.POST),
    Route('GET', FLOATING_IP, floating_ip.show_floating_ip, 200,
          policies.floating_ip.GET),
    Route('DELETE', FLOATING_IP, floating_ip.delete_floating_ip, 204,
          policies.floating_ip.DELETE),

    Route('GET', CAPACITY, capacity.show_capacity, 200,
          policies.capacity.GET, microversion.V1_1),
    Route('GET', TIMELINE, timeline.show_timeline, 200,
          policies.timeline.GET, microversion.V1_1),
    Route('GET', PUBLIC_PROPERTIES, list_public_properties, 200,
          policies.property.GET_PUBLIC, microversion.V1_1),
    Route('GET', FLAVORS, flavor.list_flavors, 200, policies.flavor.GET,
          microversion.V1_1),

    Route('GET', OFFERS, offer.list_offers, 200, policies.offer.GET,
          microversion.V1_1),
    Route('POST', OFFERS, offer.search_offers, 200, policies.offer.POST,
          microversion.V1_1),
    Route('GET', OFFER, offer.show_offer, 200, policies.offer.GET,
          microversion.V1_1),
    Route('DELETE', OFFER, offer.delete_offer, 204, policies.offer.DELETE,
          microversion.V1_1),
)


def add_to(
    app: errors.App, manager: Manager, enforcer: policy.Enforcer
) -> None:
    """Add ROUTES to `app`, with handlers that call `manager`."""
    responders: dict[str, dict[str, Callable[..., None]]] = defaultdict(dict)
    for route in ROUTES:
        respond = _responder(route, manager, enforcer)
        responders[route.path][f'on_{route.method.lower()}'] = respond
        if route.method == 'GET':
            # HEAD has the response of GET without the body.
            responders[route.path]['on_head'] = respond
    for path, by_name in responders.items():
        app.add_route(path, types.SimpleNamespace(**by_name))


def _responder(
    route: Route, manager: Manager, enforcer: policy.Enforcer
) -> Callable[..., None]:
    def respond(
        req: falcon.Request, resp: falcon.Response, **variables: str
    ) -> None:
        if req.env[microversion.VERSION] < route.since:
            raise falcon.HTTPNotFound(
                description=microversion.needed(
                    f'{route.method} {route.path}', route.since
                )
            )
        if '' in variables.values():
            raise falcon.HTTPNotFound
        caller = None
        if route.rule is not None:
            ctxt = req.env[auth.CONTEXT]
            ctxt.resource_uuid = _logged_id(variables)
            enforcer.authorize(ctxt, route.rule)
            _check_query(route, req)
            caller = Caller(
                ctxt,
                calls.sent_by(
                    lambda method, **arguments: manager.call(
                        ctxt.to_dict(), method, **arguments
                    )
                ),
                enforcer.is_admin(ctxt),
                req.env[microversion.VERSION],
                functools.partial(enforcer.authorize, ctxt),
                req.env.get(auth.HAS_PROJECT),
            )
        found = route.handler(req, caller, **variables)
        resp.status = route.status
        if isinstance(found, etag.Tagged):
            found.set_headers(resp)
            if found.body is None or etag.any_known(req):
                resp.status = falcon.HTTP_304
                return
            found = found.body
        resp.media = found

    return respond


def _logged_id(variables: dict[str, str]) -> str | None:
    """Return the id in a path, for the log lines about the request.

    The log lines of the manager have the id, too. A text that cannot be an id
    is left out, because it could be any text.
    """
    id_ = next(iter(variables.values()), '')
    return id_ if _ID.fullmatch(id_) else None


def _check_query(route: Route, req: falcon.Request) -> None:
    """Refuse an unknown query parameter, or one of a newer version.

    A request with a misspelt dry_run would be executed otherwise, and a list
    with a misspelt filter would be the list of everything. A request of 1.0
    that only reads may have any parameter, as in Blazar.

    :raises InvalidInput: naming the parameter
    """
    version = req.env[microversion.VERSION]
    if route.method == 'GET' and version < microversion.V1_1:
        return
    known = _parameters(route)
    for name in req.params:
        shown = name[:_MAX_SHOWN]
        if name not in known:
            raise exception.InvalidInput(
                f'{shown} {_why_refused(name, route)}', field=shown
            )
        if version < known[name]:
            raise exception.InvalidInput(
                microversion.needed(name, known[name]), field=name
            )


def _why_refused(name: str, route: Route) -> str:
    if name != schemas.DRY_RUN:
        known = validation.did_you_mean(name, _parameters(route))
        return f'is no query parameter of {route.method} {route.path}{known}'
    supporting = ', '.join(
        f'{each.method} {each.path}'
        for each in ROUTES
        if schemas.DRY_RUN in _parameters(each)
    )
    return f'is only supported by {supporting}'


def _parameters(route: Route) -> dict[str, microversion_parse.Version]:
    """Return the query parameters of a route, with their first versions."""
    operation = openapi.OPERATIONS[route.handler.__name__]
    return {field.name: field.since for field in operation.query}
