# SPDX-License-Identifier: Apache-2.0
"""Every option is listed, and has a help text."""

import importlib.metadata

from oslo_config import cfg
import pytest

from blazar_sched.conf import relocation
from blazar_sched.conf import service
from blazar_sched.domain import settings
from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.settings import Settings
from blazar_sched.service import database
from blazar_sched.service.bus import rpc


def listed():
    for entry_point in importlib.metadata.entry_points(
        group='oslo.config.opts'
    ):
        if entry_point.name.startswith('blazar_sched'):
            for group, opts in entry_point.load()():
                for opt in opts:
                    yield f'[{group}] {opt.name}', opt


def test_every_option_has_a_help_text():
    found = dict(listed())
    assert '[api] port' in found
    assert '[blazar_sched] on_stale' in found
    assert [name for name, opt in found.items() if not opt.help] == []


def test_options_are_read_from_a_file(tmp_path):
    path = tmp_path / 'blazar-sched.conf'
    path.write_text('[api]\nport = 4321\n')
    assert service.load(files=[str(path)]).api.port == 4321


def test_there_is_a_folder_of_files_too(tmp_path, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    folder = tmp_path / '.blazar-sched' / 'blazar-sched.conf.d'
    folder.mkdir(parents=True)
    (folder / '50-port.conf').write_text('[api]\nport = 4321\n')
    path = tmp_path / 'blazar-sched.conf'
    path.write_text('[api]\nport = 1111\n')
    assert service.load().api.port == 4321
    assert service.load(files=[str(path)]).api.port == 4321
    # The configuration of the demonstration, whatever files the machine has.
    assert service.load(files=[]).api.port == 1234


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(cfg.ConfigFilesNotFoundError):
        service.load(files=[str(tmp_path / 'none.conf')])


def test_every_value_is_read_when_the_configuration_is(tmp_path):
    """One error names every invalid value with its file."""
    path = tmp_path / 'blazar-sched.conf'
    path.write_text(
        '[DEFAULT]\nrpc_response_timeout = soon\n'
        '[manager]\nsync_interval = abc\nevent_max_workers = 0\n'
        '[database]\nmax_retries = $nothing\n'
    )
    with pytest.raises(cfg.Error) as caught:
        service.load(files=[str(path)])
    for option, why in (
        ('[DEFAULT] rpc_response_timeout', 'soon'),
        ('[manager] sync_interval', "'abc'"),
        ('[manager] event_max_workers', '1'),
        ('[database] max_retries', 'nothing'),
    ):
        [said] = [s for s in str(caught.value).split('; ') if option in s]
        assert why in said
        assert (str(path) in said) == (option != '[database] max_retries')
        assert 'LocationInfo' not in said


def test_a_value_that_would_end_the_process_is_an_error(tmp_path, capfd):
    """oslo.config exits for `debug`, which may also be an argument."""
    path = tmp_path / 'blazar-sched.conf'
    path.write_text('[DEFAULT]\ndebug = perhaps\n')
    with pytest.raises(cfg.Error, match='debug.*perhaps'):
        service.load(files=[str(path)])
    assert capfd.readouterr().err == ''


def test_every_registered_option_is_read(monkeypatch):
    """An option that is not read early would fail later."""
    conf = service.load(files=[])
    options = [
        (group, name)
        for group in conf
        if isinstance(conf[group], cfg.ConfigOpts.GroupAttr)
        for name in conf[group]
    ]
    assert ('manager', 'sync_interval') in options
    assert ('nova', 'timeout') in options
    read = []
    monkeypatch.setattr(
        cfg.ConfigOpts.GroupAttr, '__getitem__',
        lambda self, name: read.append((self._group.name, name)),
    )
    service.require_values(conf)
    assert read == options


NO_DATABASES = [
    'nonsense', 'postgres://me:secret@host/name',
    'oracle://me:secret@host/name', 'mysql+nonsense://me:secret@host/name',
    'sqlite+nonsense:///secret',
    'mysql+pymysql://me:pass@word:secret@host/name',
]
NO_BUSES = [
    'nonsense', 'nonsense://me:secret@host/',
    'rabbit://me:pass/secret@host:5672/', 'rabbit://me:pass@host:secret/',
    'rabbit://me:secret@[host/', 'rabbit://me:secret@host/?ssl=nonsense',
]
NO_URLS = [
    *((database.open_ledger, 'database', 'connection', url)
      for url in NO_DATABASES),
    *((rpc.transport, 'DEFAULT', 'transport_url', url) for url in NO_BUSES),
    *((rpc.notifications, 'oslo_messaging_notifications', 'transport_url',
       url) for url in NO_BUSES),
]


@pytest.mark.parametrize('use, group, name, url', NO_URLS)
def test_a_url_that_names_nothing_is_not_told_but_its_option(
    use, group, name, url
):
    """No part of the URL is shown, nor of an invalid URL."""
    conf = service.load(files=[])
    if use == rpc.notifications:
        # The import registers the option.
        conf.set_override('transport_url', 'fake://')
        use(conf)
    conf.set_override(name, url, None if group == 'DEFAULT' else group)
    with pytest.raises(cfg.Error, match=rf'^\[{group}\] {name} ') as caught:
        use(conf)
    assert 'secret' not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize('name, value', [
    ('unbounded', 'for ever'), ('unbounded', 'assume:0'),
    ('unbounded_fixed', 'relocate'), ('unbounded_fixed', 'share:1.5'),
])
def test_wrong_rules_for_servers_without_an_end_are_named(
    tmp_path, name, value
):
    path = tmp_path / 'blazar-sched.conf'
    path.write_text(f'[manager]\n{name} = {value}\n')
    with pytest.raises(ValueError, match=name):
        service.load(files=[str(path)])


def test_managers_tell_what_the_file_says(tmp_path):
    path = tmp_path / 'blazar-sched.conf'
    path.write_text(
        '[manager]\nunbounded = assume:2h\nunbounded_fixed = share:0.6\n'
        'relocate_instances = false\nrelocation_lead = 60\n'
    )
    told = relocation.settings(service.load(files=[str(path)]).manager)
    assert settings.decode(told.encode()) == Settings(
        'assume:2h', 'share:0.6', False, Rules(lead=60)
    )
    assert relocation.settings(service.load(files=[]).manager) == Settings(
        'relocate', 'forever', True, Rules()
    )


def test_what_no_part_reads_is_named(tmp_path):
    """Options of libraries, of plug-ins and of older releases are known."""
    path = tmp_path / 'blazar-sched.conf'
    path.write_text(
        '[DEFAULT]\nlog-file = x\n[manger]\nsync_interval = 1\n'
        '[manager]\nsync_intervall = 3\ncolour = red\n'
        '[nova]\nauth_type = password\nauth-url = http://x\nuser_name = x\n'
        'region_name = x\n[placement]\nauth_section = login\n'
        '[login]\npassword = x\n[oslo_policy]\npolicy_file = x\n'
        '[keystone_authtoken]\nmemcached_servers = x\n'
        '[healthcheck]\ndetailed = true\n[oslo_messaging_rabbit]\nssl = 0\n'
    )
    conf = service.load(files=[str(path)])
    assert list(service.unknown(conf)) == [
        f'[manger], perhaps manager (in {path})',
        f'[manager] sync_intervall, perhaps sync_interval (in {path})',
        f'[manager] colour (in {path})',
    ]


def test_an_ordinary_configuration_has_nothing_unknown():
    assert list(service.unknown(service.load(files=[]))) == []
