# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched status upgrade check`: checks of the whole installation.

A check says what is wrong and what to do. A check that cannot be made, as on
a node without Nova, says so and is not a warning: nothing would ever end the
warning.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import functools
import os
import sys
from typing import Any
from typing import TypeVar

from oslo_config import cfg
import oslo_messaging
from oslo_messaging import opts as messaging
from oslo_upgradecheck import common_checks
from oslo_upgradecheck import upgradecheck

from blazar_sched import ext
from blazar_sched.cmd import worker_query
from blazar_sched.conf import relocation as relocation_conf
from blazar_sched.conf import scheduler as scheduler_conf
from blazar_sched.conf import service as service_conf
from blazar_sched.domain import exception
from blazar_sched.domain.duration import FOREVER
from blazar_sched.domain.duration import NEVER
from blazar_sched.domain.duration import RELOCATE
from blazar_sched.parts.ops import bus_check
from blazar_sched.parts.ops import credentials
from blazar_sched.parts.ops import server_check
from blazar_sched.replica import wire
from blazar_sched.service import before_end
from blazar_sched.service import database
from blazar_sched.service import resources
from blazar_sched.service.bus import rpc
from blazar_sched.service.enforcement import filters
from blazar_sched.service.ledger import ledger

NOVA_CONFIG_FILE = '/etc/nova/nova.conf'
# The seconds in which running processes respond.
WAIT = 3.0
# The exit status of an error that is not a check result, as in
# oslo.upgradecheck.
ERROR = 255

T = TypeVar('T')

FILTERS = {
    'ReservationFilter': 'blazar_sched.filters.reservation_filter',
    'LifetimeFilter': 'blazar_sched.filters.lifetime_filter',
}
ALL_FILTERS = 'blazar_sched.filters.all_filters'
WEIGHERS = 'blazar_sched.weighers.'

# Options as Nova declares them, with Nova's defaults: Nova need not be
# installed here.
_NOVA_OPTS: dict[str | None, list[cfg.Opt]] = {
    None: [
        # Options to which the values of other options often refer.
        *(
            cfg.StrOpt(name, default='')
            for name in ('host', 'my_ip', 'pybasedir', 'state_path')
        ),
        cfg.IntOpt('reclaim_instance_interval', default=0),
    ],
    'filter_scheduler': [
        cfg.MultiStrOpt(
            'available_filters', default=['nova.scheduler.filters.all_filters']
        ),
        cfg.ListOpt('enabled_filters', default=[]),
        cfg.ListOpt(
            'weight_classes', default=['nova.scheduler.weights.all_weighers']
        ),
    ],
    'scheduler': [cfg.IntOpt('max_placement_results', default=1000)],
    'notifications': [
        cfg.StrOpt('notification_format', default='unversioned'),
        cfg.ListOpt(
            'versioned_notifications_topics',
            default=['versioned_notifications'],
        ),
    ],
}


def _success(details: str | None = None) -> upgradecheck.Result:
    return upgradecheck.Result(upgradecheck.Code.SUCCESS, details)


def _warning(details: str) -> upgradecheck.Result:
    return upgradecheck.Result(upgradecheck.Code.WARNING, details)


def _failure(details: str) -> upgradecheck.Result:
    return upgradecheck.Result(upgradecheck.Code.FAILURE, details)


def _reading(check: Callable[[T], upgradecheck.Result]) -> (
    Callable[[T], upgradecheck.Result]
):
    """Make a check fail under its own name if an option is invalid."""

    @functools.wraps(check)
    def guarded(self: T) -> upgradecheck.Result:
        try:
            return check(self)
        except cfg.Error as e:
            return _failure(f'The value of an option is invalid: {e}')

    return guarded


