# SPDX-License-Identifier: Apache-2.0
"""What runs in Nova's processes beside the filters and weighers."""
