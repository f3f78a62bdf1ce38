"""What a hook answers, in the shape that the asking agent reads.

There are three shapes: Claude Code's, which Codex, Qwen Code and our plugin also read (in OpenCode
and Kilo CLI), and those of Gemini CLI, Cursor and Copilot CLI, which differ from it by event.
`tests/hook/shapes` records what each agent documents, and `docs/agents.md` has the table.
"""

from __future__ import annotations

from queenbee.hook.events import CODEX, COPILOT, CURSOR, GEMINI, KILO, OPENCODE, QWEN, Event

Answer = dict[str, object]
Plain = tuple[str, int]
"""An answer that is no JSON: text for standard output, and an exit status."""

_CONTEXT = {
    CODEX: frozenset(("sessionstart", "userpromptsubmit", "posttooluse", "subagentstart")),
    GEMINI: frozenset(("sessionstart", "beforeagent", "aftertool")),
    CURSOR: frozenset(("sessionstart", "posttooluse")),
    COPILOT: frozenset(("sessionstart", "posttooluse", "subagentstart")),
    OPENCODE: frozenset(("sessionstart", "userpromptsubmit", "posttooluse", "subagentstart")),
    QWEN: frozenset(("sessionstart", "userpromptsubmit", "posttooluse", "subagentstart")),
    KILO: frozenset(("sessionstart", "userpromptsubmit", "posttooluse", "subagentstart")),
}
"""The events, letters only, at which an agent shows what a hook adds to its model."""
_CONTEXT_OF_ANY = frozenset((
    "sessionstart", "userpromptsubmit", "pretooluse", "posttooluse", "subagentstart",
))  # fmt: skip
_STOPS = frozenset(("stop", "subagentstop", "agentstop", "afteragent"))


def denial(event: Event, reason: str) -> Answer:
    """Returns the answer that stops an edit and tells the agent why."""
    if _native(event, CURSOR):
        return {"permission": "deny", "user_message": reason, "agent_message": reason}
    if event.agent == GEMINI:
        return {"decision": "deny", "reason": reason}
    decision: Answer = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    if _native(event, COPILOT):
        return decision
    answer = _specific(event, decision)
    return {**decision, **answer} if event.agent == COPILOT else answer


def context(event: Event, text: str) -> Answer:
    """Returns the answer that tells the agent something but stops nothing.

    Not every event carries it to the model: see `reads_context`.
    """
    if _native(event, CURSOR):
        return {"additional_context": text}
    if _native(event, COPILOT):
        return {"additionalContext": text}
    answer = _specific(event, {"additionalContext": text})
    return {"additionalContext": text, **answer} if event.agent == COPILOT else answer


def with_name(event: Event, answer: Answer, name: str | None) -> Answer:
    """Returns the answer with the name that the session's shell commands should act under.

    Our plugin for OpenCode and Kilo CLI reads it; the other agents have a file for it, or nothing.
    """
    if event.agent not in (OPENCODE, KILO) or name is None:
        return answer
    return {**answer, "env": {"QUEEN_DROID": name}}


def reads_context(event: Event) -> bool:
    """Returns whether the agent shows its model what `context` answers to this event.

    If not, what is told once must wait for an event that does.
    """
    if event.agent == CURSOR and not _native(event, CURSOR):
        return event.letters in _CONTEXT_OF_ANY
    return event.letters in _CONTEXT.get(event.agent, _CONTEXT_OF_ANY)


def hold(event: Event, reason: str) -> Answer:
    """Returns the answer that keeps an agent from stopping: it goes on with `reason` as its task.

    Only at an event for which `can_hold` is true, and not if `event.was_kept` is: an agent that was
    kept once and stops again has nothing to add.
    """
    if _native(event, CURSOR):
        return {"followup_message": reason}
    if event.agent == GEMINI:
        return {"decision": "deny", "reason": reason}
    decision: Answer = {"decision": "block", "reason": reason}
    if event.agent == COPILOT and not _native(event, COPILOT):
        return {**decision, **_specific(event, decision)}
    return decision


def can_hold(event: Event) -> bool:
    """Returns whether an agent is about to stop, and would go on if `hold` asks it to."""
    return event.letters in _STOPS


def warning(event: Event, text: str) -> Answer:
    """Returns the answer that tells the user something but stops nothing."""
    return {} if event.agent == CURSOR or _native(event, COPILOT) else {"systemMessage": text}


def _native(event: Event, agent: str) -> bool:
    """Returns whether an agent that can also run Claude Code's hooks speaks its own protocol.

    Its own events begin with a small letter.
    """
    return event.agent == agent and event.name[:1].islower()


def _specific(event: Event, fields: Answer) -> Answer:
    return {"hookSpecificOutput": {"hookEventName": event.name, **fields}}