class Checks(upgradecheck.UpgradeCommands):
    """The checks, in the order in which they are shown.

    :param conf: the service's configuration
    :param nova: nova-scheduler's configuration, see `load_nova`; None if there
        is none
    """

    def __init__(
        self, conf: cfg.ConfigOpts, nova: cfg.ConfigOpts | None
    ) -> None:
        self._conf = conf
        self._nova = nova

    @functools.cached_property
    def _ledger(self) -> ledger.Ledger:
        return database.open_ledger(self._conf)

    @property
    def _is_elsewhere(self) -> bool:
        """Whether this node has neither a configuration nor a database.

        A query to SQLite would create a file.
        """
        scheme, _, file = self._conf.database.connection.partition(':///')
        return (
            not self._conf.config_file
            and not self._conf.config_dir
            and scheme == 'sqlite'
            and not os.path.exists(file)
        )

    def _configuration(self) -> upgradecheck.Result:
        credentials.register_tokens(self._conf)
        bad = list(service_conf.bad_values(self._conf))
        if bad:
            return _failure(
                'The services cannot start with this configuration: '
                f'{"; ".join(bad)}.'
            )
        unknown = list(service_conf.unknown(self._conf))
        if unknown:
            return _warning(
                f'No part of the service reads {"; ".join(unknown)}.'
            )
        return _success(
            f'Configuration files: {service_conf.sources(self._conf)}.'
        )

    def _index(self) -> upgradecheck.Result:
        if ext.is_compiled():
            return _success()
        return _warning(
            'The timeline index runs as plain Python, which is slow. Install '
            'blazar-sched again with a C compiler; with '
            'BLAZAR_SCHED_REQUIRE_EXTENSION=1 the installation reports what '
            'is missing.'
        )

    def _database(self) -> upgradecheck.Result:
        if self._is_elsewhere:
            return _success(
                'Skipped: this node has no blazar-sched.conf. Run the check '
                'on a node with a manager, or with --config-file.'
            )
        try:
            name = self._ledger.name
            self._ledger.require_current()
        except exception.NotUpgraded as e:
            return _failure(f'{name}: {e}.')
        except Exception as e:
            # For example a missing driver, or a wrong password.
            return _failure(
                f'The database cannot be used: {exception.cause(e)}'
            )
        return _success(
            f'The tables of {name} are those of this version. Run '
            '`blazar-sched db check` to check their rows.'
        )

    def _credentials(self) -> upgradecheck.Result:
        if self._is_elsewhere:
            return _success('Skipped: this node has no blazar-sched.conf.')
        faults = list(credentials.faults(self._conf))
        if faults:
            return _failure(f'{"; ".join(faults)}.')
        lacking = credentials.lacking(self._conf)
        return _warning(f'{"; ".join(lacking)}.') if lacking else _success()

    def _policy(self) -> upgradecheck.Result:
        return common_checks.check_policy_json(self, self._conf)

    def _plugins(self) -> upgradecheck.Result:
        """Check that a manager can load its filters, actions and drivers."""
        for check in (
            filters.load, before_end.check_default,
            lambda _: resources.check_drivers(),
        ):
            try:
                check(self._conf)
            except Exception as e:
                # A package of others may raise anything when it is imported.
                return _failure(f'The manager cannot start: {e}.')
        return _success()

    def _soft_deletion(self) -> upgradecheck.Result:
        if self._nova is None:
            return _skipped()
        seconds = self._nova.reclaim_instance_interval
        return _success() if seconds <= 0 else _warning(
            f'reclaim_instance_interval = {seconds} in nova.conf: a server '
            'that its owner deletes keeps its host for so many seconds, also '
            'where a lease needs the host.'
        )

    def _callers(self) -> upgradecheck.Result:
        if self._conf.api.auth_strategy == 'noauth':
            return _warning(
                '[api] auth_strategy is noauth, which is only for tests on '
                'one machine: every caller of the API can act as an '
                'administrator. Remove the option if Keystone is available.'
            )
        return _success()

    def _filters(self) -> upgradecheck.Result:
        if self._nova is None:
            return _skipped()
        options = self._nova.filter_scheduler
        off = [f for f in FILTERS if f not in options.enabled_filters]
        if off:
            return _failure(
                f'{" and ".join(off)} must be in [filter_scheduler] '
                'enabled_filters in nova.conf: unless both filters are '
                'enabled, servers can be created on reserved resources.'
            )
        unknown = [
            name
            for name, module in FILTERS.items()
            if not {ALL_FILTERS, f'{module}.{name}'}
            & set(options.available_filters)
        ]
        if unknown:
            return _failure(
                f'nova-scheduler cannot find {" and ".join(unknown)}: add '
                f'the line available_filters = {ALL_FILTERS} to '
                '[filter_scheduler] in nova.conf, and keep a line for the '
                'filters of Nova.'
            )
        return _success()

    def _weighers(self) -> upgradecheck.Result:
        if self._nova is None:
            return _skipped()
        classes = self._nova.filter_scheduler.weight_classes
        if any(name.startswith(WEIGHERS) for name in classes):
            return _success()
        return _warning(
            f'{WEIGHERS}all_weighers is not in [filter_scheduler] '
            'weight_classes in nova.conf: servers may be placed where leases '
            'will need the resources, and magnetic reservations do not '
            'attract servers.'
        )

    def _scheduler_options(self) -> upgradecheck.Result:
        if self._nova is None:
            return _skipped()
        try:
            scheduler_conf.check(self._nova)
        except (cfg.Error, exception.InvalidInput, ValueError) as e:
            return _failure(
                'nova-scheduler cannot start with the options of '
                f'[blazar_sched] in nova.conf: {e}'
            )
        options = self._nova[scheduler_conf.GROUP]
        if options.max_age <= options.poll_interval:
            return _warning(
                '[blazar_sched] max_age in nova.conf is not greater than '
                'poll_interval: replicas become stale between two queries '
                'for changes. Raise max_age.'
            )
        return _success()

    def _relocation(self) -> upgradecheck.Result:
        """Check what servers without an end may do, and where that is said."""
        left = [] if self._nova is None else [
            opt.name for opt in relocation_conf.opts if _is_set(
                self._nova, opt.name
            )
        ]
        if left:
            return _warning(
                f'{", ".join(left)} in [blazar_sched] of nova.conf have no '
                'effect: set them in [manager] of blazar-sched.conf, from '
                'which nova-scheduler is told.'
            )
        if self._is_elsewhere:
            return _success('Skipped: this node has no blazar-sched.conf.')
        manager = self._conf.manager
        if manager.unbounded == FOREVER:
            return _warning(
                '[manager] unbounded = forever: from its request on, each '
                'lease keeps servers without an end off its hosts. Set '
                'relocate, or limit leases.'
            )
        if manager.unbounded != RELOCATE:
            return _success(
                'Servers without an end follow [manager] unbounded = '
                f'{manager.unbounded}.'
            )
        fixed = manager.unbounded_fixed
        if not manager.relocate_instances:
            return _warning(
                '[manager] relocate_instances is not set: no server is '
                'moved, and all servers without an end follow '
                f'unbounded_fixed = {fixed}.'
            )
        return (_warning if fixed == NEVER else _success)(
            'Servers without an end that cannot be moved follow [manager] '
            f'unbounded_fixed = {fixed}.'
        )

    def _servers(self) -> upgradecheck.Result:
        """Tell what leases will meet in this cloud; nothing is wrong."""
        if self._is_elsewhere:
            return _success('Skipped: this node has no blazar-sched.conf.')
        try:
            return _success(server_check.report(self._conf))
        except Exception as e:
            # The check of the credentials reports most errors.
            return _success(f'Skipped: {exception.cause(e)}.')

    def _bus(self) -> upgradecheck.Result:
        if self._nova is None:
            return _skipped()
        if self._is_elsewhere:
            return _success('Skipped: this node has no blazar-sched.conf.')
        try:
            return bus_check.check(self._conf, self._nova)
        except (oslo_messaging.InvalidTransportURL, ValueError):
            # The error includes the URL, and the URL includes a password.
            return _failure(
                'A transport_url in blazar-sched.conf or nova.conf is invalid.'
            )

    def _processes(self) -> upgradecheck.Result:
        """Check which running processes this version does not work with."""
        if self._is_elsewhere:
            return _success('Skipped: this node has no blazar-sched.conf.')
        try:
            answers = worker_query.ask(self._conf, WAIT, wire.REPORT_METHOD)
        except (cfg.Error, exception.Unavailable) as e:
            return _success(f'Skipped: {e}.')
        blocking = [
            f'{name} ({body.get("part", "scheduler")} of version '
            f'{body.get("version", "unknown")})'
            for name, body in answers if not _works_with(body)
        ]
        return _warning(
            'These processes do not work beside this version, so follow the '
            'steps of the release notes: ' + ', '.join(blocking) + '.'
        ) if blocking else _success(
            f'All of {len(answers)} processes that responded work beside this '
            'version.'
        )

    def _placement_results(self) -> upgradecheck.Result:
        if self._nova is None:
            return _skipped()
        if self._is_elsewhere:
            return _success('Skipped: the database is on another node.')
        most = self._nova.scheduler.max_placement_results
        try:
            hosts = len(self._ledger.hosts())
        except Exception:
            # The check of the database reports the error.
            return _success('Skipped: the database cannot be queried.')
        if hosts > most:
            return _warning(
                f'{hosts} hosts are registered, but nova-scheduler considers '
                f'at most {most} hosts: set [scheduler] '
                'max_placement_results in nova.conf to at least the number '
                'of all hosts.'
            )
        return _success()

    def _notifications(self) -> upgradecheck.Result:
        wanted = self._conf.manager
        if not wanted.enable_notification_monitor:
            return _success(
                'Not needed: [manager] enable_notification_monitor is not set.'
            )
        if self._nova is None:
            return _skipped()
        lacks = list(_lacking_notifications(self._nova, wanted))
        if not lacks:
            return _success()
        return _warning(
            '[manager] enable_notification_monitor is set, but Nova does not '
            f'send the required notifications: set {"; ".join(lacks)} in '
            'nova.conf.'
        )

    _upgrade_checks = tuple((name, _reading(check)) for name, check in (
        ('Configuration', _configuration),
        ('Timeline index', _index),
        ('Database', _database),
        ('Running processes', _processes),
        ('Credentials', _credentials),
        ('Policy file is not JSON', _policy),
        ('Filters, actions and drivers', _plugins),
        ('API authentication', _callers),
        ('nova-scheduler filters', _filters),
        ('nova-scheduler weighers', _weighers),
        ('nova-scheduler options', _scheduler_options),
        ('Relocation', _relocation),
        ('Servers in Nova', _servers),
        ('Message buses', _bus),
        ('Placement result limit', _placement_results),
        ('Nova notifications', _notifications),
        ('Soft deletion in Nova', _soft_deletion),
    ))


