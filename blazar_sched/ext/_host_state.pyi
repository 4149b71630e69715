# SPDX-License-Identifier: Apache-2.0
"""The compiled function has the types of the plain-Python one."""

from blazar_sched.ext.host_state import unconfirmed as unconfirmed
