# SPDX-License-Identifier: Apache-2.0
"""Code that runs in Nova's processes beside the filters and weighers."""
