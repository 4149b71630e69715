# SPDX-License-Identifier: Apache-2.0
"""The client's own wheel, in an empty venv without a compiler."""

import subprocess
import sys
import time
import tomllib

import pytest

from tests.packaging import pythons
from tests.packaging import source
from tests.packaging.test_wheel import names

# Seconds in which a user has the client; most of them are for other packages.
SOON = 300
# A user's workstation may have an old Python.
OLDEST = '3.9'
WHICH = """
import importlib, importlib.metadata, pkgutil
import blazar_sched_client
for each in pkgutil.walk_packages(
    blazar_sched_client.__path__, 'blazar_sched_client.'
):
    importlib.import_module(each.name)
for each in importlib.metadata.distributions():
    print(each.metadata['Name'].lower())
"""


@pytest.fixture(scope='module')
def wheel(used_tree, tmp_path_factory):
    return source.build(
        'wheel', used_tree / 'client', tmp_path_factory.mktemp('client'),
        CC='/bin/false',
    )


def project(folder):
    text = (folder / 'pyproject.toml').read_text()
    return tomllib.loads(text)['project']


def test_the_client_asks_for_no_later_python():
    client = project(source.ROOT / 'client')
    assert client['requires-python'] == f'>={OLDEST}'


def test_both_distributions_have_one_version():
    client = project(source.ROOT / 'client')
    assert client['version'] == project(source.ROOT)['version']


@pytest.mark.row('F129')
def test_the_wheel_is_the_package_on_any_platform(wheel):
    assert names(wheel) == {
        name.removeprefix('client/') for name in source.files()
        if name.startswith('client/blazar_sched_client/')
    }
    assert wheel.name.endswith('-py3-none-any.whl')


@pytest.mark.parametrize('version', [OLDEST, None])
def test_the_client_is_soon_installed_without_a_compiler(
    version, wheel, tmp_path
):
    python = sys.executable if version is None else pythons.find(version)
    if python is None:
        pytest.skip(f'Python {version} is not installed')

    def run(*command):
        done = subprocess.run(
            command, cwd=tmp_path, env=source.environment(CC='/bin/false'),
            capture_output=True, text=True, timeout=source.PATIENCE,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(python, '-m', 'venv', tmp_path / 'venv')
    python = tmp_path / 'venv/bin/python'
    begin = time.monotonic()
    run(python, '-m', 'pip', '--no-input', 'install', wheel)
    taken = time.monotonic() - begin
    print(f'installed in {taken:.1f} s')
    found = set(run(python, '-I', '-c', WHICH).split())
    assert {'openstacksdk', 'osc-lib'} <= found
    assert not found & {'blazar-sched', 'falcon', 'nova', 'sqlalchemy'}
    assert taken < SOON
