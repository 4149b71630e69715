# SPDX-License-Identifier: Apache-2.0
"""The style of the shell scripts."""

import importlib.util
import shutil
import subprocess
import sys

import pytest

from tests.devstack import node

PLUGIN = node.REPOSITORY / 'devstack'
FILES = [
    PLUGIN / 'lib/blazar_sched', PLUGIN / 'override-defaults',
    PLUGIN / 'plugin.sh', PLUGIN / 'settings', node.SCRIPTS,
]


def check(*command):
    done = subprocess.run(
        [*command, *FILES], cwd=node.REPOSITORY, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_every_script_of_the_plugin_is_checked():
    text = {PLUGIN / 'README.md', PLUGIN / 'local.conf.sample'}
    files = {path for path in PLUGIN.rglob('*') if path.is_file()}
    assert files - text <= set(FILES)


def test_bash_can_read_it():
    for path in FILES:
        subprocess.run(['bash', '-n', path], check=True)


@pytest.mark.skipif(
    importlib.util.find_spec('bashate') is None,
    reason='bashate is in test-requirements.txt, and not installed',
)
def test_scripts_have_openstacks_style():
    said = check(sys.executable, '-m', 'bashate.bashate')
    # bashate only warns of long lines.
    assert said == ''


@pytest.mark.skipif(
    shutil.which('shellcheck') is None,
    reason='shellcheck is not installed: apt-get install shellcheck',
)
def test_shellcheck_finds_nothing():
    # The script is checked with the files that it sources.
    assert check('shellcheck', '-x') == ''
