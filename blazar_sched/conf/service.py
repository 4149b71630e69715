# SPDX-License-Identifier: Apache-2.0
"""The configuration of the service, as one object.

The object is the service's own, and is passed as an argument: Nova owns the
global configuration wherever this code runs in Nova's process, and some
groups have the same names.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import difflib
import glob
import importlib
import importlib.metadata
import importlib.util
import io
import os
import re

from keystoneauth1 import loading
from oslo_config import cfg
from oslo_log import log
from oslo_messaging import opts as messaging

from blazar_sched.conf import api
from blazar_sched.conf import audit
from blazar_sched.conf import client
from blazar_sched.conf import database
from blazar_sched.conf import default
from blazar_sched.conf import enforcement
from blazar_sched.conf import keystone
from blazar_sched.conf import manager
from blazar_sched.conf import metrics
from blazar_sched.conf import nova
from blazar_sched.conf import placement
from blazar_sched.service import parts

# The groups of the core with the options of keystoneauth.
CLIENTS = (keystone, nova, placement)
GROUPS = (
    api, audit, database, default, enforcement, keystone, manager, metrics,
    nova, placement,
)

# oslo.messaging reads these groups from the configuration that it is given,
# but registers them only on the global configuration. Tracing was added in
# oslo.messaging 18.3.
_UNLISTED = {
    'oslo_messaging_metrics': 'oslo_messaging._metrics.client',
    'oslo_messaging_tracing': 'oslo_messaging._tracing.client',
}

# The libraries with options in these files, by the names of their entry points
# for oslo-config-generator.
_LIBRARIES = (
    'keystonemiddleware.audit', 'keystonemiddleware.auth_token', 'oslo.cache',
    'oslo.concurrency', 'oslo.log', 'oslo.messaging',
    'oslo.middleware.healthcheck', 'oslo.middleware.http_proxy_to_wsgi',
    'oslo.policy',
)

_BAD_VALUE = re.compile(r"detail='(?P<file>.*?)'\) is not valid: (?P<why>.*)")


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the service's own options by group, for oslo-config-generator."""
    of_parts = clients()
    return [
        *(
            (
                each.GROUP,
                client.listed(each.opts) if each in CLIENTS else each.opts,
            )
            for each in GROUPS
        ),
        *(
            (name, client.listed(opts) if name in of_parts else opts)
            for name, opts in _of_parts()
        ),
    ]


def clients(among: Sequence[str] | None = None) -> set[str]:
    """Return the groups of parts with the options of keystoneauth.

    :param among: the names of the parts, by default all that are installed
    """
    return set().union(*parts.each('conf', 'CLIENTS', among))


def _of_parts() -> Iterator[tuple[str, list[cfg.Opt]]]:
    """Yield the options of the parts that are installed, by group."""
    for options in parts.each('conf', 'OPTIONS'):
        yield from options.items()


def load(
    args: Sequence[str] | None = None, files: list[str] | None = None
) -> cfg.ConfigOpts:
    """Return the configuration with every value read once.

    :param args: as in `parse`
    :param files: as in `parse`
    :raises oslo_config.cfg.Error: if a file or a value cannot be read
    """
    conf = parse(args, files)
    require_values(conf)
    return conf


def require_values(conf: cfg.ConfigOpts) -> None:
    """Read every registered option, as oslo.config reads an option on use.

    :raises oslo_config.cfg.Error: if a value cannot be read; the error names
        each option that has such a value
    """
    faults = list(bad_values(conf))
    if faults:
        raise cfg.ConfigFileValueError('; '.join(faults))


