# SPDX-License-Identifier: Apache-2.0
"""The compiled index has the types of the plain-Python one."""

from blazar_sched.ext.timeline_index import TimelineIndex as TimelineIndex

def _is_compiled() -> bool: ...
