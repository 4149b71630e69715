# SPDX-License-Identifier: Apache-2.0
"""The data that this project keeps on Nova's objects.

nova-scheduler makes new HostStates and a new RequestSpec for each request,
and drops both after the request. So data on these objects belongs to one
request and one thread, nothing outlives the request, and nothing needs a
lock. No other module writes on Nova's objects, with two exceptions: the index
(see blazar_sched.ext.host_state) adds `blazar_sched_seen` to HostStates, the
row of the host and the free disk at the first look; and the request filter
(see hooks.request_filter) uses `requested_destination` of a RequestSpec, as
Nova's own request filters do.

========================== ======================= ===========================
object                     attribute               data
========================== ======================= ===========================
HostState                  `__class__`             a subclass of the class,
                                                   see `observe_placements`
HostState                  `blazar_sched_consumed` the instances of the
                                                   request that the HostState
                                                   has counted, with what it
                                                   has counted as `used`
HostState                  `allocation_candidates` emptied, see
                                                   `end_alternates`
RequestSpec                `_blazar_sched_request` the request read from the
                                                   RequestSpec, with its key
RequestSpec                `_blazar_sched_watched` the reservable HostStates
                                                   that passed last; once the
                                                   instance is placed, those
                                                   that are no alternates
RequestSpec                `_blazar_sched_placed`  the uuid of the instance
                                                   that was placed last
RequestSpec                `_blazar_sched_several` whether any instance has
                                                   been placed
nova.scheduler             `ALL_REQUEST_FILTERS`   one more request filter
.request_filter
========================== ======================= ===========================
"""

from collections.abc import Callable
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import functools
from typing import Any
from typing import Protocol
import weakref

from blazar_sched.domain.instance import Instance
from blazar_sched.ext.host_state import HostState

_CONSUMED = 'blazar_sched_consumed'
_REQUEST = '_blazar_sched_request'
_WATCHED = '_blazar_sched_watched'
_PLACED = '_blazar_sched_placed'
_SEVERAL = '_blazar_sched_several'


class _Fields(Protocol):
    """An object of Nova, of which some fields may not be set."""

    def __contains__(self, name: object) -> bool: ...


class Flavor(_Fields, Protocol):
    """What is read of a flavor."""

    extra_specs: Mapping[str, str] | None


class PciRequest(Protocol):
    """What is read of a request for PCI devices."""

    request_id: str


class PciRequests(Protocol):
    """The requests for PCI devices of an instance."""

    requests: Sequence[PciRequest]


class RequestGroup(Protocol):
    """What is read of a group of resources that Placement is asked for."""

    requester_id: str | None
    resources: Mapping[str, int]


class Image(_Fields, Protocol):
    """What is read of an image."""

    properties: _Fields


class Destination(_Fields, Protocol):
    """What is read and called of a requested destination."""

    def require_aggregates(self, aggregates: list[str]) -> None: ...


class RequestSpec(_Fields, Protocol):
    """What is read of nova.objects.RequestSpec."""

    instance_uuid: str
    project_id: str | None
    num_instances: int
    flavor: Flavor
    vcpus: int
    memory_mb: int
    root_gb: int
    ephemeral_gb: int
    swap: int
    is_bfv: bool
    image: Image | None
    pci_requests: PciRequests | None
    requested_resources: Sequence[RequestGroup] | None
    requested_destination: Destination | None

    def get_scheduler_hint(self, name: str) -> object: ...


# Called with a HostState and the RequestSpec of the instance placed on it.
Observer = Callable[[HostState, RequestSpec], None]


class _Observed:
    """A mixin that precedes the own class of a HostState."""

    blazar_sched_observer: Callable[..., None]

    def consume_from_request(self, spec: RequestSpec) -> None:
        """Let Nova count `spec` on the host, then call the observer."""
        super().consume_from_request(spec)  # type: ignore[misc]
        self.blazar_sched_observer(self, spec)


@functools.cache
def _observed(of: type, observer: Observer) -> type:
    if issubclass(of, _Observed):
        return of
    return type(of.__name__, (_Observed, of), {
        '__module__': of.__module__,
        'blazar_sched_observer': staticmethod(observer),
    })


