# SPDX-License-Identifier: Apache-2.0
"""The timeline index: the compiled implementation or its plain-Python twin.

The twin is used if ``BLAZAR_SCHED_PURE_PYTHON=1`` is set in the environment or
if the extension modules are missing. ``is_compiled()`` says which one is used.
"""

import os

from blazar_sched.ext.errors import AMOUNT_LIMIT
from blazar_sched.ext.errors import AmountOverflow
from blazar_sched.ext.errors import CLASSES_LIMIT
from blazar_sched.ext.errors import DamagedSnapshot
from blazar_sched.ext.errors import EntryExists
from blazar_sched.ext.errors import FOREVER
from blazar_sched.ext.errors import HostInUse
from blazar_sched.ext.errors import InvalidAmount
from blazar_sched.ext.errors import InvalidChange
from blazar_sched.ext.errors import InvalidColumn
from blazar_sched.ext.errors import InvalidName
from blazar_sched.ext.errors import InvalidWindow
from blazar_sched.ext.errors import OverCapacity
from blazar_sched.ext.errors import TIME_LIMIT
from blazar_sched.ext.errors import TimelineError
from blazar_sched.ext.errors import UnknownEntry
from blazar_sched.ext.errors import UnknownHost

try:
    if os.environ.get('BLAZAR_SCHED_PURE_PYTHON', '') not in ('', '0'):
        raise ImportError('the plain-Python index is requested')
    from blazar_sched.ext._host_state import unconfirmed
    from blazar_sched.ext._timeline_index import _is_compiled as is_compiled
    from blazar_sched.ext._timeline_index import TimelineIndex
except ImportError:
    from blazar_sched.ext.host_state import unconfirmed
    from blazar_sched.ext.timeline_index import _is_compiled as is_compiled
    from blazar_sched.ext.timeline_index import TimelineIndex

__all__ = [
    'AMOUNT_LIMIT',
    'AmountOverflow',
    'CLASSES_LIMIT',
    'DamagedSnapshot',
    'EntryExists',
    'FOREVER',
    'HostInUse',
    'InvalidAmount',
    'InvalidChange',
    'InvalidColumn',
    'InvalidName',
    'InvalidWindow',
    'OverCapacity',
    'TIME_LIMIT',
    'TimelineError',
    'TimelineIndex',
    'UnknownEntry',
    'UnknownHost',
    'is_compiled',
    'unconfirmed',
]
