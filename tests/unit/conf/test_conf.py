# SPDX-License-Identifier: Apache-2.0
"""Every option can be found, and says what it is for."""

import importlib.metadata

from oslo_config import cfg
import pytest

from blazar_sched.conf import service


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
    # As the demonstration has it, whatever there is on the machine.
    assert service.load(files=[]).api.port == 1234


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(cfg.ConfigFilesNotFoundError):
        service.load(files=[str(tmp_path / 'none.conf')])