def bad_values(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield the name and the error of each option with an invalid value."""
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


def unknown(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield the groups and options of the files that no part reads."""
    known = _known(conf)
    paths = [*conf.config_file]
    for folder in conf.config_dir:
        paths += sorted(glob.glob(os.path.join(folder, '*.conf')))
    for path in paths:
        sections: dict[str, dict[str, list[str]]] = {}
        cfg.ConfigParser(path, sections).parse()
        for group, given in sections.items():
            if group not in known:
                yield f'[{group}]{_nearest(group, known)} (in {path})'
                continue
            for name in given:
                if name.replace('-', '_') not in known[group]:
                    hint = _nearest(name, known[group])
                    yield f'[{group}] {name}{hint} (in {path})'


def _nearest(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, known, 1)
    return f', perhaps {found[0]}' if found else ''


def _known(conf: cfg.ConfigOpts) -> dict[str, set[str]]:
    """Return the options that some part reads, by group, old names too."""
    listed = list_opts()
    for entry in importlib.metadata.entry_points(group='oslo.config.opts'):
        if entry.name in _LIBRARIES:
            listed += entry.load()()
    known: dict[str, set[str]] = {'DEFAULT': set(conf)}
    for name in conf:
        if isinstance(conf[name], cfg.ConfigOpts.GroupAttr):
            known[name] = set(conf[name])
    for group, opts in listed:
        name = str(group or 'DEFAULT')
        for opt in opts:
            known.setdefault(name, set()).add(opt.dest)
            for old in opt.deprecated_opts:
                known.setdefault(old.group or name, set()).add(
                    (old.name or opt.dest).replace('-', '_')
                )
    # The options of the plug-in that auth_type names.
    plugins = {
        name.replace('-', '_')
        for plugin in loading.get_available_plugin_names()
        for opt in loading.get_auth_plugin_conf_options(plugin)
        for name in (opt.dest, *(old.name for old in opt.deprecated_opts))
        if name
    }
    groups = {
        'keystone_authtoken', *(each.GROUP for each in CLIENTS), *clients()
    }
    shared = {
        conf[name].auth_section for name in groups
        if name in conf and 'auth_section' in conf[name]
    }
    for name in groups | shared - {None}:
        known.setdefault(name, {'auth_type'}).update(plugins)
    return known


def _reason(error: cfg.Error) -> str:
    """Return the reason why a value is invalid, and the file of the value."""
    if isinstance(error, cfg.TemplateSubstitutionError | cfg.NoSuchOptError):
        return f'{error}; write a literal dollar sign as $$'
    # oslo.config shows the place of the value as the repr of an object.
    found = _BAD_VALUE.search(str(error))
    return f'{found["why"]} (in {found["file"]})' if found else str(error)


def sources(conf: cfg.ConfigOpts) -> str:
    """Return the names of the files and folders that `conf` was read from."""
    read = [*conf.config_file, *conf.config_dir]
    return ', '.join(read) or 'no configuration file'


def parse(
    args: Sequence[str] | None = None, files: list[str] | None = None
) -> cfg.ConfigOpts:
    """Return the configuration; a value is read on use.

    Without `files`, the usual files are read: those in ~/.blazar-sched,
    /etc/blazar-sched and similar folders. The files of the folder
    blazar-sched.conf.d are read after them, unless `files` is empty.

    :param args: options of every oslo program, such as ``--config-file``
    :param files: the files to read if `args` names no file
    :raises oslo_config.cfg.Error: if a file cannot be read, or the value of
        an option of oslo.log that programs also have as an argument
    """
    conf = cfg.ConfigOpts()
    log.register_options(conf)
    quiet = [*log.get_default_log_levels(), 'alembic=WARNING']
    conf.set_default('default_log_levels', quiet)
    # The uuid is the id of a lease or host; the API logs no instances.
    conf.set_default('instance_uuid_format', '[%(uuid)s] ')
    for group, opts in messaging.list_opts():
        conf.register_opts(opts, group=group)
    for group, name in _UNLISTED.items():
        if _exists(name):
            module = importlib.import_module(name)
            conf.register_opts(getattr(module, group), group=group)
    for each in GROUPS:
        conf.register_opts(each.opts, None if each is default else each.GROUP)
    for group, opts in _of_parts():
        conf.register_opts(opts, group)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            conf(
                list(args or []), project='blazar-sched',
                default_config_files=files,
                default_config_dirs=[] if files == [] else None,
            )
    except SystemExit:
        # oslo.config exits in this way on an unreadable value of an option
        # that can also be an argument, such as `debug`.
        raise cfg.Error(said.getvalue().strip()) from None
    return conf


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
