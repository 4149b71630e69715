# SPDX-License-Identifier: Apache-2.0
"""Keystone, as far as reservations need it: trusts."""

from keystoneauth1 import adapter

from blazar_sched.service.clients import rest


class Keystone:
    """A client of the identity API.

    :param api: a keystoneauth adapter for the identity service, of the user
        that trusts are made for; None where none is configured
    """

    def __init__(self, api: adapter.Adapter | None) -> None:
        self._rest = rest.Rest('identity', api, None)
