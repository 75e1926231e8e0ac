"""One call for every tool of the real servers, and the plain request that should find the tool.

The rule: ``request`` is what a person would say who has not read the tool's name or description.
``{files}`` and ``{repo}`` in arguments stand for the world's paths.
"""

from dataclasses import dataclass
from pathlib import Path

from helpers.json_client import Json


@dataclass(frozen=True)
class Call:
    """One call.

    changes: whether it changes the world. progress: whether it tells of its progress. times: how often it is
    made; twice for what is switched on and has to be switched off again. unordered: its text is a JSON object
    whose order whoever started the server decides.
    """

    tool: str
    request: str
    arguments: Json
    changes: bool = False
    progress: bool = False
    times: int = 1
    unordered: bool = False

    def filled(self, files: Path, repo: Path) -> Json:
        """The arguments with the paths put in."""
        filled = _filled(self.arguments, {"{files}": str(files), "{repo}": str(repo)})
        assert isinstance(filled, dict)
        return filled


def _filled(value: object, places: dict[str, str]) -> object:
    match value:
        case str():
            for name, path in places.items():
                value = value.replace(name, path)
            return value
        case dict():
            return {key: _filled(inner, places) for key, inner in value.items()}
        case list():
            return [_filled(inner, places) for inner in value]
        case _:
            return value


_ENTITY = {"name": "Charles", "entityType": "person", "observations": ["is impatient", "ß → ss"]}
_RELATION = {"from": "Ada", "to": "Engine", "relationType": "programs"}

