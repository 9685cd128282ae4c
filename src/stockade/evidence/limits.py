"""What a passed proof does not show, and ways round that are known. Kept beside docs/guarantees.md."""

from __future__ import annotations

VALID_DAYS = 90
"""Kernels, browsers and tricks change; a quarter is what many sites allow between two penetration tests."""

VALID_WHILE = (
    "kernel, code, policy and locked packages are those of points 2 and 3; any other one wants a new proof"
)

LIMITS = (
    "The catalogue is a list of techniques, not all that exist: what nobody thought of was not tried.",
    "Each technique has a note of what its being blocked does not show; they belong to this verdict.",
    "Sites, name servers and metadata services are played by a sealed internet on this machine; "
    "no packet met a real one.",
    "It was tried with the policies of the catalogue. Your own policy opens other doors: "
    "an allowed host is a way out for data.",
    "A fault of the kernel is outside the claim; this is no virtual machine.",
    "The machine's clock and the person who holds the signing key are trusted.",
)

KNOWN_BYPASSES = (
    "Inside TLS to an allowed host nothing is seen: another account, or another Host behind the same front.",
    "A listed interpreter runs any text that it is given; what is listed is programs, not actions.",
    "Size and timing of permitted traffic can carry a message; limits make it slow, not impossible.",
    "The user who runs Stockade can edit a ledger before it is sealed here: it is not signed as it grows.",
)

LEDGER_NOTE = (
    "The ledger is not signed yet. What stands here is the SHA-256 of every ledger file when the record was "
    "sealed: a later change is found, an earlier one by the user who ran the proof is not."
)
