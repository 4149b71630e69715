# SPDX-License-Identifier: Apache-2.0
"""Drafts of new and changed leases, before the leases are placed."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any
import uuid

from oslo_config import cfg

from blazar_sched.domain import demand
from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain import lease as lease_rules
from blazar_sched.domain import states
from blazar_sched.domain.demand import BEFORE_END
from blazar_sched.domain.demand import DEFAULT_BEFORE_END
from blazar_sched.domain.demand import ON_START
from blazar_sched.domain.event import Event
from blazar_sched.domain.label import MAX_OF_RESERVATIONS
from blazar_sched.domain.lease import changed_window
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import DELETE
from blazar_sched.domain.reservation import MAX_PROJECTS
from blazar_sched.domain.reservation import PRODUCT
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.reservation import take_use
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window
from blazar_sched.service import before_end as before_end_actions
from blazar_sched.service import resources

DEFAULT = 'default'
MAX_RESERVATIONS = 100
# A new reservation has one of these.
NEW = {'resource_type', PRODUCT}

FillIn = Callable[[Mapping[str, Any], str], Mapping[str, Any]]


class Drafts:
    """A builder of leases from requests and from the operator's options."""

    def __init__(
        self, conf: cfg.ConfigOpts, drivers: resources.Drivers
    ) -> None:
        self._conf = conf.manager
        self._drivers = drivers
        #: Called with the values of a reservation and the id of its project;
        #: each returns the values, with those that the request leaves out.
        self.fill_in: list[FillIn] = []

    def new(self, values: Mapping[str, Any], now: int) -> Lease:
        """Return a lease with new ids.

        :raises InvalidInput: naming the field that is wrong
        """
        window = lease_rules.new_window(values, now)
        id_ = str(uuid.uuid4())
        before_end = values['before_end']
        after_start = any(
            each.get(ON_START) for each in values['reservations']
        )
        events = plan(self._conf, id_, window, before_end, now, after_start)
        new = Lease(
            id=id_, name=values['name'], project_id=values['project_id'],
            user_id=values['user_id'], start=window.start, end=window.end,
            status=states.LEASE_PENDING, trust_id=values.get('trust_id'),
            labels=values.get('labels', {}),
            reservations=_checked(
                self._new_reservation(id_, values['project_id'], asked, now)
                for asked in values['reservations']
            ),
            events=events, created_at=now,
        )
        if before_end == DEFAULT:
            check_announced(new)
        return new

    def changed(
        self, old: Lease, values: Mapping[str, Any], now: int
    ) -> Lease:
        """Return a lease with the requested changes.

        The values that the request does not name or change are as in `old`.

        :raises CantUpdateParameter: if a requested value can no longer be
            changed
        :raises InvalidInput: naming the field that is wrong
        """
        renamed = dataclasses.replace(
            old, name=values.get('name', old.name),
            labels=values.get('labels', old.labels),
        )
        if not set(values) - lease_rules.DESCRIBING:
            return renamed
        window = changed_window(old, values, now)
        reservations = self._changed_reservations(
            old, values.get('reservations', ()), now
        )
        new = dataclasses.replace(
            renamed, start=window.start, end=window.end,
            reservations=reservations,
            events=event.plan(
                old.id, window, self._changed_before_end(old, values, window),
                now, old.events,
                old.vacate
                if window.start == old.start
                else _vacate(self._conf, window, now),
                acts_on_start(reservations),
            ),
        )
        if not new.is_within(old):
            new = dataclasses.replace(new, approved_by=None)
        _check_actions(old, new)
        check_announced(new, old)
        return self._announced_late(old, new, now)

    def is_as_requested(
        self, lease: Lease, asked: Sequence[Mapping[str, Any]], now: int
    ) -> bool:
        """Tell whether the reservations of a lease are those of a request.

        A flavor may have changed since: a reservation keeps its flavor.
        """
        try:
            return len(lease.reservations) == len(asked) and all(
                known == dataclasses.replace(
                    self._changed_reservation(
                        lease,
                        dataclasses.replace(
                            known, projects=(), on_end=DELETE, magnetic=False,
                            labels={},
                        ),
                        values, now,
                    ),
                    updated_at=known.updated_at,
                )
                for known, values in zip(
                    lease.reservations, asked, strict=True
                )
            )
        except (exception.InvalidInput, exception.CantUpdateParameter):
            return False

    def _new_reservation(
        self, lease_id: str, project_id: str, values: Mapping[str, Any],
        now: int,
    ) -> Reservation:
        parameters = self._filled_in(values, project_id)
        product = parameters.pop(PRODUCT, '')
        resource_type = parameters.pop('resource_type', None)
        driver = self._drivers[resource_type]
        use = take_use(resource_type, parameters)
        return Reservation(
            id=str(uuid.uuid4()), lease_id=lease_id,
            status=states.RESERVATION_PENDING,
            demand=driver.validate(parameters, project_id), product=product,
            created_at=now, **use,
        )

    def _filled_in(
        self, values: Mapping[str, Any], project_id: str
    ) -> dict[str, Any]:
        """Return the values of a reservation, with what is filled in.

        :raises InvalidInput: if the project has no such product
        """
        filled = values
        for fill_in in self.fill_in:
            filled = fill_in(filled, project_id)
        name = values.get(PRODUCT)
        if name is not None and 'resource_type' not in filled:
            raise exception.InvalidInput(
                f'product {name[:64]!r} not found', field=PRODUCT
            )
        return dict(filled)

    def _changed_before_end(
        self, old: Lease, values: Mapping[str, Any], window: Window
    ) -> int | None:
        known = old.before_end
        if 'before_end' in values:
            asked = values['before_end']
        elif window.end != old.end and (
            FOREVER in (old.end, window.end)
            or known == _before_end(self._conf, DEFAULT, old.window)
        ):
            asked = DEFAULT
        else:
            # The same time before the end as before the change.
            asked = known and max(window.start, known + window.end - old.end)
        return _before_end(self._conf, asked, window)

    def _announced_late(self, old: Lease, new: Lease, now: int) -> Lease:
        """Schedule a done before_end_lease again for the added reservations.

        The event is due in the middle of the remaining time of the lease, and
        only for the added reservations: the actions of the other reservations
        stay done.
        """
        known = {r.id for r in old.reservations}
        if _is_undone(new) or not any(
            before_end_actions.requested_action(self._conf, r)
            for r in new.reservations
            if r.id not in known
        ):
            return new
        left = new.left(now)
        endless = left.end == FOREVER
        at = now if endless else (left.start + left.end) // 2
        late = dataclasses.replace(
            new, events=event.announce_again(new.events, at, now)
        )
        return dataclasses.replace(
            late,
            reservations=tuple(
                _still_done(r, new.ending, late.ending)
                for r in late.reservations
            ),
        )

    def _changed_reservations(
        self, old: Lease, changes: Sequence[Mapping[str, Any]], now: int
    ) -> tuple[Reservation, ...]:
        by_id = {r.id: r for r in old.reservations}
        for values in changes:
            if 'id' not in values and values.keys() & NEW:
                new = self._new_reservation(
                    old.id, old.project_id, values, now
                )
                by_id[new.id] = new
                continue
            known = by_id.get(values.get('id') or '')
            if known is None:
                raise exception.InvalidInput(
                    'each changed reservation must have the id of a '
                    'reservation of the lease',
                    field='reservations',
                )
            if values.get('remove'):
                del by_id[known.id]
                continue
            by_id[known.id] = self._changed_reservation(
                old, known, values, now
            )
        if old.is_lifetime and len(by_id) != 1:
            raise exception.CantUpdateParameter(
                "the lease of a server's lifetime has exactly one reservation",
                field='reservations',
            )
        return _checked(by_id.values(), old.reservations)

    def _changed_reservation(
        self, lease: Lease, old: Reservation, values: Mapping[str, Any],
        now: int,
    ) -> Reservation:
        changes = {
            k: v for k, v in self._filled_in(values, lease.project_id).items()
            if k not in ('id', 'remove')
        }
        is_sized = changes.pop(PRODUCT, None) == old.product
        if changes.pop('resource_type', old.resource_type) != (
            old.resource_type
        ):
            raise exception.CantUpdateParameter(
                'resource_type cannot be changed', field='resource_type'
            )
        use = take_use(old.resource_type, changes)
        new = dataclasses.replace(
            old,
            demand=self._drivers[old.resource_type].update(
                old.demand, changes, lease.status == states.LEASE_ACTIVE,
                lease.project_id,
            ),
            **use,
        )
        if old.product and not is_sized and new.demand.kind != old.demand.kind:
            raise exception.CantUpdateParameter(
                f'the reservation is of {old.product}: only the number of '
                'units can be changed',
                field='reservations',
            )
        return new if new == old else dataclasses.replace(new, updated_at=now)