def observe_placements(
    host_states: Iterable[HostState], observer: Observer
) -> None:
    """Call `observer` for each instance that is placed on a HostState.

    No notification reports this moment: nova-scheduler calls
    `consume_from_request` of a HostState right after Placement has allocated
    the host. Each HostState gets another class: for 10,000 HostStates this
    takes a sixth of the time that it takes to give each HostState a method of
    its own.
    """
    host_states = list(host_states)
    types = set(map(type, host_states))
    classes = {of: _observed(of, observer) for of in types}
    # The filters of a request share the HostStates.
    if any(of is not observed for of, observed in classes.items()):
        for h in host_states:
            h.__class__ = classes[type(h)]


def set_watched(
    spec: RequestSpec, host_states: list[HostState], placed: str | None = None
) -> None:
    """Keep the HostStates that may have to be no alternates of a RequestSpec.

    :param placed: the uuid of the instance that was placed, for which the
        HostStates are no alternates
    """
    # HostStates are large, and a RequestSpec may wait for garbage collection.
    setattr(spec, _WATCHED, list(map(weakref.ref, host_states)))
    setattr(spec, _PLACED, placed)


def watched(spec: RequestSpec) -> list[HostState]:
    """Return the HostStates that `set_watched` has kept."""
    found = (each() for each in getattr(spec, _WATCHED, ()))
    return [h for h in found if h is not None]


def has_placed(spec: RequestSpec) -> bool:
    """Tell whether an instance of a RequestSpec has been placed.

    Only the HostStates of such a RequestSpec have consumed a request.
    """
    placed: bool = getattr(spec, _SEVERAL, False)
    return placed


def end_alternates(
    spec: RequestSpec, host_states: list[HostState], several: bool
) -> None:
    """Leave hosts out of the alternates of a request that is placed.

    nova-conductor gives an instance whose build has failed to an alternate
    without asking a filter. nova-scheduler skips a host without allocation
    candidates when it lists the alternates. For several instances it runs the
    filters once more for that, see `without_alternates`.

    :param several: whether the request may be for several instances, so that
        the hosts are needed for the next instance
    """
    set_watched(spec, host_states, spec.instance_uuid)
    setattr(spec, _SEVERAL, True)
    for h in () if several else host_states:
        vars(h)['allocation_candidates'] = []


def without_alternates(
    spec: RequestSpec, host_states: list[HostState]
) -> list[HostState]:
    """Return the HostStates, without watched ones to list as alternates.

    Nova passes the same HostStates for an instance that is already placed.
    """
    if getattr(spec, _PLACED, None) != spec.instance_uuid:
        return host_states
    ended = set(map(id, watched(spec)))
    return [h for h in host_states if id(h) not in ended]


def add_consumed(host_state: HostState, instance: Instance) -> None:
    """Note that a HostState's own figures count an instance from now on.

    :param instance: its `used` is what the figures count
    """
    known = vars(host_state).setdefault(_CONSUMED, {})
    known[instance.uuid] = instance


def consumed(host_state: HostState) -> Mapping[str, Instance]:
    """Return the instances of its request that a HostState counts, by uuid.
    """
    instances: Mapping[str, Instance] = vars(host_state).get(_CONSUMED, {})
    return instances


def with_any(
    host_states: Iterable[HostState], hosts: Container[str]
) -> list[HostState]:
    """Return the HostStates of some hosts, and those that have counted any."""
    return [
        h for h in host_states if h.uuid in hosts or _CONSUMED in h.__dict__
    ]


def set_request(spec: RequestSpec, key: object, request: object) -> None:
    """Keep the request read from a RequestSpec, under a key."""
    setattr(spec, _REQUEST, (key, request))


def get_request(spec: RequestSpec, key: object) -> Any:
    """Return the request kept under a key; None if there is none."""
    known, request = getattr(spec, _REQUEST, (None, None))
    return request if known == key else None


def add_request_filter(
    request_filter: Callable[[Any, RequestSpec], bool]
) -> None:
    """Register a request filter; Nova offers no other way to register one."""
    # This is the only function that needs Nova itself.
    from nova.scheduler.request_filter import ALL_REQUEST_FILTERS

    if request_filter not in ALL_REQUEST_FILTERS:
        ALL_REQUEST_FILTERS.append(request_filter)
