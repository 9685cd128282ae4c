"""Stockade: egress containment for AI agent executors."""

__version__ = "0.1.0"
