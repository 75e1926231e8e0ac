"""Pins: what of each server a person, or the first sight of it, has approved, and what is held back."""
