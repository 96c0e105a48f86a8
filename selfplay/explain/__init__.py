"""Searches shown step by step, as lectures draw them: `selfplay explain`."""
