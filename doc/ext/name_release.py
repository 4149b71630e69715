# SPDX-License-Identifier: Apache-2.0
"""Names the release that reno has no tag for yet.

Without any tag reno heads all notes with 0.0.0, and its own option for
unreleased versions is for what follows a tag.
"""

from docutils import nodes
from sphinx.application import Sphinx

UNTAGGED = '0.0.0'


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect('doctree-read', _rename)
    return {'parallel_read_safe': True}


def _rename(app: Sphinx, doctree: nodes.document) -> None:
    for title in doctree.findall(nodes.title):
        if title.astext() == UNTAGGED:
            title.clear()
            title += nodes.Text(f'{app.config.version}, in development')
