# SPDX-License-Identifier: Apache-2.0
"""Options of ``[blazar_sched]`` that tests override.

The options are those of the process, which plays other tests afterwards.
"""

import contextlib

from oslo_config import cfg

from blazar_sched.conf import scheduler


@contextlib.contextmanager
def options(**values):
    """Override options in a context, which has a function to override more."""
    names = set()

    def override(**more):
        for name, value in more.items():
            cfg.CONF.set_override(name, value, scheduler.GROUP)
            names.add(name)

    try:
        override(**values)
        yield override
    finally:
        for name in names:
            cfg.CONF.clear_override(name, scheduler.GROUP)
