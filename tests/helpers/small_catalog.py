"""A catalog of a dozen servers, with names, values and scripts of every kind."""

import json

from mcpzip.model.entry import Entry

# server: {tool: (description, parameters)}
SERVERS: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = {
    "slack": {
        "send_message": ("Send a Slack message", ("channel", "text")),
        "delete_message": ("Delete a message from a channel", ("channel", "ts")),
        "channels_list": ("List Slack channels", ("limit",)),
    },
    "telegram": {
        "send_msg": ("Send a Telegram message", ("chat_id", "text")),
        "getUpdates": ("Receive incoming updates of the bot", ("offset",)),
    },
    "todoist": {
        "create_task": ("Create a new task", ("content", "project_id")),
        "complete_task": ("Mark a task as done", ("task_id",)),
        "get_tasks": ("Get the tasks of your todo list", ("filter",)),
    },
    "google-calendar": {
        "CreateEvent": ("Create an event in a calendar", ("start", "end", "summary")),
        "ListEvents": ("List upcoming events and meetings", ("calendar_id",)),
    },
    "gmail": {
        "SearchEmails": ("Search the mailbox with Gmail's own query language", ("query",)),
        "SendEmail": ("Send an email", ("to", "subject", "body")),
    },
    "github": {
        "create_issue": ("Open a new issue in a repository", ("owner", "repo", "title")),
        "list_commits": ("List the commits of a branch", ("owner", "repo", "sha")),
        "HTTPServerStatus": ("Whether the API is up", ()),
    },
    "workflow": {
        "start_state_machine": ("Start an execution of a state machine", ("arn",)),
        "runTestSuite.fast": ("Run the fast tests of a project", ("path",)),
    },
    "ops": {
        "tail_log": ("Show the last lines a service logged", ("service",)),
        "debug-pod": ("Attach a debugger to a pod", ("pod",)),
        "deploy_release": ("Deploy a release of an application to production", ("app", "version")),
    },
    "identity": {
        "authenticate_user": ("Check a user's password and second factor", ("user",)),
        "OAuth2Token": ("Exchange a code for a token", ("code",)),
        "who_am_i": ("The signed-in user", ()),
    },
    "packages": {
        "install_dependencies": ("Install what a project's manifest names", ("path",)),
        "setup_environment": ("Prepare a virtual environment", ("path",)),
    },
    "tianqi": {
        "查询天气": ("按城市查询天气预报", ("城市",)),
        "空气质量": ("查询城市的空气质量指数", ("城市",)),
    },
    "images": {
        "convert": ("Convert a picture", ("format",)),
        "resize": ("Change the size of a picture", ("width", "height")),
    },
}
ENUMS = {("images", "convert"): {"format": ["png", "webp", "tiff"]}}


def entries() -> list[Entry]:
    made = []
    for server, tools in SERVERS.items():
        for name, (description, parameters) in tools.items():
            properties = {
                parameter: {"type": "string", **_enum(server, name, parameter)} for parameter in parameters
            }
            raw = {"name": name, "description": description, "inputSchema": {"properties": properties}}
            made.append(Entry.parse(server, json.dumps(raw).encode()))
    return made


def _enum(server: str, name: str, parameter: str) -> dict[str, object]:
    values = ENUMS.get((server, name), {}).get(parameter)
    return {"enum": values} if values else {}
