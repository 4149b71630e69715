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
HostState                  `blazar_sched_consumed` uuids of the instances of
                                                   the request that the
                                                   figures of the HostState
                                                   already count
HostState                  `blazar_sched_first`    `num_instances` at the
                                                   first look
RequestSpec                `_blazar_sched_request` the request read from the
                                                   RequestSpec, with its key
nova.scheduler             `ALL_REQUEST_FILTERS`   one more request filter
.request_filter
========================== ======================= ===========================
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
import functools
from typing import Any

_CONSUMED = 'blazar_sched_consumed'
_FIRST = 'blazar_sched_first'
_REQUEST = '_blazar_sched_request'

# Called with a HostState and the RequestSpec of the instance placed on it.
Observer = Callable[[Any, Any], None]


class _Observed:
    """A mixin that precedes the own class of a HostState."""

    blazar_sched_observer: Observer

    def consume_from_request(self, spec: Any) -> None:
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
    host_states: Iterable[Any], observer: Observer
) -> None:
    """Call `observer` for each instance that is placed on a HostState.

    No notification reports this moment: nova-scheduler calls
    `consume_from_request` of a HostState right after Placement has allocated
    the host. Each HostState gets another class: for 10,000 HostStates this
    takes a sixth of the time that it takes to give each HostState a method of
    its own.
    """
    for h in host_states:
        h.__class__ = _observed(h.__class__, observer)


def add_consumed(host_state: Any, instance_uuid: str) -> None:
    """Note that a HostState's own figures count an instance from now on."""
    vars(host_state).setdefault(_CONSUMED, set()).add(instance_uuid)


def consumed(host_state: Any) -> Collection[str]:
    """Return the uuids of its request's instances that a HostState counts."""
    uuids: Collection[str] = vars(host_state).get(_CONSUMED, ())
    return uuids


def count_copies(host_state: Any) -> int:
    """Return how many instances of the request a host has with this one.

    For one multi-create, Nova passes the same HostStates again, and counts
    the instances that it has put on the host since the first look.
    """
    now: int = host_state.num_instances
    first: int = vars(host_state).setdefault(_FIRST, now)
    return 1 + now - first


def count_added(host_state: Any) -> int:
    """Return how many instances a HostState got since the first look.

    A HostState that `count_copies` never looked at got 0.
    """
    now: int = host_state.num_instances
    first: int = vars(host_state).get(_FIRST, now)
    return now - first


def set_request(spec: Any, key: object, request: object) -> None:
    """Keep the request read from a RequestSpec, under a key."""
    setattr(spec, _REQUEST, (key, request))


def get_request(spec: Any, key: object) -> Any:
    """Return the request kept under a key; None if there is none."""
    known, request = getattr(spec, _REQUEST, (None, None))
    return request if known == key else None


def add_request_filter(request_filter: Callable[[Any, Any], bool]) -> None:
    """Register a request filter; Nova offers no other way to register one."""
    # This is the only function that needs Nova itself.
    from nova.scheduler.request_filter import ALL_REQUEST_FILTERS

    if request_filter not in ALL_REQUEST_FILTERS:
        ALL_REQUEST_FILTERS.append(request_filter)
