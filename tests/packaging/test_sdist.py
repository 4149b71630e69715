# SPDX-License-Identifier: Apache-2.0
"""The content of an sdist."""

import tarfile

from tests.packaging import source

# The files that setuptools itself writes.
METADATA = {'PKG-INFO', 'setup.cfg'}


def names(sdist):
    with tarfile.open(sdist) as archive:
        paths = [
            member.name.partition('/')[2] for member in archive
            if member.isfile()
        ]
    return {
        path for path in paths
        if path not in METADATA and '.egg-info/' not in path
    }


def test_sdist_has_the_files_of_a_clone_and_no_generated_file(sdist):
    assert names(sdist) == source.files()
