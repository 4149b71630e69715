# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched status upgrade check`, run by an operator."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from types import SimpleNamespace

from oslo_messaging import opts as messaging
import pytest
import stevedore

from blazar_sched import ext
from blazar_sched.cmd import main
from blazar_sched.cmd import worker_query
from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.domain.host import Host
from blazar_sched.domain.relocation import Features
from blazar_sched.parts.ops import upgrade_check
from blazar_sched.replica import wire
from blazar_sched.service.bus import rpc
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.ledger import ledger
from tests import tables

SUCCESS, WARNING, FAILURE = range(3)
# The configuration of the guide, in short.
NOVA = """
[DEFAULT]
state_path = $pybasedir
my_ip = 192.0.2.1
transport_url = rabbit://nova:hush@$my_ip/
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = blazar_sched.filters.all_filters
enabled_filters = ComputeFilter,ReservationFilter,LifetimeFilter
weight_classes = nova.scheduler.weights.all_weighers,\
blazar_sched.weighers.all_weighers
[scheduler]
max_placement_results = 2
[notifications]
notification_format = versioned
[oslo_messaging_notifications]
driver = messagingv2
[blazar_sched]
transport_url = rabbit://blazar_sched:hush@$my_ip/blazar_sched
max_age = 120
"""
# Credentials that need no Keystone.
CLOUD = ''.join(
    f'[{group}]\nauth_type = none\nendpoint = http://192.0.2.1/\n'
    for group in ('nova', 'placement')
)
FILTERS = 'nova-scheduler filters'
WEIGHERS = 'nova-scheduler weighers'
OPTIONS = 'nova-scheduler options'
RESULTS = 'Placement result limit'
NOTIFICATIONS = 'Nova notifications'
PLUGINS = 'Filters, actions and drivers'
SOFT_DELETION = 'Soft deletion in Nova'
BUSES = 'Message buses'
RELOCATION = 'Relocation'
SERVERS = 'Servers in Nova'
PROCESSES = 'Running processes'
OF_NOVA = {
    FILTERS, WEIGHERS, OPTIONS, BUSES, RESULTS, NOTIFICATIONS, SOFT_DELETION,
}


@pytest.fixture(scope='module')
def empty(tmp_path_factory):
    """A SQLite file with empty tables."""
    file = tmp_path_factory.mktemp('empty') / 'ledger.sqlite'
    books = ledger.Ledger(f'sqlite:///{file}')
    books.upgrade()
    books.close()
    return file


@pytest.fixture
def books(tmp_path, empty):
    """An empty ledger with its tables."""
    books = ledger.Ledger(f'sqlite:///{shutil.copy(empty, tmp_path)}')
    yield books
    books.close()


@pytest.fixture
def config(tmp_path, books):
    path = tmp_path / 'blazar-sched.conf'
    path.write_text(
        '[DEFAULT]\n'
        'transport_url = rabbit://blazar_sched:hush@192.0.2.1/blazar_sched\n'
        f'[database]\nconnection = sqlite:///{tmp_path}/ledger.sqlite\n'
        f'[keystone_authtoken]\nauth_type = none\n{CLOUD}'
        '[manager]\nenable_notification_monitor = true\n'
    )
    return path


@pytest.fixture
def nova(tmp_path):
    path = tmp_path / 'nova.conf'
    path.write_text(NOVA)
    return path


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """The files and the build of this machine make no difference."""
    monkeypatch.setattr(
        upgrade_check, 'NOVA_CONFIG_FILE', str(tmp_path / 'none.conf')
    )
    monkeypatch.setattr(ext, 'is_compiled', lambda: True)


@pytest.fixture(autouse=True)
def servers(monkeypatch):
    """Nova's servers: `.there`, `.gone`, and what was asked of the latter."""
    found = SimpleNamespace(there=[], gone=[], asked={})

    def list_(self, **filters):
        if not filters:
            return iter(found.there)
        found.asked = filters
        return iter(found.gone)

    monkeypatch.setattr(Nova, 'servers', list_)
    return found


