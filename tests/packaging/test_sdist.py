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


def test_it_has_what_a_clone_has_and_nothing_that_is_generated(sdist):
    assert names(sdist) == source.files()