def plan(
    conf: Any, lease_id: str, window: Window, before_end: int | str | None,
    now: int, after_start: bool = False,
) -> tuple[Event, ...]:
    """Return the events of a new lease.

    :param conf: the manager's group of options
    :param before_end: when the owner is notified of the end; None for never,
        DEFAULT for the operator's setting
    :param after_start: whether something is done once the lease has started
    :raises InvalidInput: if `before_end` is not inside the window
    """
    return event.plan(
        lease_id, window, _before_end(conf, before_end, window), now,
        vacate=_vacate(conf, window, now), after_start=after_start,
    )


def acts_on_start(reservations: Iterable[Reservation]) -> bool:
    return any(r.demand.on_start for r in reservations)


def _before_end(
    conf: Any, asked: int | str | None, window: Window
) -> int | None:
    if isinstance(asked, str):
        # DEFAULT: no other value is a string.
        seconds = 60 * conf.minutes_before_end_lease
        if not seconds or window.end == FOREVER:
            return None
        # At its start a lease has no servers yet to make an image of.
        ahead = seconds if seconds < window.duration else window.duration // 2
        return window.end - ahead
    if asked is not None and not window.start <= asked <= window.end:
        raise exception.InvalidInput(
            'before_end_date must be inside the lease', field='before_end_date'
        )
    return asked


