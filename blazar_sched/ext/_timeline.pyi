# SPDX-License-Identifier: Apache-2.0
"""The compiled twin has the types of the plain one."""

from blazar_sched.ext.host_state import unconfirmed as unconfirmed
from blazar_sched.ext.timeline import TimelineIndex as TimelineIndex

def _is_compiled() -> bool: ...
