# SPDX-License-Identifier: Apache-2.0
"""The implementation in use, and the completeness of the build."""

import importlib.machinery
import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

import blazar_sched
from blazar_sched import ext

PACKAGE = pathlib.Path(blazar_sched.__file__).parent
ROOT = pathlib.Path(__file__).parents[3]
SUFFIXES = tuple(importlib.machinery.EXTENSION_SUFFIXES)
MARK = '\ndef _is_compiled('

needs_extension = pytest.mark.skipif(
    os.environ.get('BLAZAR_SCHED_NO_EXTENSION', '') not in ('', '0'),
    reason='the extension is forbidden here',
)


@pytest.fixture
def compiled_modules():
    """Return the modules that setup.py builds: {module: [sources]}."""
    spec = importlib.util.spec_from_file_location('setup', ROOT / 'setup.py')
    setup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(setup)
    return setup.COMPILED_MODULES


def chosen(code='pass', **environ):
    """Return whether a new process uses the compiled index."""
    inherited = {
        name: value for name, value in os.environ.items()
        if name != 'BLAZAR_SCHED_PURE_PYTHON'
    }
    done = subprocess.run(
        [sys.executable, '-c',
         f'{code}; from blazar_sched import ext; print(ext.is_compiled())'],
        env=inherited | environ, capture_output=True, text=True, timeout=60,
    )
    return done.stdout.strip(), done.stderr


@pytest.fixture
def twins():
    """Return the names of the compiled modules that have a plain twin."""
    found = set()
    for path in PACKAGE.rglob('*.py'):
        if MARK in path.read_text():
            parts = ('blazar_sched', *path.relative_to(PACKAGE).parts[:-1])
            found.add('.'.join((*parts, '_' + path.stem)))
    return found


def test_each_plain_twin_is_built_compiled(compiled_modules, twins):
    assert {
        name for name, sources in compiled_modules.items()
        if any(MARK in (ROOT / source).read_text() for source in sources)
    } == twins


def test_each_pyx_is_built_under_the_name_of_its_path(compiled_modules):
    folder = ROOT / 'cython_src'
    assert compiled_modules == {
        '.'.join(path.relative_to(folder).with_suffix('').parts):
            [str(path.relative_to(ROOT))]
        for path in folder.rglob('*.pyx')
    }


@needs_extension
def test_built_modules_are_compiled(compiled_modules, twins):
    for name in compiled_modules:
        module = importlib.import_module(name)
        assert module.__file__.endswith(SUFFIXES)
        assert name not in twins or module._is_compiled()


@needs_extension
def test_compiled_is_the_default():
    assert chosen() == ('True', '')
    assert chosen(BLAZAR_SCHED_PURE_PYTHON='0') == ('True', '')


def test_plain_index_is_used_if_the_environment_asks():
    assert chosen(BLAZAR_SCHED_PURE_PYTHON='1') == ('False', '')


def test_plain_if_the_extension_is_missing():
    hide = "import sys; sys.modules['blazar_sched.ext._timeline_index'] = None"
    assert chosen(hide) == ('False', '')


def test_all_names_are_there():
    assert ext.__all__ == sorted(ext.__all__)
    assert all(hasattr(ext, name) for name in ext.__all__)
