# SPDX-License-Identifier: Apache-2.0
"""Floating IPs: what the operator registers as reservable."""

from collections.abc import Callable
import uuid

from blazar_sched.domain import floating_ip as floating_ip_
from blazar_sched.service.clients import neutron as neutron_
from blazar_sched.service.ledger import ledger as ledger_
from blazar_sched.service.ledger.tx import Tx


class FloatingIPs:
    """The reservable floating IPs.

    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self,
        ledger: ledger_.Ledger,
        neutron: neutron_.Neutron,
        clock: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._neutron = neutron
        self._clock = clock

    def create(self, network_id: str, address: str) -> floating_ip_.FloatingIP:
        """Register an address of an external network.

        :raises InvalidInput: if it is no address, or one that Neutron may
            give to others
        :raises NotFound: if Neutron has no such external network, or no
            subnet of it has the address
        :raises FloatingIPExists: if it is registered already
        :raises Unavailable: if there is no cloud, or none that answers
        """
        address = floating_ip_.parse(address)
        subnet = floating_ip_.find_subnet(
            address, self._neutron.subnets(network_id)
        )
        new = floating_ip_.FloatingIP(
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
