# SPDX-License-Identifier: Apache-2.0
"""The configuration of the service, as one object.

It is the service's own, passed down as an argument: Nova owns the global one
wherever our code runs in its process, and some groups have the same names.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import importlib
import importlib.util
import io
import re

from oslo_config import cfg
from oslo_log import log
from oslo_messaging import opts as messaging

from blazar_sched.conf import api
from blazar_sched.conf import client
from blazar_sched.conf import database
from blazar_sched.conf import email
from blazar_sched.conf import enforcement
from blazar_sched.conf import keystone
from blazar_sched.conf import manager
from blazar_sched.conf import metrics
from blazar_sched.conf import neutron
from blazar_sched.conf import nova
from blazar_sched.conf import placement
from blazar_sched.conf import webhook

# They have the options of keystoneauth.
CLIENTS = (keystone, neutron, nova, placement)
GROUPS = (
    api, database, email, enforcement, keystone, manager, metrics, neutron,
    nova, placement, webhook,
)

# oslo.messaging reads these from whatever object it is given, but registers
# them on the global one alone. Tracing came with its version 18.3.
_UNLISTED = {
    'oslo_messaging_metrics': 'oslo_messaging._metrics.client',
    'oslo_messaging_tracing': 'oslo_messaging._tracing.client',
}

_BAD_VALUE = re.compile(r"detail='(?P<file>.*?)'\) is not valid: (?P<why>.*)")


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the service's own options by group, for oslo-config-generator."""
    return [
        (
            module.GROUP,
            client.listed(module.opts) if module in CLIENTS else module.opts,
        )
        for module in GROUPS
    ]


def load(
    args: Sequence[str] | None = None, files: list[str] | None = None
) -> cfg.ConfigOpts:
    """Return the configuration with every value read once.

    :param args: as of `parse`
    :param files: as of `parse`
    :raises oslo_config.cfg.Error: if a file or a value cannot be read
    """
    conf = parse(args, files)
    require_values(conf)
    return conf


def require_values(conf: cfg.ConfigOpts) -> None:
    """Read every registered option, as oslo.config reads one when asked.

    :raises oslo_config.cfg.Error: if a value cannot be read; it names each
        option that has such a value
    """
    faults = list(bad_values(conf))
    if faults:
        raise cfg.ConfigFileValueError('; '.join(faults))


def bad_values(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield for each option whose value cannot be read its name and why."""
    for name in conf:
        try:
            value = conf[name]
        except cfg.Error as e:
            yield f'[DEFAULT] {name}: {_reason(e)}'
            continue
        if isinstance(value, cfg.ConfigOpts.GroupAttr):
            for option in value:
                try:
                    value[option]
                except cfg.Error as e:
                    yield f'[{name}] {option}: {_reason(e)}'


def _reason(error: cfg.Error) -> str:
    """Return why a value is bad, and the file that it is in."""
    if isinstance(error, cfg.TemplateSubstitutionError | cfg.NoSuchOptError):
        return f'{error}; a dollar sign itself is written $$'
    # oslo.config shows the place as the object that it is in Python.
    found = _BAD_VALUE.search(str(error))
    return f'{found["why"]} (in {found["file"]})' if found else str(error)


def sources(conf: cfg.ConfigOpts) -> str:
    """Return the names of the files and folders that `conf` was read from."""
    read = [*conf.config_file, *conf.config_dir]
    return ', '.join(read) or 'no configuration file'


def parse(
    args: Sequence[str] | None = None, files: list[str] | None = None
) -> cfg.ConfigOpts:
    """Return the configuration; a value is read when it is asked for.

    Without `files`, the usual places are looked at: ~/.blazar-sched,
    /etc/blazar-sched and their like. There is also the folder
    blazar-sched.conf.d, whose files are read after those, unless `files` is
    empty.

    :param args: options of every oslo program, such as ``--config-file``
    :param files: read these where `args` names no file
    :raises oslo_config.cfg.Error: if a file cannot be read, or the value of
        an option of oslo.log that programs also have as an argument
    """
    conf = cfg.ConfigOpts()
    log.register_options(conf)
    quiet = [*log.get_default_log_levels(), 'alembic=WARNING']
    conf.set_default('default_log_levels', quiet)
    # It is a lease's or a host's id; no instance has a line in the API's log.
    conf.set_default('instance_uuid_format', '[%(uuid)s] ')
    for group, opts in messaging.list_opts():
        conf.register_opts(opts, group=group)
    for group, name in _UNLISTED.items():
        if _exists(name):
            module = importlib.import_module(name)
            conf.register_opts(getattr(module, group), group=group)
    for module in GROUPS:
        module.register(conf)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            conf(
                list(args or []),
                project='blazar-sched',
                default_config_files=files,
                default_config_dirs=[] if files == [] else None,
            )
    except SystemExit:
        # So oslo.config answers a value that cannot be read of an option
        # that might also be an argument, such as `debug`.
        raise cfg.Error(said.getvalue().strip()) from None
    return conf


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
