"""Names that no rule can open, whatever a policy says.

The addresses behind them are denied by the address table as well; the names are
listed so that the denial comes before any look-up, and so that a rule which tries to
open one is a load error and not a rule without effect.
"""

from __future__ import annotations

# name: who documents it as the way to its instance metadata service
METADATA_NAMES: dict[str, str] = {
    "metadata.google.internal": "Google Compute Engine, metadata server",
    "metadata.goog": "Google Compute Engine, metadata server",
    "metadata": "Google Compute Engine, short name through the search list",
    "instance-data": "Amazon EC2, short name through the search list",
    "instance-data.ec2.internal": "Amazon EC2, instance metadata",
    "metadata.tencentyun.com": "Tencent Cloud, instance metadata",
    "metadata.platformequinix.com": "Equinix Metal, instance metadata",
    "metadata.packet.net": "Equinix Metal, former name",
}


def is_metadata_name(name: str) -> bool:
    """True if a canonical name is one of the metadata services' own."""
    return name in METADATA_NAMES
