# SPDX-License-Identifier: Apache-2.0
"""The parts of the service: features that a cloud may run without.

A part is a package that an entry point of ``blazar_sched.parts`` names. What
the part brings is in modules of the package, each of which is optional and is
read by one place of the core:

``api``
    `ROUTES`, the routes of the part, each of which takes the place of the
    core's route with its method and path, if there is one; `LAYERS`, WSGI
    layers that answer at paths of their own: see `service.api.deploy`; and
    `opened(conf)`, which returns the paths that are answered without a token,
    each with what its handler finds in the WSGI environ under
    `service.api.auth.PUBLIC`.
``calls``
    `Calls`, the calls of the API to the manager: see `service.bus.calls`.
``exception``
    `EXCEPTIONS`, the refusals, which the document of the API names.
``manager``
    `start(manager)`, which returns a `service.manager.running.Running`, and
    may add to `manager.bookings.on_refusal`, `manager.hosts.fill_in`,
    `manager.bookings.drafts.fill_in` and `manager.ledger.on_deletion`, and set
    `manager.enforcement.limits_of`; and `NOTIFICATIONS`, the types of the
    notifications of projects.
``enforcement``
    `FILTERS`, enforcement filters by name: each is enabled in place of the
    filter with an entry point of that name, or always if there is none.
``conf``
    `OPTIONS`, options of the part by group, which may be a group of the core;
    and `CLIENTS`, those of these groups that describe the client of another
    service by the options of keystoneauth: see `conf.client`.
``resources``
    `DRIVERS`, the drivers of the resource types of the part, by resource type:
    see `service.resources`.
``before_end``
    `ACTIONS`, the actions that reservations can request, by name: see
    `service.before_end`.
``schemas``
    `PARAMETERS`, the parameters of the reservations of these types in requests
    and answers, by resource type: see `service.api.schemas.reservation`; and
    `RESERVATIONS`, the schemas of new reservations that have a field of the
    part in place of a resource type, by that field: functions of the version.
``commands``
    `COMMANDS`, further commands of ``blazar-sched``: see `cmd.main.COMMANDS`;
    `DB`, actions of ``blazar-sched db``: see `cmd.db.Action`; and
    `UPGRADE_CHECK`, a module whose `run` makes the checks of ``blazar-sched
    status upgrade check``: see `cmd.status`.
``models``
    `TABLES`, the tables of the part, which ``db upgrade`` creates; `NUMBERS`,
    limits on the number of rows that a project may have: see
    `service.ledger.statistics.Number`; `GAUGES`, the metrics of the part, each
    with the query for its values by label; `over(connection, before)`, which
    yields tables with the condition of the rows that are over: see
    `service.ledger.retention`; `pending(connection, now)`, which returns a
    noun, and the objects of the part that are not over; `check(connection,
    now)`, which yields a line for each inconsistency of the rows: see
    `service.ledger.check`; `in_commit(connection, notifications, now)`, which
    is called at the end of each commit, under the lock on the ledger's row,
    with what the commit notifies of; `OFF_HOSTS`, the resources of one type
    that are not on hosts, and their allocations, which end, and are deleted,
    with their reservations: see `service.ledger.off_hosts`; and, of one part,
    `reserved`, which reads the amounts x seconds that a project has reserved
    between two times, by resource class, for another part.

An enforcement filter with an entry point in a part can be enabled where the
part runs. The core imports no part, and a part imports no other part.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import functools
import importlib
import importlib.metadata
import importlib.util
import types
from typing import Any

from oslo_config import cfg

from blazar_sched.conf import default


@functools.cache
def installed() -> dict[str, str]:
    """Return the package of each part that is installed, by name."""
    found = importlib.metadata.entry_points(group='blazar_sched.parts')
    return {each.name: each.value for each in sorted(found)}


def running(conf: cfg.ConfigOpts) -> tuple[str, ...]:
    """Return the names of the parts that a service runs.

    :raises oslo_config.cfg.Error: if a part is not installed
    """
    conf.register_opts(default.opts)
    wanted: list[str] | None = conf.parts
    if wanted is None:
        return tuple(installed())
    if missing := sorted(set(wanted) - installed().keys()):
        raise cfg.Error(
            f'[DEFAULT] parts: {", ".join(missing)} is not installed; '
            f'installed are {", ".join(installed())}'
        )
    return tuple(sorted(set(wanted)))


def runs(path: str, running: Sequence[str]) -> bool:
    """Tell whether a module is of no part, or of a part that runs.

    :param running: the names of the parts that run
    """
    packages = (installed()[name] for name in installed().keys() - {*running})
    return not path.startswith(tuple(f'{package}.' for package in packages))


def each(
    module: str, name: str, among: Sequence[str] | None = None
) -> Iterator[Any]:
    """Yield what the parts have under a name in their modules of one kind.

    :param among: the names of the parts, by default all that are installed
    """
    for part in installed() if among is None else among:
        found = _module(f'{installed()[part]}.{module}')
        if hasattr(found, name):
            yield getattr(found, name)


@functools.cache
def _module(path: str) -> types.ModuleType | None:
    """Return a module, None if there is no such module.

    The file system is asked once: loops ask for the modules again and again.
    """
    if importlib.util.find_spec(path) is None:
        return None
    return importlib.import_module(path)
