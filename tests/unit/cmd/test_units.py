# SPDX-License-Identifier: Apache-2.0
"""systemd's units run valid commands."""

import configparser
import pathlib
import shlex
import shutil
import subprocess
import sys

import pytest

from blazar_sched.cmd import main

FOLDER = pathlib.Path(__file__).parents[3] / 'etc' / 'systemd'
SCRIPT = pathlib.Path(sys.executable).with_name('blazar-sched')
UNITS = ('blazar-sched-api', 'blazar-sched-manager')
each_unit = pytest.mark.parametrize('name', UNITS)


def path(name):
    return FOLDER / f'{name}.service'


def read(name):
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str
    unit.read(path(name))
    return unit['Service']


def test_there_is_a_unit_for_each_process_of_the_service():
    assert {p.stem for p in FOLDER.iterdir()} == set(UNITS)


@each_unit
def test_what_it_starts_is_a_command_of_ours(name):
    program, *arguments = shlex.split(read(name)['ExecStart'])
    args = main.parse(arguments)
    assert pathlib.Path(program).name == 'blazar-sched'
    assert name == f'blazar-sched-{args.command}'
    assert args.config == [
        '--config-file', '/etc/blazar-sched/blazar-sched.conf'
    ]


@each_unit
def test_unit_may_write_to_a_database_in_a_file(name):
    service = read(name)
    assert service['StateDirectory'] == 'blazar-sched'
    # The default [database] connection is a file in the working directory.
    assert service['WorkingDirectory'] == '%S/blazar-sched'


def test_units_differ_in_the_command_only():
    api, manager = (
        path(name).read_text().replace(name, 'NAME') for name in UNITS
    )
    differ = [
        line
        for line in set(api.splitlines()) ^ set(manager.splitlines())
        if not line.startswith(('Description=', 'ExecStart='))
    ]
    assert differ == []


@each_unit
def test_systemd_understands_it(name, tmp_path):
    analyze = shutil.which('systemd-analyze')
    if analyze is None:
        pytest.skip('systemd-analyze is not installed')
    text = path(name).read_text()
    assert text.count('/usr/local/bin/blazar-sched') == 1
    unit = tmp_path / path(name).name
    unit.write_text(text.replace('/usr/local/bin/blazar-sched', str(SCRIPT)))
    done = subprocess.run(
        [analyze, 'verify', '--man=no', '--recursive-errors=no', unit],
        capture_output=True, text=True,
    )
    assert (done.returncode, done.stderr) == (0, '')
