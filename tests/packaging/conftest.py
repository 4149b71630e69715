# SPDX-License-Identifier: Apache-2.0
"""The sdist, and the wheels built from it, once for all tests.

Building and installing take minutes, and are done only with `-m packaging`.
"""

import pathlib

import pytest

from tests.packaging import installation
from tests.packaging import pythons
from tests.packaging import source


def pytest_collection_modifyitems(config, items):
    asked = 'packaging' in config.getoption('markexpr')
    for item in items:
        if item.path.is_relative_to(pathlib.Path(__file__).parent):
            item.add_marker('packaging')
            if not asked:
                item.add_marker(
                    pytest.mark.skip('slow: see `make test-packaging`')
                )


@pytest.fixture(scope='session')
def used_tree(tmp_path_factory):
    """A working copy in which a developer has built and tested."""
    tree = source.copy(tmp_path_factory.mktemp('tree'))
    for name in (
        'blazar_sched/__pycache__/main.cpython-311.pyc',
        'blazar_sched/ext/_timeline_index.cpython-311-x86_64-linux-gnu.so',
        'build/cython_src/blazar_sched/ext/_gone.c',
        'build/lib/blazar_sched/gone.py',
        'cython_src/blazar_sched/ext/_timeline_index.so',
        'doc/build/html/index.html', 'tests/unit/__pycache__/test_build.pyc',
    ):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text('generated')
    return tree


@pytest.fixture(scope='session')
def sdist(used_tree, tmp_path_factory):
    return source.build('sdist', used_tree, tmp_path_factory.mktemp('sdist'))


@pytest.fixture(scope='session')
def plain_wheel(sdist, tmp_path_factory):
    """A wheel that was built without a compiler."""
    return source.build(
        'wheel', sdist, tmp_path_factory.mktemp('plain'), CC='/bin/false'
    )


@pytest.fixture(scope='session', params=pythons.promised())
def bare(request, tmp_path_factory):
    """A venv without any package, for each installed Python."""
    path = pythons.find(request.param)
    if path is None:
        pytest.skip(f'there is no python{request.param} that makes venvs')
    return installation.Installation(tmp_path_factory.mktemp('bare'), path)


@pytest.fixture(scope='session')
def compiled_wheel(bare, sdist):
    """A wheel of that Python, built with a compiler."""
    return bare.build(sdist)


@pytest.fixture(scope='session', params=['compiled', 'plain'])
def installed(request, bare, compiled_wheel, plain_wheel):
    """An installation of either wheel: (installation, whether compiled)."""
    compiled = request.param == 'compiled'
    bare.install(compiled_wheel if compiled else plain_wheel)
    return bare, compiled
