# SPDX-License-Identifier: Apache-2.0
"""Write constraints of pip: the lowest versions that are allowed.

    python tests/lowest.py constraints.txt
"""

import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).parents[1]

service, client = (
    tomllib.loads((folder / 'pyproject.toml').read_text())['project']
    for folder in (ROOT, ROOT / 'client')
)
pathlib.Path(sys.argv[1]).write_text('\n'.join(
    re.sub(',.*', '', line).replace('>=', '==')
    for lines in (
        service['dependencies'], *service['optional-dependencies'].values(),
        client['dependencies'],
    )
    for line in lines
    if '>=' in line
))
