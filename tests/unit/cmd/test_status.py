# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched status` and the list of commands, without what others need."""

import subprocess
import sys

import pytest

from blazar_sched.cmd import main
from blazar_sched.service import parts

# Neither of these is needed to list the commands, nor most by `status`.
MISSING = ('alembic', 'falcon', 'matplotlib', 'nova', 'openstack',
           'oslo_messaging', 'sqlalchemy')


@pytest.mark.parametrize('argument', ['status', '--help'])
def test_a_missing_package_is_no_trouble(argument):
    script = (
        'import sys\n'
        f'sys.modules.update(dict.fromkeys({MISSING!r}))\n'
        'from blazar_sched.cmd import main\n'
        f'sys.exit(main.main([{argument!r}]))\n'
    )
    done = subprocess.run(
        [sys.executable, '-c', script], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_status_refuses_a_file_that_is_not_there(capsys):
    assert main.main(['status', '--config-file', '/no/such.conf']) == 1
    assert '/no/such.conf' in capsys.readouterr().err


def test_without_checks_no_upgrade_passes_for_checked(monkeypatch, capsys):
    monkeypatch.setattr(parts, 'each', lambda module, name: iter(()))
    assert main.main(['status', 'upgrade', 'check']) == 1
    assert 'no part that has checks' in capsys.readouterr().err
