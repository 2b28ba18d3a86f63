"""How many masks a method takes, and how many inputs the model may be asked about."""

from __future__ import annotations

from dataclasses import replace

from eblime.engine.settings import LoopSettings

__all__ = ["check_most_calls", "check_most_masks", "least_answers", "limited", "may_ask_all"]


def least_answers(n_masks: int, p: int) -> int:
    """How many answers an explanation needs: more than features, unless fewer are wanted."""
    return min(n_masks, p + 2)


def may_ask_all(settings: LoopSettings, p: int) -> bool:
    """Whether the model may be asked about all 2^p masks."""
    most = settings.calls.max_calls
    return most is None or 2**p <= most


def limited(settings: LoopSettings, p: int, *, exact: bool) -> LoopSettings:
    """The settings with no more masks until a rule is reached than the method takes.

    Where there is room for all 2^p masks, a design given by its name asks about all of them in the
    end, which need no fit: then nothing is cut.
    """
    most = _most_masks(settings)
    if settings.until is None or most is None:
        return settings
    if isinstance(settings.design, str) and _has_room_for_all(settings, p, exact=exact):
        return settings
    return replace(settings, max_masks=min(settings.max_masks, most))


def check_most_calls(settings: LoopSettings, p: int) -> None:
    """Refuse a limit that has no room for the input itself and enough perturbed inputs."""
    most, least = settings.calls.max_calls, min(2**p, least_answers(settings.n_masks, p) + 1)
    if most is not None and most < least:
        raise ValueError(
            f"`max_calls` must be at least {least} for an input with {p} features; got {most}."
        )


def check_most_masks(settings: LoopSettings, p: int, *, exact: bool) -> None:
    """Refuse more masks than the method takes, unless they are all masks.

    With a stop rule `limited` has cut the number of masks already.
    """
    most, n = _most_masks(settings), settings.budget
    if most is None or min(n, 2**p) <= most or _has_room_for_all(settings, p, exact=exact):
        return
    raise ValueError(
        f"`n_masks` must be at most {most:,} for {settings.fitted_by.name}, or at least 2^{p} to "
        f"ask about all masks; got {n:,}. Use EBLIME() for more masks."
    )


def _most_masks(settings: LoopSettings) -> int | None:
    """The largest number of masks that the method takes; None if there is no limit."""
    found: int | None = getattr(settings.fitted_by, "most_masks", None)
    return found


def _has_room_for_all(settings: LoopSettings, p: int, *, exact: bool) -> bool:
    """Whether all 2^p masks can be asked: each determines its input, and there are not too many."""
    return exact and 2**p <= settings.budget and may_ask_all(settings, p)
