"""Questions to a person at a terminal: each is one line of text, and so is its answer."""

import json

import click


class Questions:
    """ask: whether there is a person to ask; else every confirmation has the answer yes."""

    def __init__(self, *, ask: bool) -> None:
        self.ask = ask

    def confirm(self, question: str, *, default: bool = True) -> bool:
        """Yes or no. default: the answer of the Enter key."""
        return not self.ask or click.confirm(question, default=default, err=True)

    def read(self, question: str, default: str = "") -> str:
        """A text; JSON may have several lines."""
        text: str = click.prompt(question, default=default, show_default=bool(default), err=True)
        while text.lstrip().startswith("{") and not _is_json(text):  # a paste of several lines
            line = click.prompt("", default="", show_default=False, prompt_suffix="", err=True)
            if not line:
                break
            text += "\n" + line
        return text

    def secret(self, question: str) -> str:
        """A text that the terminal does not show; "" for none."""
        found: str = click.prompt(question, default="", show_default=False, hide_input=True, err=True)
        return found.strip()


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
