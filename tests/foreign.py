# SPDX-License-Identifier: Apache-2.0
"""A package of others, with entry points of its own."""

import textwrap

from stevedore import extension

_METADATA = 'Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n'


def install(folder, monkeypatch, name, code, entry_points):
    """Install a package of one module for the time of a test.

    :param name: the name of the module
    """
    site = folder / 'site'
    about = site / f'{name}-1.0.dist-info'
    about.mkdir(parents=True)
    for path, text in (
        (site / f'{name}.py', code),
        (about / 'entry_points.txt', entry_points),
        (about / 'METADATA', _METADATA.format(name=name.replace('_', '-'))),
    ):
        path.write_text(textwrap.dedent(text).lstrip())
    monkeypatch.syspath_prepend(site)
    # Where stevedore caches entry points, in memory and in files.
    monkeypatch.setattr(extension.ExtensionManager, 'ENTRY_POINT_CACHE', {})
    monkeypatch.setenv('XDG_CACHE_HOME', str(folder / 'cache'))