def _is_set(nova: cfg.ConfigOpts, name: str) -> bool:
    """Tell whether a file sets an option that managers have in [manager]."""
    found = nova.get_location(name, scheduler_conf.GROUP)
    return found is not None and found.location.is_user_controlled


def _works_with(body: Mapping[str, Any]) -> object:
    """Tell whether the process of a report works beside this version."""
    known, of_calls = body.get('wire', 0), body.get('rpc', rpc.VERSION)
    return (
        known >= wire.OLDEST_WIRE_VERSION
        and of_calls.split('.')[0] == rpc.VERSION.split('.')[0]
    )


def _skipped() -> upgradecheck.Result:
    return _success(
        f'Skipped: this node has no {NOVA_CONFIG_FILE}. Run the check on a '
        'node with nova-scheduler, or with --nova-config-file.'
    )


def _lacking_notifications(
    nova: cfg.ConfigOpts, wanted: cfg.ConfigOpts.GroupAttr
) -> Iterator[str]:
    """Yield the options that nova.conf lacks for the group [manager]."""
    if nova.notifications.notification_format not in ('versioned', 'both'):
        yield '[notifications] notification_format = versioned'
    topics = wanted.notification_topics
    if not set(nova.notifications.versioned_notifications_topics) & set(
        topics
    ):
        yield (
            '[notifications] versioned_notifications_topics = '
            f'{",".join(topics)}'
        )
    drivers = nova.oslo_messaging_notifications.driver
    if not {'messaging', 'messagingv2'} & set(drivers):
        yield '[oslo_messaging_notifications] driver = messagingv2'
    if nova.control_exchange != wanted.notification_exchange:
        yield f'control_exchange = {wanted.notification_exchange}'


