# SPDX-License-Identifier: Apache-2.0
"""Options that tests override.

The options of ``[blazar_sched]`` are those of the process, which plays other
tests afterwards. The options of the managers are as if a manager had told them
to each replica.
"""

import contextlib
from unittest import mock

from oslo_config import cfg
from oslo_messaging import transport

from blazar_sched.conf import relocation
from blazar_sched.conf import scheduler
from blazar_sched.domain import duration
from blazar_sched.replica import state


@contextlib.contextmanager
def forgetting(conf):
    """Clear at the end what is overridden of a configuration meanwhile.

    Tests share a configuration in this way, as one takes long to read.
    """
    overridden, override = [], conf.set_override

    def set_override(name, value, group=None):
        overridden.append((name, group))
        override(name, value, group)

    with mock.patch.object(conf, 'set_override', set_override):
        yield conf
    for name, group in overridden:
        conf.clear_override(name, group)


def exchange():
    """Return the default exchange of oslo.messaging.

    Nova, in the same process, sets another default. oslo.messaging refuses a
    configuration that was read with the default from before.
    """
    options = {each.name: each for each in transport._transport_opts}
    return options['control_exchange'].default


def told(**values):
    """Return the managers' options with these values; no end is for ever."""
    conf = cfg.ConfigOpts()
    conf.register_opts(relocation.opts)
    for name, value in {'unbounded': duration.FOREVER, **values}.items():
        conf.set_override(name, value)
    return conf


def settings(**values):
    """Return what managers with these options tell."""
    return relocation.settings(told(**values))


@contextlib.contextmanager
def options(**values):
    """Override options in a context, which has a function to override more."""
    names = set()
    managers = told()

    def override(**more):
        for name, value in more.items():
            if name in managers:
                managers.set_override(name, value)
            else:
                cfg.CONF.set_override(name, value, scheduler.GROUP)
                names.add(name)

    kept = property(
        lambda replica: relocation.settings(managers),
        lambda replica, settings: None,
    )
    with mock.patch.object(state.Replica, 'settings', kept, create=True):
        try:
            override(**values)
            yield override
        finally:
            for name in names:
                cfg.CONF.clear_override(name, scheduler.GROUP)
