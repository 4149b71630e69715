# SPDX-License-Identifier: Apache-2.0
"""The directive ``show-metrics``: lists of metrics that a module has.

As a table of what Prometheus sees: names, labels, meanings.
"""

import importlib

from docutils import nodes
from docutils.parsers import rst
import prometheus_client
from sphinx import application

WIDTHS = (40, 20, 40)


class ShowMetrics(rst.Directive):
    """Takes the module's name, then those of the lists."""

    required_arguments = 2
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        name, lists = self.arguments
        module = importlib.import_module(name)
        group = nodes.tgroup(cols=len(WIDTHS))
        group += [nodes.colspec(colwidth=width) for width in WIDTHS]
        group += nodes.thead('', _row('name', 'labels', 'meaning'))
        group += nodes.tbody('', *(
            _row(
                nodes.literal('', _shown(metric)),
                nodes.literal('', ', '.join(metric.labels)),
                metric.documentation,
            )
            for each in lists.split()
            for metric in getattr(module, each)
        ))
        return [nodes.table('', group)]


def _shown(metric) -> str:
    """Return the name as Prometheus has it."""
    counts = metric.kind is prometheus_client.Counter
    return f'{metric.name}_total' if counts else metric.name


def _row(*cells: str | nodes.Node) -> nodes.row:
    made = nodes.row()
    for cell in cells:
        inside = nodes.Text(cell) if isinstance(cell, str) else cell
        # Without labels there is nothing to be shown as code.
        inside = inside if inside.astext() else nodes.Text('')
        made += nodes.entry('', nodes.paragraph('', '', inside))
    return made


def setup(app: application.Sphinx) -> dict[str, bool]:
    app.add_directive('show-metrics', ShowMetrics)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