def load_nova(files: Sequence[str] | None) -> cfg.ConfigOpts | None:
    """Return the configuration that nova-scheduler reads from `files`.

    The folder beside each file is read too, ``nova.conf.d`` for ``nova.conf``.

    :param files: None for Nova's usual file, if it exists
    :returns: None if it does not exist
    :raises oslo_config.cfg.Error: if a file cannot be read
    """
    if files is None:
        if not os.path.exists(NOVA_CONFIG_FILE):
            return None
        files = [NOVA_CONFIG_FILE]
    nova = cfg.ConfigOpts()
    for group, opts in (*_NOVA_OPTS.items(), *messaging.list_opts()):
        nova.register_opts(opts, group)
    # Nova's own default.
    nova.set_default('control_exchange', 'nova')
    scheduler_conf.register(nova)
    # Those that earlier releases read here.
    nova.register_opts(relocation_conf.opts, scheduler_conf.GROUP)
    nova(
        [], default_config_files=list(files),
        default_config_dirs=[f'{file}.d' for file in files],
    )
    return nova


def run(
    args: Sequence[str], nova_files: list[str] | None, as_json: bool
) -> int:
    """Run the checks, print the results, and return the exit status.

    :param args: the arguments of conf.service.parse
    """
    try:
        conf = service_conf.parse(args)
        nova = load_nova(nova_files)
    except cfg.Error as e:
        print(f'blazar-sched: {e}', file=sys.stderr)
        return ERROR
    # The command does not wait until a database is available again.
    conf.set_override('max_retries', 0, 'database')
    return upgradecheck.main(
        # The call requires a configuration for a command line of its own;
        # this one has nothing else.
        cfg.ConfigOpts(),
        'blazar-sched',
        Checks(conf, nova),
        argv=['upgrade', 'check', *(['--json'] if as_json else [])],
        default_config_files=[],
    )
