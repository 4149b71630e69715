# SPDX-License-Identifier: Apache-2.0
"""What is done before the end of a lease, as its reservations ask for.

Actions are found by their entry points: see `base.Action`, which they
extend. A package of anybody's adds one by an entry point in NAMESPACE, named
as reservations ask for it.
"""

from oslo_config import cfg
import stevedore

from blazar_sched.domain import exception
from blazar_sched.domain import lease as lease_
from blazar_sched.domain import reservation as reservation_
from blazar_sched.domain import states
from blazar_sched.service import extension
from blazar_sched.service.before_end import base
from blazar_sched.service.clients import keystone as keystone_
from blazar_sched.service.clients import nova as nova_
from blazar_sched.service.ledger import ledger as ledger_

NAMESPACE = 'blazar_sched.before_end'
# By which a reservation asks for no action.
NOTHING = ''


class Actions:
    """The actions by their names.

    :raises ValueError: if the operator's own, [manager] before_end, cannot
        be done
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        ledger: ledger_.Ledger,
        nova: nova_.Nova,
        keystone: keystone_.Keystone,
    ) -> None:
        check_default(conf)
        self._conf = conf
        self._ledger = ledger
        self._plugins = _plugins()
        self._actions = {
            name: plugin(conf, nova, keystone)
            for name, plugin in self._plugins.items()
        }

    def check(self, asked: object, known: object = None) -> None:
        """Pass if a reservation may ask for an action.

        :param known: what it has asked for before, which it may for ever
        :raises InvalidInput: if there is none by that name, or if the
            operator has not set what it needs
        """
        names = (NOTHING, reservation_.DEFAULT, *sorted(self._plugins))
        if asked not in names:
            raise exception.InvalidInput(
                f'before_end must be one of {", ".join(map(repr, names))}',
                field=reservation_.BEFORE_END,
            )
        plugin = self._plugins.get(str(asked))
        if asked != known and plugin and plugin.lacks(self._conf):
            raise exception.InvalidInput(
                f'before_end {asked!r} is not set up in this cloud',
                field=reservation_.BEFORE_END,
            )

    def act(
        self,
        lease: lease_.Lease,
        reservation: reservation_.Reservation,
        servers: base.Servers,
    ) -> None:
        """Do what a reservation of a lease asks for, if it has not been.

        :raises Unavailable: if it is to be tried again
        """
        name = self._asked(reservation)
        if name == NOTHING:
            return
        lacking = _lacking(self._plugins, name, self._conf)
        if lacking:
            raise exception.Unavailable(f'before_end {name!r}: {lacking}')
        action = self._actions[name]
        if not action.once:
            action.act(lease, reservation, servers)
        elif self._is_due(lease, reservation, name):
            action.act(lease, reservation, servers)
            self._note(lease, reservation, name)

    def _asked(self, reservation: reservation_.Reservation) -> str:
        """Return the name of the action; a server's lifetime has none."""
        asked = reservation.parameters.get(reservation_.BEFORE_END, NOTHING)
        if asked == reservation_.DEFAULT:
            asked = self._conf.manager.before_end
        return str(asked)

    def _is_due(
        self,
        lease: lease_.Lease,
        reservation: reservation_.Reservation,
        name: str,
    ) -> bool:
        """Tell whether what is done once is to be done, for this one."""
        first = next(
            r
            for r in lease.reservations
            if r.status == states.RESERVATION_ACTIVE
            and self._asked(r) == name
        )
        done = reservation.made.get(reservation_.BEFORE_END)
        return reservation.id == first.id and done != [name, lease.before_end]

    def _note(
        self,
        lease: lease_.Lease,
        reservation: reservation_.Reservation,
        name: str,
    ) -> None:
        """Have it known to whoever tries the event again."""
        done = {reservation_.BEFORE_END: [name, lease.before_end]}
        made = {**reservation.made, **done}
        self._ledger.commit(
            lambda tx: tx.set_reservation_made(reservation.id, made),
            placing=False,
        )


def check_default(conf: cfg.ConfigOpts) -> None:
    """Refuse the operator's own action, if it cannot be done.

    :raises ValueError: saying why
    """
    name = conf.manager.before_end
    lacking = name and _lacking(_plugins(), name, conf)
    if lacking:
        raise ValueError(f'[manager] before_end = {name}: {lacking}')


def _lacking(
    plugins: dict[str, type[base.Action]], name: str, conf: cfg.ConfigOpts
) -> str | None:
    """Say why an action cannot be done, None if it can."""
    if name not in plugins:
        return f'there are {", ".join(sorted(plugins))}'
    option = plugins[name].lacks(conf)
    return option and f'{option} is not set'


def _plugins() -> dict[str, type[base.Action]]:
    found = stevedore.ExtensionManager(
        NAMESPACE, on_load_failure_callback=extension.refuse
    )
    return {each.name: each.plugin for each in found}