def _check_actions(old: Lease, new: Lease) -> None:
    """Refuse a change of a reservation's action once it was done."""
    known = {r.id: r.demand for r in old.reservations}
    for when, is_open in (
        (BEFORE_END, _is_undone(new)),
        (ON_START, old.status == states.LEASE_PENDING),
    ):
        for r in () if is_open else new.reservations:
            before = known.get(r.id, r.demand)
            if getattr(r.demand, when) != getattr(before, when):
                raise exception.CantUpdateParameter(
                    f'{when} cannot be changed after its action was done',
                    field=when,
                )


def _is_undone(lease: Lease) -> bool:
    """Tell whether every before_end_lease event of a lease is undone."""
    return all(
        e.status == states.EVENT_UNDONE
        for e in lease.events
        if e.event_type == event.BEFORE_END_LEASE
    )


def _still_done(reservation: Reservation, old: str, new: str) -> Reservation:
    """Return a reservation whose done action also counts for a new end.

    :param old: the `ending` of the lease for which the action was done
    :param new: the `ending` for which the action is also to count
    """
    action, done_for = reservation.made.get(BEFORE_END, (None, None))
    if done_for != old:
        return reservation
    made = {**reservation.made, BEFORE_END: [action, new]}
    return dataclasses.replace(reservation, made=made)


def check_announced(new: Lease, old: Lease | None = None) -> None:
    """Refuse a requested action for which no time is scheduled."""
    if new.before_end is not None or new.end == FOREVER:
        return
    known = {
        r.id: r.demand.before_end for r in (old.reservations if old else ())
    }
    for r in new.reservations:
        asked = r.demand.before_end
        if asked not in (
            before_end_actions.NOTHING, DEFAULT_BEFORE_END, known.get(r.id)
        ):
            raise exception.InvalidInput(
                f'before_end {asked!r} needs a before_end_date: this cloud '
                'has no default',
                field='before_end_date',
            )


def _vacate(conf: Any, window: Window, now: int) -> int | None:
    """Return when the vacating of a lease's hosts begins.

    None for a lease that starts now: its start clears the hosts as far as
    possible.
    """
    lead_time: int = conf.vacate_lead_time
    if window.start <= now or not lead_time:
        return None
    return max(now, window.start - lead_time)


def _checked(
    reservations: Iterable[Reservation], old: Collection[Reservation] = ()
) -> tuple[Reservation, ...]:
    """Return the checked reservations of a lease.

    :param old: the reservations before a change
    :raises InvalidInput: if there are too many reservations; if some
        reservations are not as in `old`, also if their requirements are too
        large, or if the reservations are shared with too many projects or
        have too many labels
    """
    all_ = tuple(reservations)
    known = {reservation.id: reservation for reservation in old}
    if len(all_) > MAX_RESERVATIONS:
        raise exception.InvalidInput(
            f'a lease can have at most {MAX_RESERVATIONS} reservations',
            field='reservations',
        )
    if any(known.get(each.id) != each for each in all_):
        demand.check_size(r.demand for r in all_)
        _check_shared(all_)
        if sum(len(r.labels) for r in all_) > MAX_OF_RESERVATIONS:
            raise exception.InvalidInput(
                'the reservations of a lease can have at most '
                f'{MAX_OF_RESERVATIONS} labels in total',
                field='labels',
            )
    return all_


def _check_shared(reservations: Iterable[Reservation]) -> None:
    """Refuse to share a lease with too many projects.

    :raises InvalidInput: naming `projects`
    """
    shared = {
        project_id
        for reservation in reservations
        for project_id in reservation.projects
    }
    if len(shared) > MAX_PROJECTS:
        raise exception.InvalidInput(
            'the reservations of a lease can be shared with at most '
            f'{MAX_PROJECTS} different projects in total',
            field='projects',
        )
