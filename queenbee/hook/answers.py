"""What a hook answers, in the shape that the asking agent reads. `docs/enforcement.md`."""

from __future__ import annotations

from queenbee.hook.events import CURSOR, GEMINI

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.hook.events import Event

    Answer = dict[str, object]


def denial(event: Event, reason: str) -> Answer:
    """Returns the answer that stops an edit and tells the agent why."""
    if event.agent == CURSOR and event.name[:1].islower():
        return {"permission": "deny", "user_message": reason, "agent_message": reason}
    if event.agent == GEMINI:
        return {"decision": "deny", "reason": reason}
    return {
        "hookSpecificOutput": {
            "hookEventName": event.name,
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }


def context(event: Event, text: str) -> Answer:
    """Returns the answer that tells the agent something but stops nothing."""
    if event.agent == CURSOR and event.name[:1].islower():
        return {"additional_context": text}
    return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}}


def reads_context(event: Event) -> bool:
    """Returns whether the agent reads what a hook tells it at this event."""
    return event.name != "afterFileEdit"


def kept(reason: str) -> Answer:
    """Returns the answer that keeps an agent from stopping, and tells it why."""
    return {"decision": "block", "reason": reason}


def warning(event: Event, text: str) -> Answer:
    """Returns the answer that tells the user something but stops nothing."""
    return {} if event.agent == CURSOR else {"systemMessage": text}
