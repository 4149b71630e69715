# SPDX-License-Identifier: Apache-2.0
"""One migration a file; each names the one before it."""