@pytest.fixture(autouse=True)
def reports(monkeypatch):
    """The reports of running processes; None without a message bus."""
    found = []

    def ask(conf, wait, method):
        assert method == wire.REPORT_METHOD
        if not found:
            raise exception.Unavailable('the message bus is unreachable')
        return found

    monkeypatch.setattr(worker_query, 'ask', ask)
    return found


def command(config, *more):
    return [
        'status', 'upgrade', 'check', '--config-file', str(config),
        *map(str, more),
    ]


@pytest.fixture
def check(config, nova, capsys):
    """check() -> the status, and (result, details) by check."""

    def check(files=('--nova-config-file', nova)):
        status = main.main(command(config, '--json', *files))
        checks = json.loads(capsys.readouterr().out)['checks']
        return status, {
            c['check']: (c['result'], c['details'] or '') for c in checks
        }

    return check


def replace(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_what_the_readme_says_is_all_right(check, reports):
    reports.append(('worker', report(wire.WIRE_VERSION)))
    status, checks = check()
    assert status == SUCCESS
    assert {result for result, _ in checks.values()} == {SUCCESS}
    assert not any('Skipped' in details for _, details in checks.values())


def test_results_are_shown_in_the_table_of_oslo_upgradecheck(
    config, nova, capsys
):
    assert main.main(command(config, '--nova-config-file', nova)) == SUCCESS
    table = capsys.readouterr().out
    assert '| Upgrade Check Results ' in table
    assert '| Check: Database ' in table
    assert '| Result: Success ' in table
    assert 'blazar-sched db check' in re.sub(r'[\s|]+', ' ', table)


def test_a_node_without_nova_is_all_right(check):
    status, checks = check(files=())
    assert status == SUCCESS
    skipped = {c for c, (_, said) in checks.items() if 'Skipped' in said}
    assert skipped == OF_NOVA | {PROCESSES}
    assert 'none.conf' in checks[FILTERS][1]


def report(wire_version, rpc_version=None, part=None):
    found = {'version': '0.0.7', 'wire': wire_version}
    if part:
        found |= {'part': part, 'rpc': rpc_version}
    return found


def test_processes_that_work_beside_this_version_are_all_right(check, reports):
    major = rpc.VERSION.split('.')[0]
    reports += [
        ('a', report(wire.OLDEST_WIRE_VERSION)),
        ('b', report(wire.WIRE_VERSION + 1)),
        ('c', report(wire.WIRE_VERSION, f'{major}.9', 'api')),
    ]
    assert check()[1][PROCESSES][0] == SUCCESS


@pytest.mark.parametrize('blocking', [
    report(wire.OLDEST_WIRE_VERSION - 1),
    report(wire.WIRE_VERSION, '1.0', 'manager'), {'stale': True},
])
def test_a_process_that_blocks_the_upgrade_is_named(check, reports, blocking):
    reports += [('good', report(wire.WIRE_VERSION)), ('bad-17', blocking)]
    status, checks = check()
    assert status == WARNING
    result, details = checks[PROCESSES]
    assert result == WARNING
    part = blocking.get('part', 'scheduler')
    version = blocking.get('version', 'unknown')
    assert f'bad-17 ({part} of version {version})' in details
    assert 'good' not in details


def test_a_node_with_a_scheduler_alone_is_all_right(
    nova, tmp_path, monkeypatch, capsys
):
    empty = tmp_path / 'empty'
    empty.mkdir()
    monkeypatch.chdir(empty)
    monkeypatch.setenv('HOME', str(empty))
    status = main.main([
        'status', 'upgrade', 'check', '--json',
        '--nova-config-file', str(nova),
    ])
    checks = json.loads(capsys.readouterr().out)['checks']
    assert status == SUCCESS
    assert {
        c['check'] for c in checks if 'Skipped' in (c['details'] or '')
    } == {
        'Database', PROCESSES, 'Credentials', RELOCATION, SERVERS, BUSES,
        RESULTS,
    }
    # For example, a new ledger.
    assert list(empty.iterdir()) == []


def test_nova_need_not_be_installed(config, nova):
    script = (
        'import sys\n'
        "sys.modules['nova'] = None\n"
        'from blazar_sched.cmd import main\n'
        'sys.exit(main.main(sys.argv[1:]))\n'
    )
    done = subprocess.run(
        [
            sys.executable, '-c', script,
            *command(config, '--nova-config-file', nova),
        ],
        capture_output=True, text=True,
        env={**os.environ, 'BLAZAR_SCHED_PURE_PYTHON': '1'},
    )
    # The plain index causes a warning.
    assert done.returncode == WARNING, done.stderr
    assert 'BLAZAR_SCHED_REQUIRE_EXTENSION=1' in done.stdout


@pytest.mark.parametrize(('old', 'new', 'what', 'result', 'said'), [
    (',ReservationFilter', '', FILTERS, FAILURE, 'ReservationFilter'),
    (',LifetimeFilter', '', FILTERS, FAILURE, 'LifetimeFilter'),
    (
        'available_filters = blazar_sched.filters.all_filters', '', FILTERS,
        FAILURE, 'blazar_sched.filters.all_filters',
    ),
    (
        'blazar_sched.filters.all_filters',
        'blazar_sched.filters.lifetime_filter.LifetimeFilter', FILTERS,
        FAILURE, 'cannot find ReservationFilter:',
    ),
    (
        ',blazar_sched.weighers.all_weighers', '', WEIGHERS, WARNING,
        'blazar_sched.weighers.all_weighers',
    ),
    ('max_age = 120', 'on_stale = perhaps', OPTIONS, FAILURE, 'perhaps'),
    (
        'rabbit://nova:hush@$my_ip/',
        'rabbit://blazar_sched:hush@$my_ip/blazar_sched', BUSES, WARNING,
        'with the same user as Nova',
    ),
    (
        'transport_url = rabbit://blazar_sched:hush@$my_ip/blazar_sched', '',
        BUSES, WARNING, 'nova-scheduler uses vhost /',
    ),
    (
        'blazar_sched:hush@$my_ip/blazar_sched',
        'blazar_sched:hush@192.0.2.2/blazar_sched',
        BUSES, WARNING, 'nova-scheduler uses vhost blazar_sched of 192.0.2.2',
    ),
    (
        'blazar_sched:hush@$my_ip/blazar_sched', 'me:ha/sh@host:x/',
        BUSES, FAILURE,
        'A transport_url in blazar-sched.conf or nova.conf is invalid',
    ),
    ('max_age = 120', 'max_age = 5', OPTIONS, WARNING, 'poll_interval'),
    (
        'format = versioned', 'format = unversioned', NOTIFICATIONS, WARNING,
        'notification_format = versioned',
    ),
    (
        'format = versioned',
        'format = both\nversioned_notifications_topics = mine', NOTIFICATIONS,
        WARNING, 'versioned_notifications_topics = versioned_notifications',
    ),
    (
        'driver = messagingv2', 'driver = log', NOTIFICATIONS, WARNING,
        'driver = messagingv2',
    ),
    (
        '[DEFAULT]', '[DEFAULT]\ncontrol_exchange = cell1', NOTIFICATIONS,
        WARNING, 'control_exchange = nova',
    ),
    (
        'max_placement_results = 2', 'max_placement_results = two', RESULTS,
        FAILURE, 'max_placement_results',
    ),
    (
        '[filter_scheduler]',
        '[DEFAULT]\nreclaim_instance_interval = 3600\n[filter_scheduler]',
        SOFT_DELETION, WARNING, '3600',
    ),
])
def test_what_is_wrong_in_nova_conf_is_told(
    check, nova, old, new, what, result, said
):
    replace(nova, old, new)
    status, checks = check()
    assert status == result
    assert {c for c, (found, _) in checks.items() if found} == {what}
    found, details = checks[what]
    assert found == result
    assert said in details
    assert 'hush' not in details


@pytest.mark.parametrize('workers, manager, status, told', [
    ('', '', SUCCESS,
     'that cannot be moved follow [manager] unbounded_fixed = forever'),
    ('', 'unbounded_fixed = never', WARNING, 'unbounded_fixed = never'),
    ('', 'unbounded = forever', WARNING, 'from its request on'),
    ('', 'unbounded = assume:1d', SUCCESS, 'unbounded = assume:1d'),
    ('', 'relocate_instances = false', WARNING, 'no server is moved'),
    # As in earlier releases.
    ('unbounded = never\nrelocation_lead = 60', 'unbounded = never', WARNING,
     'unbounded, relocation_lead in [blazar_sched] of nova.conf have no'),
])
def test_how_servers_without_an_end_are_treated(
    check, config, nova, workers, manager, status, told
):
    replace(nova, 'max_age = 120', f'max_age = 120\n{workers}')
    replace(config, 'monitor = true', f'monitor = true\n{manager}')
    found, details = check()[1][RELOCATION]
    assert (found, told in details) == (status, True)


@pytest.mark.row('F123')
def test_what_leases_will_meet_is_told(check, servers):
    def server(n, vcpus, created=0, node='c1', **fields):
        return Server(
            f's{n}', node, 'p', {'VCPU': vcpus},
            fields.pop('end', window.FOREVER), None,
            fields.pop('preemptible', False),
            created=int(time.time()) - created * 86400,
            features=Features({}, {}, None, 512, **{
                'local_disk': False, 'devices': False, **fields,
            }),
        )

    servers.there = [
        server(1, 4), server(2, 2, local_disk=True),
        server(3, 1, 99, 'c2', local_disk=True, devices=True),
        server(4, 1, end=9, local_disk=True),
        server(5, 1, preemptible=True, local_disk=True),
    ]
    servers.gone = [server(6, 2, 3, None)]
    status, checks = check()
    assert status == SUCCESS
    _, told = checks[SERVERS]
    assert '2 servers without an end cannot be moved' in told
    assert 'disk (2)' in told
    assert '2 hosts whole: c1, c2.' in told
    assert 'Of the 10 VCPUs' in told
    assert 'never: 80%; forever: 80%' in told
    assert 'forever: 20% while' in told
    assert servers.asked['deleted'] == 'true'


def test_an_empty_cloud_has_nothing_in_the_way(check):
    _, told = check()[1][SERVERS]
    assert 'No server was created' in told


def test_nova_that_does_not_answer_is_no_fault_of_the_installation(
    check, monkeypatch
):
    def refuse(self, **filters):
        raise exception.Unavailable('Nova is away')

    monkeypatch.setattr(Nova, 'servers', refuse)
    assert check()[1][SERVERS] == (
        SUCCESS, 'Skipped: Unavailable: Nova is away.'
    )


def test_another_user_on_the_bus_of_nova_is_enough(check, config, nova):
    for path in (config, nova):
        replace(path, '/blazar_sched\n', '/\n')
    assert check()[0] == SUCCESS


def test_what_is_in_the_folder_beside_nova_conf_counts(check, nova):
    enabled = 'enabled_filters = ComputeFilter,ReservationFilter,'
    replace(nova, enabled, 'enabled_filters = ComputeFilter,')
    assert check()[0] == FAILURE
    folder = nova.with_name('nova.conf.d')
    folder.mkdir()
    (folder / '50-blazar-sched.conf').write_text(
        f'[filter_scheduler]\n{enabled}LifetimeFilter\n'
    )
    assert check()[0] == SUCCESS


def test_filters_may_be_named_one_by_one(check, nova):
    replace(
        nova, 'blazar_sched.filters.all_filters',
        'blazar_sched.filters.lifetime_filter.LifetimeFilter\n'
        'available_filters = '
        'blazar_sched.filters.reservation_filter.ReservationFilter',
    )
    assert check()[0] == SUCCESS


def test_notifications_that_nobody_listens_to_are_not_needed(
    check, config, nova
):
    replace(config, 'monitor = true', 'monitor = false')
    replace(nova, 'format = versioned', 'format = unversioned')
    status, checks = check()
    assert status == SUCCESS
    assert 'Not needed' in checks[NOTIFICATIONS][1]


def test_placement_must_return_every_registered_host(check, books):
    def register(number):
        books.commit(lambda tx: tx.put_host(Host(
            uuid=f'b1f5d6c4-0000-4000-8000-{number:012}', id='',
            hypervisor_hostname=f'compute-{number}', inventory={}, created_at=1
        )))

    register(1)
    register(2)
    assert check()[0] == SUCCESS
    register(3)
    status, checks = check()
    assert status == WARNING
    assert '3 hosts are registered' in checks[RESULTS][1]


def test_old_tables_are_a_failure(check, config, tmp_path):
    replace(config, 'ledger.sqlite', 'empty.sqlite')
    status, checks = check()
    assert status == FAILURE
    assert 'blazar-sched db upgrade' in checks['Database'][1]
    assert 'Skipped' in checks[RESULTS][1]


@pytest.mark.parametrize(('url', 'said'), [
    ('sqlite:////nowhere/at/all.sqlite', 'unable to open'),
    ('nonsense', 'not a valid SQLAlchemy URL'),
    ('mysql+nodriver://root:hush@127.0.0.1:9/x', 'nodriver'),
    ('oracle://root:hush@127.0.0.1:9/x', 'oracle'),
])
def test_a_database_that_cannot_be_used_is_a_failure(check, config, url, said):
    config.write_text(
        re.sub('connection = .*', f'connection = {url}', config.read_text())
    )
    status, checks = check()
    assert status == FAILURE
    result, details = checks['Database']
    assert result == FAILURE
    assert said in details
    assert 'hush' not in details


def test_an_option_that_cannot_be_read_is_a_failure_by_name(check, config):
    replace(
        config, '[keystone_authtoken]\n',
        '[api]\nport = many\n[keystone_authtoken]\nhttp_connect_timeout = x\n'
    )
    with config.open('a') as file:
        file.write('minutes_before_end_lease = ten\n')
    status, checks = check()
    assert status == FAILURE
    result, details = checks['Configuration']
    assert result == FAILURE
    for option in (
        '[manager] minutes_before_end_lease', '[api] port',
        '[keystone_authtoken] http_connect_timeout',
    ):
        assert option in details
    assert str(config) in details


def test_the_files_and_the_database_are_named(check, config, tmp_path):
    _, checks = check()
    assert str(config) in checks['Configuration'][1]
    assert f'sqlite:///{tmp_path}/ledger.sqlite' in checks['Database'][1]


def test_a_group_without_credentials_is_a_warning_by_name(check, config):
    replace(config, '[placement]\nauth_type = none\n', '[placement]\n')
    status, checks = check()
    assert status == WARNING
    result, details = checks['Credentials']
    assert result == WARNING
    assert '[placement] auth_type is not set' in details
    assert '[nova]' not in details


@pytest.mark.parametrize(('credentials', 'said'), [
    ('', '[keystone_authtoken] auth_type is not set'),
    (
        'auth_type = password\nauth_url = http://127.0.0.1:9/\n'
        'username = blazar\npassword = hush\n',
        '[keystone_authtoken] Keystone issued no token: ',
    ),
])
def test_the_api_needs_credentials_that_are_good_for_a_token(
    check, config, credentials, said
):
    tokens = '[keystone_authtoken]\n'
    replace(config, f'{tokens}auth_type = none\n', tokens + credentials)
    status, checks = check()
    assert status == FAILURE
    result, details = checks['Credentials']
    assert result == FAILURE
    assert said in details
    assert 'hush' not in details


@pytest.mark.parametrize(
    'group', ['nova', 'placement', 'keystone', *tables.of('CLIENTS')]
)
@pytest.mark.parametrize(('credentials', 'said'), [
    ('auth_url = http://127.0.0.1:9/', 'Keystone issued no token'),
    ('', 'Keystone issued no token: '),
])
def test_credentials_that_give_no_token_are_a_failure_by_name(
    check, config, group, credentials, said
):
    old = f'[{group}]\nauth_type = none\n'
    new = f'[{group}]\nauth_type = password\n{credentials}\n'
    if old in config.read_text():
        replace(config, old, new)
    else:
        replace(config, '[manager]\n', f'{new}[manager]\n')
    status, checks = check()
    assert status == FAILURE
    result, details = checks['Credentials']
    assert result == FAILURE
    assert f'[{group}] {said}' in details


def test_a_policy_file_in_json_is_a_failure(check, config, tmp_path):
    with config.open('a') as file:
        file.write('[oslo_policy]\npolicy_file = policy.json\n')
    (tmp_path / 'policy.json').write_text('{"admin": "role:admin"}')
    status, checks = check()
    assert status == FAILURE
    assert 'JSON' in checks['Policy file is not JSON'][1]


@pytest.mark.row('F58')
@pytest.mark.parametrize(('text', 'what', 'result', 'said'), [
    ('[api]\nauth_strategy = noauth', 'API authentication', WARNING,
     'noauth'),
    ('[manger]\nsync_interval = 3', 'Configuration', WARNING,
     '[manger], perhaps manager'),
    ('before_end = email', PLUGINS, FAILURE, '[email] smtp_host'),
    ('before_end = webhook', PLUGINS, FAILURE, '[webhook] url'),
    ('before_end = migrate', PLUGINS, FAILURE, 'snapshot'),
    ('before_end = default', PLUGINS, FAILURE, 'snapshot'),
    ('[enforcement]\nenabled_filters = MaxReservationLengthFilter', PLUGINS,
     FAILURE, 'MaxReservation'),
    ('[enforcement]\napproval_filters = MaxSizeFilter', PLUGINS, FAILURE,
     'approval_filters'),
    ('[oslo_messaging_rabbit]\nrabbit_quorum_queue = true', BUSES, WARNING,
     'must have the same value'),
    ('[oslo_messaging_rabbit]\nuse_queue_manager = true', BUSES, FAILURE,
     'lock_path'),
])
def test_what_is_wrong_in_the_configuration_is_told(
    check, config, text, what, result, said
):
    with config.open('a') as file:
        file.write(f'{text}\n')
    status, checks = check()
    found, details = checks[what]
    assert (status, found, said in details) == (result, result, True)


@pytest.mark.parametrize(
    'before_end',
    ['', 'snapshot', 'email\n[email]\nsmtp_host = mail.example.org'],
)
def test_possible_default_action_is_no_warning(check, config, before_end):
    with config.open('a') as file:
        file.write(f'before_end = {before_end}\n')
    _, checks = check()
    assert checks[PLUGINS][0] == SUCCESS


def test_a_driver_that_cannot_be_imported_is_a_failure(check, monkeypatch):
    def load(namespace, on_load_failure_callback, **kwargs):
        if namespace == 'blazar_sched.resources':
            error = ImportError('no module named foreign')
            on_load_failure_callback(None, 'foreign:kind', error)
        return []

    monkeypatch.setattr(stevedore, 'ExtensionManager', load)
    result, details = check()[1][PLUGINS]
    assert (result, 'foreign' in details) == (FAILURE, True)


@pytest.mark.parametrize('name', ['--config-file', '--nova-config-file'])
def test_a_file_that_cannot_be_read_is_no_result(config, capsys, name):
    missing = str(config.with_name('missing.conf'))
    assert main.main(command(config, name, missing)) == 255
    said = capsys.readouterr()
    assert missing in said.err
    assert said.out == ''


def test_the_options_of_nova_are_declared_as_nova_does():
    opts = pytest.importorskip('nova.conf.opts')
    theirs = {
        ('DEFAULT' if group is None else str(group), opt.dest): type(opt.type)
        for group, listed in [*opts.list_opts(), *messaging.list_opts()]
        for opt in listed
    }
    for group, declared in upgrade_check._NOVA_OPTS.items():
        for opt in declared:
            known = theirs[group or 'DEFAULT', opt.dest]
            # A value that is only referred to may be any text, such as an
            # address.
            assert opt.default == '' or known is type(opt.type), opt.dest
