# SPDX-License-Identifier: Apache-2.0
"""Floating IPs: what the operator registers as reservable."""

from collections.abc import Callable
import uuid

from blazar_sched.domain import floating_ip
from blazar_sched.domain.floating_ip import FloatingIP
from blazar_sched.service.clients.neutron import Neutron
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import Tx


class FloatingIPs:
    """The reservable floating IPs.

    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self,
        ledger: Ledger,
        neutron: Neutron,
        clock: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._neutron = neutron
        self._clock = clock

    def create(self, network_id: str, address: str) -> FloatingIP:
        """Register an address of an external network.

        :raises InvalidInput: if it is no address, or one that Neutron may
            give to others
        :raises NotFound: if Neutron has no such external network, or no
            subnet of it has the address
        :raises FloatingIPExists: if it is registered already
        :raises Unavailable: if there is no cloud, or none that answers
        """
        address = floating_ip.parse(address)
        subnet = floating_ip.find_subnet(
            address, self._neutron.subnets(network_id)
        )
        new = FloatingIP(
            id=str(uuid.uuid4()),
            # As Neutron spells it, which may take it in other letters too.
            network_id=subnet.network_id,
            subnet_id=subnet.id,
            address=address,
            created_at=int(self._clock()),
        )

        def work(tx: Tx) -> None:
            tx.add_floating_ip(new)

        self._ledger.write(work)
        return new

    def delete(self, floating_ip_id: str) -> None:
        """Forget a floating IP.

        :raises FloatingIPNotFound: if there is none of that id
        :raises CantDeleteFloatingIP: while it is allocated
        """

        def work(tx: Tx) -> None:
            tx.delete_floating_ip(floating_ip_id)

        self._ledger.write(work)
