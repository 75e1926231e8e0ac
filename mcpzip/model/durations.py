"""Formats durations for the user."""

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def age(seconds: float) -> str:
    """``seconds`` in its largest whole unit: ``3 d``, ``2 h``, ``5 min``, ``12 s``."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


def span(seconds: float) -> str:
    """``seconds`` with two digits or more: ``0.25 ms``, ``12 ms``, ``1.2 s``, ``75 s``, ``12 min``."""
    if seconds >= 600:
        return age(seconds)
    number, unit = (seconds, "s") if seconds >= 0.9995 else (seconds * 1000, "ms")
    return f"{number:.{0 if number >= 9.95 else 1 if number >= 0.995 else 2}f} {unit}"


_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 7 * 86_400.0}


def seconds_of(text: str) -> float:
    """The seconds in ``90s``, ``30m`` or ``30min``, ``1.5h``, ``2d``, ``1w``; a number alone is seconds.

    Raises ValueError.
    """
    number = text.strip().lower()
    unit = number.lstrip("0123456789.").strip()
    found = float(number.removesuffix(unit).strip() if unit else number)
    if unit and unit not in _SECONDS:
        raise ValueError(f"no unit of time: {unit}")
    return found * _SECONDS.get(unit, 1.0)
