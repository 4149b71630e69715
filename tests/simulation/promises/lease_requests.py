# SPDX-License-Identifier: Apache-2.0
"""A lease request is booked once, in its range of starts, and in its turn."""

from blazar_sched.domain import states
from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.domain.window import Window
from blazar_sched.parts.request import models
from blazar_sched.parts.request.lease_request import WAITING
from blazar_sched.parts.request.manager import LeaseRequests
from tests import looped
from tests.simulation import looks
from tests.simulation.promises import registry

_OPEN = (states.LEASE_PENDING, states.LEASE_ACTIVE)


@registry.promise_of_ledger()
def a_lease_request_is_there(world):
    """The end of a lease request is final, and nobody behind delays it."""
    seen = world.lease_requests.seen
    known = {each.id: each for each in world.ledger.run(models.list_, None)}
    for id_, before in seen.items():
        request = known.get(id_)
        if request is None:
            yield f'the lease request {id_} is not there'
        elif before not in ((WAITING, None), _state(request)):
            yield f'request {id_} was {before}, is {_state(request)}'
    ahead = [
        each for each in known.values()
        if each.is_waiting and each.id in seen
        and each.reservations[0]['resource_type'] == PHYSICAL_HOST
    ]
    for each in known.values():
        if each.lease_id and _state(each) != seen.get(each.id):
            yield from _overtaken(world, each, ahead)
    seen.update({id_: _state(each) for id_, each in known.items()})


@registry.promise_of_ledger()
def a_lease_of_a_request_is_in_its_range(world):
    booked = {
        each.lease_id: each for each in world.ledger.run(models.list_, None)
        if each.lease_id is not None
    }
    for lease in world.ledger.leases():
        request = booked.get(lease.id)
        if request is not None and lease.status in _OPEN and not (
            request.may_have(lease.window)
        ):
            yield f'the lease {lease.id} of {request} is in {lease.window}'


def _overtaken(world, booked, ahead):
    """Yield the requests ahead whose room a request has got.

    A request that has an estimate keeps its last window free. In the
    simulation, each lease is on hosts that any request for whole hosts could
    use.

    :param ahead: the waiting requests for whole hosts
    """
    lease = world.ledger.lease(booked.lease_id)
    world.lease_requests.booked[booked.id] = looks.shown(lease.start)
    for first in ahead:
        last = Window(first.latest_start, first.span.end)
        if (
            first.turn < booked.turn
            and last.overlaps(lease.window)
            and _has_estimate(world, first)
        ):
            yield f'{booked} was booked in {lease.window} ahead of {first}'


def _has_estimate(world, request):
    shown = next(
        looped.of(member.manager, LeaseRequests).get(request.id, None)
        for member in world.members if member.manager is not None
    )
    return shown['estimate'] is not None


def check_first(world):
    """Check that the first waiting request has no room, as a lease has none.

    Only where nothing fails, right after a manager has searched for room.

    :raises Broken: if a lease in the range of the request would have room
    """
    for request in world.ledger.run(models.waiting)[:1]:
        answer = world.ask(
            'POST', '/v1/leases?dry_run=true', {
                'name': 'lease',
                'reservations': request.reservations,
                'start_date': looks.date(max(request.start, world.time)),
                'latest_start_date': looks.date(request.latest_start),
                'duration': request.duration,
            },
            request.project_id,
        )
        if answer.status_code == 201:
            raise registry.Broken(
                f'{request} waits for the room of {answer.text}'
            )


def _state(request):
    return request.status, request.lease_id