EVERYTHING = (
    Call("echo", "echo a message back to me", {"message": "grüezi “wohl”\n\t\u2028"}),
    Call(
        "get-annotated-message",
        "show a message with annotations",
        {"messageType": "error", "includeImage": True},
    ),
    Call("get-env", "print the environment variables", {}, unordered=True),
    Call("get-resource-links", "give me links to resources", {"count": 4}),
    Call(
        "get-resource-reference", "get a reference to a resource", {"resourceType": "Blob", "resourceId": 1}
    ),
    Call("get-structured-content", "structured weather content for a city", {"location": "Chicago"}),
    Call("get-sum", "add two numbers", {"a": 0.1, "b": 12345678901234567}),
    Call("get-tiny-image", "show me a tiny picture", {}),
    Call(
        "gzip-file-as-resource",
        "compress a file with gzip",
        {"name": "t.gz", "data": "data:text/plain,hello", "outputType": "resource"},
    ),
    Call("simulate-research-query", "research a topic in several stages", {"topic": "proxies"}),
    Call("toggle-simulated-logging", "switch simulated logging on", {}, times=2),
    Call("toggle-subscriber-updates", "turn resource subscription updates on or off", {}, times=2),
    Call(
        "trigger-long-running-operation",
        "run a long operation and see its progress",
        {"duration": 0.2, "steps": 4},
        progress=True,
    ),
)
FILESYSTEM = (
    Call("read_file", "read a file (the old way, deprecated)", {"path": "{files}/README.md"}),
    Call("read_text_file", "read the contents of a text file", {"path": "{files}/notes/todo.txt", "tail": 2}),
    Call("read_media_file", "load an image or audio file", {"path": "{files}/dot.png"}),
    Call(
        "read_multiple_files",
        "read several files at once",
        {"paths": ["{files}/README.md", "{files}/missing.md", "{files}/notes/todo.txt"]},
    ),
    Call(
        "write_file",
        "create a new file with some text",
        {"path": "{files}/neu.txt", "content": "é\r\n"},
        changes=True,
    ),
    Call(
        "edit_file",
        "replace some lines in a text file",
        {"path": "{files}/notes/todo.txt", "edits": [{"oldText": "bread", "newText": "cheese"}]},
        changes=True,
    ),
    Call("create_directory", "make a new directory", {"path": "{files}/a/b"}, changes=True),
    Call("list_directory", "what is in this directory", {"path": "{files}"}),
    Call(
        "list_directory_with_sizes",
        "how big are the files in a directory",
        {"path": "{files}", "sortBy": "size"},
    ),
    Call("directory_tree", "show the folder as a tree", {"path": "{files}"}),
    Call(
        "move_file",
        "rename a file",
        {"source": "{files}/README.md", "destination": "{files}/notes/README.md"},
        changes=True,
    ),
    Call("search_files", "search for files matching a pattern", {"path": "{files}", "pattern": "**/*.md"}),
    Call(
        "get_file_info",
        "when was this file modified and what are its permissions",
        {"path": "{files}/data.bin"},
    ),
    Call("list_allowed_directories", "which directories am I allowed to access", {}),
)
MEMORY = (
    Call(
        "create_entities",
        "remember a new person in the knowledge graph",
        {"entities": [_ENTITY]},
        changes=True,
    ),
    Call(
        "create_relations",
        "connect two entities with a relation",
        {"relations": [{"from": "Engine", "to": "Ada", "relationType": "bores"}]},
        changes=True,
    ),
    Call(
        "add_observations",
        "add an observation to an entity",
        {"observations": [{"entityName": "Ada", "contents": ["counts"]}]},
        changes=True,
    ),
    Call("delete_entities", "forget an entity and its relations", {"entityNames": ["Engine"]}, changes=True),
    Call(
        "delete_observations",
        "delete some observations of an entity",
        {"deletions": [{"entityName": "Ada", "observations": ["likes poetry"]}]},
        changes=True,
    ),
    Call(
        "delete_relations",
        "remove a relation from the knowledge graph",
        {"relations": [_RELATION]},
        changes=True,
    ),
    Call("read_graph", "read the whole knowledge graph", {}),
    Call("search_nodes", "search the knowledge graph for something", {"query": "brass"}),
    Call("open_nodes", "open nodes of the knowledge graph by name", {"names": ["Ada", "nobody"]}),
)
TIME = (
    Call("get_current_time", "what time is it in Tokyo", {"timezone": "Asia/Tokyo"}),
    Call(
        "convert_time",
        "convert a time from one timezone to another",
        {"source_timezone": "Asia/Kathmandu", "time": "16:30", "target_timezone": "America/New_York"},
    ),
)
GIT = (
    Call("git_status", "what is the state of my git working tree", {"repo_path": "{repo}"}),
    Call(
        "git_diff_unstaged",
        "show changes that are not staged yet",
        {"repo_path": "{repo}", "context_lines": 1},
    ),
    Call("git_diff_staged", "show the changes that are staged for commit", {"repo_path": "{repo}"}),
    Call("git_diff", "compare branches or commits", {"repo_path": "{repo}", "target": "draft"}),
    Call("git_commit", "commit my changes", {"repo_path": "{repo}", "message": "Save – “now”"}, changes=True),
    Call(
        "git_add",
        "add a file to the staging area",
        {"repo_path": "{repo}", "files": ["new.txt"]},
        changes=True,
    ),
    Call("git_reset", "unstage all staged changes", {"repo_path": "{repo}"}, changes=True),
    Call("git_log", "show the history of commits", {"repo_path": "{repo}", "max_count": 5}),
    Call(
        "git_create_branch",
        "create a new branch",
        {"repo_path": "{repo}", "branch_name": "idea"},
        changes=True,
    ),
    Call(
        "git_checkout",
        "switch to another branch",
        {"repo_path": "{repo}", "branch_name": "draft"},
        changes=True,
    ),
    Call("git_show", "show the contents of a commit", {"repo_path": "{repo}", "revision": "HEAD"}),
    Call("git_branch", "list the branches", {"repo_path": "{repo}", "branch_type": "local"}),
)

CALLS = {
    "everything": EVERYTHING,
    "everything-http": EVERYTHING,
    "everything-sse": EVERYTHING,
    "filesystem": FILESYSTEM,
    "memory": MEMORY,
    "time": TIME,
    "git": GIT,
}
