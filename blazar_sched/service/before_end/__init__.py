# SPDX-License-Identifier: Apache-2.0
"""What is done before the end of a lease, as its reservations ask for.

Actions are found by their entry points: see `base.Action`, which they
extend. A package of anybody's adds one by an entry point in NAMESPACE, named
as reservations ask for it.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from oslo_config import cfg
import stevedore

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import BEFORE_END
from blazar_sched.domain.reservation import BEFORE_END_FAILED
from blazar_sched.domain.reservation import DEFAULT_BEFORE_END
from blazar_sched.domain.reservation import Reservation
from blazar_sched.service import extension
from blazar_sched.service.before_end import base
from blazar_sched.service.clients.keystone import Keystone
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import Tx

NAMESPACE = 'blazar_sched.before_end'
# By which a reservation asks for no action.
NOTHING = ''

# What an action lacks can be asked before there is one.
_ByName = Mapping[str, base.Action | type[base.Action]]


class Actions:
    """The actions by their names.

    :raises ValueError: if the operator's own, [manager] before_end, cannot
        be done
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        ledger: Ledger,
        nova: Nova,
        keystone: Keystone,
    ) -> None:
        self._conf = conf
        self._ledger = ledger
        self._actions = {
            name: plugin(conf, nova, keystone)
            for name, plugin in _plugins().items()
        }
        _check_default(self._actions, conf)

    def check(self, asked: object, known: object = None) -> None:
        """Pass if a reservation may ask for an action.

        :param known: what it has asked for before, which it may for ever
        :raises InvalidInput: if there is none by that name, or if the
            operator has not set what it needs
        """
        names = (NOTHING, DEFAULT_BEFORE_END, *sorted(self._actions))
        if asked not in names:
            raise exception.InvalidInput(
                f'before_end must be one of {", ".join(map(repr, names))}',
                field=BEFORE_END,
            )
        action = self._actions.get(str(asked))
        if asked != known and action and action.lacks(self._conf):
            raise exception.InvalidInput(
                f'before_end {asked!r} is not set up in this cloud',
                field=BEFORE_END,
            )

    def act(
        self,
        lease: Lease,
        reservation: Reservation,
        servers: base.Servers,
    ) -> str | None:
        """Do what a reservation asks for, if it was not done for this end.

        :returns: what is still to be waited for, None if nothing is
        :raises Unavailable: if it is to be tried again
        :raises Impossible: if it cannot be done any more
        """
        name = asked(self._conf.manager, reservation)
        if name == NOTHING:
            return None
        lacking = _lacking(self._actions, name, self._conf)
        if lacking:
            raise exception.Unavailable(f'before_end {name!r}: {lacking}')
        action = self._actions[name]
        together = [reservation]
        if action.once:
            together = [
                r
                for r in lease.reservations
                if r.status == states.RESERVATION_ACTIVE
                and asked(self._conf.manager, r) == name
            ]
        done = [name, lease.ending]
        if reservation is not together[0] or any(
            r.made.get(BEFORE_END) == done for r in together
        ):
            return None
        waiting = action.act(lease, reservation, servers)
        if waiting is None:
            self._note(together, done)
        return waiting

    def _note(
        self,
        reservations: Iterable[Reservation],
        done: Sequence[str],
    ) -> None:
        """Have it known to whoever tries the event again."""

        def work(tx: Tx) -> None:
            for r in reservations:
                made = {**r.made, BEFORE_END: done}
                made.pop(BEFORE_END_FAILED, None)
                tx.set_reservation_made(r.id, made)

        self._ledger.write(work)


def asked(
    conf: cfg.ConfigOpts.GroupAttr, reservation: Reservation
) -> str:
    """Return the name of the action that a reservation asks for.

    NOTHING for one that is not on hosts, and for a server's own lifetime.

    :param conf: the manager's group of options
    """
    name = reservation.parameters.get(BEFORE_END, NOTHING)
    return str(conf.before_end if name == DEFAULT_BEFORE_END else name)


def check_default(conf: cfg.ConfigOpts) -> None:
    """Refuse the operator's own action, if it cannot be done.

    :raises ValueError: saying why
    """
    _check_default(_plugins(), conf)


def _check_default(actions: _ByName, conf: cfg.ConfigOpts) -> None:
    name = conf.manager.before_end
    lacking = name and _lacking(actions, name, conf)
    if lacking:
        raise ValueError(f'[manager] before_end = {name}: {lacking}')


def _lacking(
    actions: _ByName, name: str, conf: cfg.ConfigOpts
) -> str | None:
    """Say why an action cannot be done, None if it can."""
    if name not in actions:
        return f'there are {", ".join(sorted(actions))}'
    option = actions[name].lacks(conf)
    return option and f'{option} is not set'


def _plugins() -> dict[str, type[base.Action]]:
    found: stevedore.ExtensionManager[base.Action]
    found = stevedore.ExtensionManager(
        NAMESPACE, on_load_failure_callback=extension.refuse
    )
    return {each.name: each.plugin for each in found}
