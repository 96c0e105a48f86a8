"""The learned linear evaluation: named features and patterns, weights from self-play (docs/linear.md)."""
