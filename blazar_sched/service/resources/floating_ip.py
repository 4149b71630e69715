# SPDX-License-Identifier: Apache-2.0
"""``virtual:floatingip``: addresses of an external network.

The addresses are chosen when the lease is written, from the addresses that the
operator has registered. In the window of the lease the project has the
addresses as floating IPs.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain import floating_ip as floating_ip_rules
from blazar_sched.domain.demand import Addresses
from blazar_sched.domain.demand import Demand
from blazar_sched.domain.floating_ip import find_subnet
from blazar_sched.domain.floating_ip import FloatingIP
from blazar_sched.domain.floating_ip import Subnet
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import Window
from blazar_sched.placing import floating_ip as placing
from blazar_sched.service.clients import neutron
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.ledger.tx import Tx
from blazar_sched.service.resources import base
from blazar_sched.service.resources.base import Part
from blazar_sched.service.resources.parameters import check_integer
from blazar_sched.service.resources.parameters import check_names

LOG = log.getLogger(__name__)

_REQUIRED = 'required_floatingips'
_DEFAULTS = {'network_id': None, 'amount': None, _REQUIRED: ()}
_MAX_ID = 36


class FloatingIPResource(base.Resource):
    """The driver of ``virtual:floatingip``."""

    def validate(
        self, parameters: Mapping[str, Any], project_id: str
    ) -> Addresses:
        """Return the demand of a new reservation.

        :raises InvalidInput: naming the parameter that is wrong
        """
        complete = check_names(parameters, _DEFAULTS)
        network_id = complete['network_id']
        if not isinstance(network_id, str) or not (
            0 < len(network_id) <= _MAX_ID
        ):
            raise exception.InvalidInput(
                "network_id must be an external network's id",
                field='network_id',
            )
        check_integer(complete, 'amount', 1)
        return Addresses(network_id, complete['amount'], _required(complete))

    def update(
        self, demand: Demand, changes: Mapping[str, Any], active: bool,
        project_id: str,
    ) -> Addresses:
        """Return the changed demand.

        :raises CantUpdateParameter: for another network; for required
            addresses, unless they are given up; for a smaller amount in an
            active lease
        :raises InvalidInput: naming the parameter that is wrong
        """
        known = demand.encode()
        new = self.validate({**known, **changes}, project_id)
        if new.network_id != known['network_id']:
            raise exception.CantUpdateParameter(
                'network_id cannot be changed', field='network_id'
            )
        if new.required and list(new.required) != known[_REQUIRED]:
            raise exception.CantUpdateParameter(
                f'{_REQUIRED} can only be changed to []', field=_REQUIRED
            )
        if active and new.amount < demand.least:
            raise exception.CantUpdateParameter(
                'amount cannot be reduced in an active lease', field='amount'
            )
        return new

    def book(
        self, tx: PlacingTx, lease: Lease, reservation: Reservation,
        window: Window, settled: bool = False,
    ) -> None:
        """Allocate as many addresses as are reserved.

        An active reservation keeps its addresses; another reservation gets its
        required addresses, and otherwise keeps its addresses as far as
        possible.

        :raises NotEnoughFloatingIPAvailable: if there are too few addresses
        """
        held = tx.floating_ips(reservation.id)
        if settled:
            chosen = held
        else:
            network = reservation.demand.of_kind(Addresses).network_id
            free = tx.free_floating_ips(network, window, reservation.id)
            if not free and not tx.floating_ip_uses([network], window.start):
                raise exception.NotEnoughFloatingIPAvailable(
                    f'no floating IP of network {network} is registered',
                    field='network_id',
                )
            chosen = placing.place(lease, reservation, held, free)
        tx.put_floating_ip_allocations(
            reservation.id, [f.id for f in chosen], window
        )

    def start(self, part: Part, now: int) -> base.Opened:
        """Make the floating IPs in the project of the lease.

        An address that Neutron may by now have given to others, given its
        current subnets, or has given to others, is replaced by a free address.

        :returns: degraded, if there are too few floating IPs, or if a required
            address is missing
        """
        lease, reservation = part.lease, part.reservation
        demand = reservation.demand.of_kind(Addresses)
        subnets = self._neutron.subnets(demand.network_id)
        found = {f.address: f for f in self._made(lease, reservation)}
        made = [
            found.get(wanted.address)
            or self._make(lease, reservation, wanted, subnets, now)
            for wanted in self._ledger.floating_ips(reservation.id)
        ]
        opened = [f for f in made if f is not None]
        for floating_ip in opened:
            self._neutron.tag_floating_ip(
                floating_ip, ('blazar', f'reservation:{reservation.id}')
            )
        missing = len(opened) < demand.amount
        return base.Opened(
            degraded=missing or lacks_required(reservation, opened),
            made={'floating_ips': sorted(f.id for f in opened)},
            missing_resources=missing,
        )

    def end(self, part: Part) -> bool:
        """Delete the floating IPs.

        :returns: True: nothing is left
        """
        lease, reservation = part.lease, part.reservation
        for floating_ip in self._made(lease, reservation):
            self._neutron.delete_floating_ip(floating_ip.id)
        return True

    def _made(
        self, lease: Lease, reservation: Reservation
    ) -> list[neutron.FloatingIP]:
        """Return the existing floating IPs made for the reservation."""
        return [
            floating_ip
            for floating_ip in self._neutron.floating_ips(
                project_id=lease.project_id,
                floating_network_id=(
                    reservation.demand.of_kind(Addresses).network_id
                ),
            )
            if is_made_for(reservation, floating_ip)
        ]

    def _make(
        self, lease: Lease, reservation: Reservation, allocated: FloatingIP,
        subnets: Sequence[Subnet], now: int,
    ) -> neutron.FloatingIP | None:
        """Make an allocated floating IP, or a free one in its place."""
        wanted: FloatingIP | None = allocated
        refused: set[str] = set()
        while wanted is not None:
            try:
                find_subnet(wanted.address, subnets)
                made = self._neutron.create_floating_ip(
                    wanted.network_id, wanted.address, lease.project_id,
                    _description(reservation),
                )
            except (exception.InvalidInput, exception.NotFound) as e:
                LOG.warning(
                    'Could not create a floating IP for reservation %s: %s',
                    reservation.id, e,
                )
                made = None
            except exception.Conflict as e:
                LOG.warning(
                    'Could not create a floating IP for reservation %s: %s',
                    reservation.id, e,
                )
                return None
            if made is not None:
                return made
            refused.add(wanted.id)
            wanted = self._replace(lease, reservation, wanted, refused, now)
        return None

    def _replace(
        self, lease: Lease, reservation: Reservation, broken: FloatingIP,
        refused: Collection[str], now: int,
    ) -> FloatingIP | None:
        """Allocate a free floating IP in place of a broken floating IP.

        :returns: None if there is no free floating IP, or if the reservation
            no longer has the broken floating IP
        """
        window = lease.left(now)

        def work(tx: Tx) -> FloatingIP | None:
            kept = {f.id for f in tx.floating_ips(reservation.id)}
            free = [
                f
                for f in tx.free_floating_ips(
                    broken.network_id, window, reservation.id
                )
                if f.id not in kept and f.id not in refused
            ]
            if broken.id not in kept or not free:
                return None
            new: FloatingIP = free[0]
            tx.put_floating_ip_allocations(
                reservation.id, kept - {broken.id} | {new.id}, window
            )
            return new

        return self._ledger.write(work)


def lacks_required(
    reservation: Reservation, held: Iterable[FloatingIP | neutron.FloatingIP]
) -> bool:
    """Tell whether a required address of a reservation is not held."""
    required = reservation.demand.of_kind(Addresses).required
    return not {f.address for f in held}.issuperset(required)


def is_made_for(
    reservation: Reservation, floating_ip: neutron.FloatingIP
) -> bool:
    """Tell whether a floating IP of the project was made for a reservation.

    A start that crashed has kept no ids, and the project may have changed the
    description: either match is sufficient.
    """
    return (
        floating_ip.id in reservation.made.get('floating_ips', ())
        or floating_ip.description == _description(reservation)
    )


def _description(reservation: Reservation) -> str:
    return f'blazar reservation {reservation.id}'


def _required(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the required addresses, each in its stored form.

    :raises InvalidInput: if an entry is not an address, or there are too many
    """
    asked = parameters[_REQUIRED]
    if not isinstance(asked, list | tuple):
        raise exception.InvalidInput(
            f'{_REQUIRED} must be a list', field=_REQUIRED
        )
    required = tuple(
        floating_ip_rules.parse(text, _REQUIRED) for text in asked
    )
    if len(set(required)) < len(required):
        raise exception.InvalidInput(
            f'{_REQUIRED} must be different addresses', field=_REQUIRED
        )
    if len(required) > parameters['amount']:
        raise exception.InvalidInput(
            f'{_REQUIRED} must not have more addresses than amount',
            field=_REQUIRED,
        )
    return required
