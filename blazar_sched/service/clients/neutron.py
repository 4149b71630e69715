# SPDX-License-Identifier: Apache-2.0
"""Neutron, as far as reservations need it: floating IPs.

Whatever is made or removed here may be made or removed twice.
"""

from keystoneauth1 import adapter

from blazar_sched.service.clients import rest


class Neutron:
    """A client of the network API.

    :param api: a keystoneauth adapter for the network service of an admin;
        None where none is configured
    """

    def __init__(self, api: adapter.Adapter | None) -> None:
        self._rest = rest.Rest('network', api, None)
