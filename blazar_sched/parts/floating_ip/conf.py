# SPDX-License-Identifier: Apache-2.0
"""Options of the client of Neutron, which keystoneauth defines.

Without ``auth_type`` no floating IPs can be reserved.
"""

from blazar_sched.conf import client

GROUP = 'neutron'
OPTIONS = {GROUP: client.options(service_type='network')}
CLIENTS = (GROUP,)
