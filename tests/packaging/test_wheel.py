# SPDX-License-Identifier: Apache-2.0
"""The content of a wheel, with and without a compiler."""

import os
import pathlib
import sys
import sysconfig
import tarfile
import zipfile

import pytest

from tests.packaging import source

COMPILED = {
    path.relative_to(source.ROOT / 'cython_src').with_suffix('').as_posix()
    for path in (source.ROOT / 'cython_src').rglob('*.pyx')
}


def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {
            name
            for name in archive.namelist()
            if '.dist-info/' not in name and '.data/' not in name
        }


def package():
    """Return the files of the package: code, migrations, stubs."""
    return {
        name for name in source.files() if name.startswith('blazar_sched/')
    }


@pytest.fixture
def unpacked(sdist, tmp_path):
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / 'unpacked', filter='data')
    (folder,) = (tmp_path / 'unpacked').iterdir()
    return folder


def test_wheel_has_the_units_for_systemd(plain_wheel):
    with zipfile.ZipFile(plain_wheel) as archive:
        shared = {
            pathlib.PurePath(name).name
            for name in archive.namelist()
            if '.data/data/share/blazar-sched/systemd/' in name
        }
    assert shared == {
        path.name for path in (source.ROOT / 'etc/systemd').iterdir()
    }


def test_with_a_compiler_it_has_the_package_and_the_index(compiled_wheel):
    extensions = names(compiled_wheel) - package()
    assert {name.partition('.')[0] for name in extensions} == COMPILED
    assert len(extensions) == len(COMPILED)
    assert all(name.endswith('.so') for name in extensions)
    assert package() <= names(compiled_wheel)
    assert not compiled_wheel.name.endswith('-none-any.whl')


def test_without_a_compiler_it_is_the_package_on_any_platform(plain_wheel):
    assert names(plain_wheel) == package()
    assert plain_wheel.name.endswith('-py3-none-any.whl')


def test_the_extension_can_be_forbidden(unpacked, tmp_path):
    wheel = source.build(
        'wheel', unpacked, tmp_path / 'dist', BLAZAR_SCHED_NO_EXTENSION='1'
    )
    assert names(wheel) == package()
    assert wheel.name.endswith('-py3-none-any.whl')


def test_the_extension_can_be_required(unpacked, tmp_path):
    done = source.try_build(
        'wheel', unpacked, tmp_path / 'dist',
        BLAZAR_SCHED_REQUIRE_EXTENSION='1', CC='/bin/false',
    )
    assert done.returncode != 0
    assert '/bin/false' in done.stderr + done.stdout
    assert not list((tmp_path / 'dist').glob('*'))


def test_files_of_an_earlier_build_are_not_in_the_wheel(unpacked, tmp_path):
    place = f'{sysconfig.get_platform()}-{sys.implementation.cache_tag}'
    suffix = sysconfig.get_config_var('EXT_SUFFIX')
    for name in COMPILED:
        old = unpacked / f'build/lib.{place}' / f'{name}{suffix}'
        old.parent.mkdir(parents=True, exist_ok=True)
        old.write_text('of another version')
        os.utime(old, (0, 0))
    wheel = source.build('wheel', unpacked, tmp_path / 'dist', CC='/bin/false')
    assert names(wheel) == package()
