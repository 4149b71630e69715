# SPDX-License-Identifier: Apache-2.0
"""Options of the client of Placement, which keystoneauth defines.

Without ``auth_type`` there is no cloud, and requests that need a cloud are
refused.
"""


from blazar_sched.conf import client

GROUP = 'placement'

opts = client.options(service_type='placement')
