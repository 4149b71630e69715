# SPDX-License-Identifier: Apache-2.0
"""The timeline index beside its peers; `python -m benchmarks` runs it."""
