# SPDX-License-Identifier: Apache-2.0
"""The base of the parts of the Nova client."""

import functools
from typing import TYPE_CHECKING

from keystoneauth1 import adapter

from blazar_sched.service.clients import rest

if TYPE_CHECKING:
    from openstack.compute.v2._proxy import Proxy

# The last microversion before hypervisors lose cpu_info.
MICROVERSION = '2.87'


class Compute:
    """A client of the compute API.

    :param api: a keystoneauth adapter for the compute service of an admin;
        None where no cloud is configured
    """

    def __init__(self, api: adapter.Adapter | None) -> None:
        self._api = api

    @functools.cached_property
    def _compute(self) -> 'Proxy':
        compute: Proxy = rest.connect(self._api, 'compute', MICROVERSION)
        return compute
