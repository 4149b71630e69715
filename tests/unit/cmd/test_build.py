# SPDX-License-Identifier: Apache-2.0
"""The two environment variables of the build."""

import importlib.util
import pathlib

import pytest

SETUP = pathlib.Path(__file__).parents[3] / 'setup.py'


@pytest.fixture
def setup(monkeypatch):
    for name in ('NO_EXTENSION', 'REQUIRE_EXTENSION'):
        monkeypatch.delenv(f'BLAZAR_SCHED_{name}', raising=False)
    spec = importlib.util.spec_from_file_location('setup_script', SETUP)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(
        module, 'extensions', lambda required: ['needed' if required else 'ok']
    )
    return module


def test_a_missing_compiler_is_forgiven_by_default(setup):
    assert setup.ext_modules() == ['ok']


def test_the_extension_can_be_forbidden(setup, monkeypatch):
    monkeypatch.setenv('BLAZAR_SCHED_NO_EXTENSION', '1')
    assert setup.ext_modules() == []


def test_the_extension_can_be_required(setup, monkeypatch):
    monkeypatch.setenv('BLAZAR_SCHED_REQUIRE_EXTENSION', '1')
    assert setup.ext_modules() == ['needed']


def test_contradicting_variables_are_refused(setup, monkeypatch):
    monkeypatch.setenv('BLAZAR_SCHED_NO_EXTENSION', '1')
    monkeypatch.setenv('BLAZAR_SCHED_REQUIRE_EXTENSION', '1')
    with pytest.raises(SystemExit, match='contradict'):
        setup.ext_modules()
