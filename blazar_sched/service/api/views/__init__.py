# SPDX-License-Identifier: Apache-2.0
"""How the API shows what the manager answers, one file a noun."""
