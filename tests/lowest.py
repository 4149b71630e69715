# SPDX-License-Identifier: Apache-2.0
"""Write constraints of pip: the lowest versions that pyproject.toml allows.

    python tests/lowest.py constraints.txt
"""

import pathlib
import re
import sys
import tomllib

PROJECT = pathlib.Path(__file__).parents[1] / 'pyproject.toml'

project = tomllib.loads(PROJECT.read_text())['project']
pathlib.Path(sys.argv[1]).write_text(
    '\n'.join(
        re.sub(',.*', '', line).replace('>=', '==')
        for lines in (
            project['dependencies'],
            *project['optional-dependencies'].values(),
        )
        for line in lines
        if '>=' in line
    )
)
