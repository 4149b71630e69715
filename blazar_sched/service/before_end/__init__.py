# SPDX-License-Identifier: Apache-2.0
"""The actions that reservations request, most before the end of a lease.

Actions are found by their entry points: see `base.Action`, the base class of
actions. Any package can add an action by an entry point in NAMESPACE, named as
reservations request the action; a part has its actions in `ACTIONS` of its
module ``before_end``.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from oslo_config import cfg
import stevedore

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.demand import BEFORE_END
from blazar_sched.domain.demand import DEFAULT_BEFORE_END
from blazar_sched.domain.demand import Demand
from blazar_sched.domain.demand import ON_START
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import FAILED
from blazar_sched.domain.reservation import Reservation
from blazar_sched.service import entry_points
from blazar_sched.service import parts
from blazar_sched.service.before_end import base
from blazar_sched.service.clients.keystone import Keystone
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import Tx

NAMESPACE = 'blazar_sched.before_end'
# The name by which a reservation requests no action.
NOTHING = ''

# `missing_option` can be called on an action or on its class.
_ByName = Mapping[str, base.Action | type[base.Action]]


class Actions:
    """The actions by their names.

    :raises ValueError: if the default action of the operator, [manager]
        before_end, cannot be done
    """

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger, nova: Nova,
        keystone: Keystone,
    ) -> None:
        self._conf = conf
        self._ledger = ledger
        self._actions = {
            name: plugin(conf, nova, keystone)
            for name, plugin in _plugins(conf).items()
        }
        _check_default(self._actions, conf)

    def check(self, demand: Demand, known: Demand | None = None) -> None:
        """Return if a reservation may request its actions; refuse otherwise.

        :param known: the demand of the reservation so far, whose actions
            always stay allowed
        :raises InvalidInput: if there is no action of that name, or if the
            operator has not set an option that the action needs
        """
        at_start = (n for n, each in self._actions.items() if each.at_start)
        for when, names in (
            (BEFORE_END, (DEFAULT_BEFORE_END, *sorted(self._actions))),
            (ON_START, sorted(at_start)),
        ):
            asked = getattr(demand, when)
            allowed = (NOTHING, *names)
            if asked not in allowed:
                raise exception.InvalidInput(
                    f'{when} must be one of {", ".join(map(repr, allowed))}',
                    field=when,
                )
            if asked != getattr(known, when, None) and (
                action := self._actions.get(asked)
            ) and action.missing_option(self._conf):
                raise exception.InvalidInput(
                    f'{when} {asked!r} is not configured in this cloud',
                    field=when,
                )

    def act(
        self, when: str, lease: Lease, reservation: Reservation,
        servers: base.Servers,
    ) -> str | None:
        """Do a reservation's action, unless it was done for this end or start.

        :param when: ON_START or BEFORE_END
        :returns: what the action still waits for, None if it waits for nothing
        :raises Unavailable: if the action is to be tried again
        :raises Impossible: if the action cannot be done any more
        """
        name = requested_action(self._conf.manager, reservation, when)
        if name == NOTHING:
            return None
        lacking = _why_unavailable(self._actions, name, self._conf)
        if lacking:
            raise exception.Unavailable(f'{when} {name!r}: {lacking}')
        action = self._actions[name]
        together = [reservation]
        if action.once:
            together = [
                r
                for r in lease.reservations
                if r.status == states.RESERVATION_ACTIVE
                and requested_action(self._conf.manager, r, when) == name
            ]
        starts = when == ON_START
        done = [name, str(lease.start) if starts else lease.ending]
        if reservation is not together[0] or any(
            r.made.get(when) == done for r in together
        ):
            return None
        if starts:
            waiting = action.start(lease)
        else:
            waiting = action.act(lease, reservation, servers)
        if waiting is None:
            self._note(when, together, done)
        return waiting

    def _note(
        self, when: str, reservations: Iterable[Reservation],
        done: Sequence[str],
    ) -> None:
        """Record that the action is done, for later tries of the event."""

        def work(tx: Tx) -> None:
            for r in reservations:
                made = {**r.made, when: done}
                made.pop(FAILED[when], None)
                tx.set_reservations_made({r.id: made})

        self._ledger.write(work)


def requested_action(
    conf: cfg.ConfigOpts.GroupAttr, reservation: Reservation,
    when: str = BEFORE_END,
) -> str:
    """Return the name of the action that a reservation requests.

    NOTHING for a reservation that is not on hosts, and for a server's own
    lifetime.

    :param conf: the manager's group of options
    :param when: ON_START or BEFORE_END
    """
    name = getattr(reservation.demand, when)
    return str(conf.before_end if name == DEFAULT_BEFORE_END else name)


def check_default(conf: cfg.ConfigOpts) -> None:
    """Refuse the default action of the operator, if it cannot be done.

    :raises ValueError: saying why
    """
    _check_default(_plugins(conf), conf)


def _check_default(actions: _ByName, conf: cfg.ConfigOpts) -> None:
    name = conf.manager.before_end
    lacking = name and _why_unavailable(actions, name, conf)
    if lacking:
        raise ValueError(f'[manager] before_end = {name}: {lacking}')


def _why_unavailable(
    actions: _ByName, name: str, conf: cfg.ConfigOpts
) -> str | None:
    """Return why an action cannot be done, None if it can be done."""
    if name not in actions:
        return f'the actions are {", ".join(sorted(actions))}'
    option = actions[name].missing_option(conf)
    return option and f'{option} is not set'


def _plugins(conf: cfg.ConfigOpts) -> dict[str, type[base.Action]]:
    found: stevedore.ExtensionManager[base.Action]
    found = stevedore.ExtensionManager(
        NAMESPACE, on_load_failure_callback=entry_points.refuse
    )
    plugins = {each.name: each.plugin for each in found}
    for of_part in parts.each('before_end', 'ACTIONS', parts.running(conf)):
        plugins |= of_part
    return plugins
