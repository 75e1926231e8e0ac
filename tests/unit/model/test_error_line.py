"""Which line of stderr is quoted when a server ended. The outputs are of real programs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.error_line import error_line

SAID = {
    "node: a missing file": (
        """
node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module '/srv/nope.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)
    at Module._load (node:internal/modules/cjs/loader:1038:27)
    at node:internal/main/run_main_module:28:49 {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v20.20.2
""",
        "Error: Cannot find module '/srv/nope.js'",
    ),
    "node: a missing package": (
        """
node:internal/modules/package_json_reader:255
  throw new ERR_MODULE_NOT_FOUND(packageName, fileURLToPath(base), null);
        ^

Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/index.js
    at packageResolve (node:internal/modules/esm/resolve:838:9)
    at defaultResolve (node:internal/modules/esm/resolve:1169:11) {
  code: 'ERR_MODULE_NOT_FOUND'
}

Node.js v22.3.0
""",
        "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/index.js",
    ),
    "node: an error that is thrown": (
        """
[eval]:1
throw new Error("LINEAR_TOKEN is required")
^

Error: LINEAR_TOKEN is required
    at [eval]:1:7
    at runScriptInThisContext (node:internal/vm:209:10)

Node.js v20.20.2
""",
        "Error: LINEAR_TOKEN is required",
    ),
    "node: an error with a cause": (
        """
node:internal/deps/undici/undici:14976
      Error.captureStackTrace(err);
            ^

TypeError: fetch failed
    at node:internal/deps/undici/undici:14976:13 {
  [cause]: Error: getaddrinfo ENOTFOUND api.linear.app
      at GetAddrInfoReqWrap.onlookupall [as oncomplete] (node:dns:120:26) {
    errno: -3008,
    code: 'ENOTFOUND',
    syscall: 'getaddrinfo'
  }
}

Node.js v20.20.2
""",
        "TypeError: fetch failed; caused by: Error: getaddrinfo ENOTFOUND api.linear.app",
    ),
    "node: a rejected promise": (
        """
node:internal/process/promises:389
      new UnhandledPromiseRejection(reason);
      ^

UnhandledPromiseRejection: This error originated either by throwing inside of an async function
    at throwUnhandledRejectionsMode (node:internal/process/promises:389:7) {
  code: 'ERR_UNHANDLED_REJECTION'
}

Node.js v20.20.2
""",
        "UnhandledPromiseRejection: This error originated either by throwing inside of an async function",
    ),
    "node: a syntax error": (
        """
/srv/index.js:3
const x = ;
          ^

SyntaxError: Unexpected token ';'
    at wrapSafe (node:internal/modules/cjs/loader:1378:20)

Node.js v20.20.2
""",
        "SyntaxError: Unexpected token ';'",
    ),
    "node: a server that says it in words": (
        """
(node:77) ExperimentalWarning: Type Stripping is an experimental feature
(Use `node --trace-warnings ...` to show where the warning was created)
Please set BRAVE_API_KEY
""",
        "Please set BRAVE_API_KEY",
    ),
    "npx: an unknown package": (
        """
npm warn Unknown user config "nodedir". This will stop working in the next major version of npm.
npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/@nope%2fdefinitely-not
npm error 404
npm error 404  The requested resource '@nope/definitely-not@*' could not be found
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git url.
npm error A complete log of this run can be found in: /home/u/.npm/_logs/2026-11-24T02_37_05_731Z-debug-0.log
""",
        "npm error 404 Not Found - GET https://registry.npmjs.org/@nope%2fdefinitely-not",
    ),
    "npm 8: an unknown package": (
        """
npm ERR! code E404
npm ERR! 404 Not Found - GET https://registry.npmjs.org/nope - Not found
npm ERR! 404
npm ERR! 404  'nope@*' is not in this registry.

npm ERR! A complete log of this run can be found in:
npm ERR!     /home/u/.npm/_logs/2023-01-01T00_00_00_000Z-debug-0.log
""",
        "npm ERR! 404 Not Found - GET https://registry.npmjs.org/nope - Not found",
    ),
    "npx: an unknown version": (
        """
npm error code ETARGET
npm error notarget No matching version found for @modelcontextprotocol/server-memory@99.9.9.
npm error notarget In most cases you or one of your dependencies are requesting
npm error notarget a package version that doesn't exist.
npm error A complete log of this run can be found in: /home/u/.npm/_logs/x-debug-0.log
""",
        "npm error notarget No matching version found for @modelcontextprotocol/server-memory@99.9.9.",
    ),
    "npx: no network": (
        """
npm error code ENOTFOUND
npm error syscall getaddrinfo
npm error errno ENOTFOUND
npm error network request to https://registry.npmjs.org/x failed, reason: connect ECONNREFUSED 10.0.0.1:8080
npm error network This is a problem related to network connectivity.
npm error network In most cases you are behind a proxy or have bad network settings.
npm error network
npm error network If you are behind a proxy, please make sure that the
npm error network 'proxy' config is set properly.  See: 'npm help config'
npm error A complete log of this run can be found in: /home/u/.npm/_logs/x-debug-0.log
""",
        "npm error network request to https://registry.npmjs.org/x failed, reason: connect ECONNREFUSED "
        "10.0.0.1:8080",
    ),
    "npx: a package without a command": (
        """
npm error could not determine executable to run
npm error A complete log of this run can be found in: /home/u/.npm/_logs/x-debug-0.log
""",
        "npm error could not determine executable to run",
    ),
    "npm: no permission": (
        """
npm error code EACCES
npm error syscall mkdir
npm error path /usr/lib/node_modules/x
npm error errno -13
npm error Error: EACCES: permission denied, mkdir '/usr/lib/node_modules/x'
npm error     at async mkdir (node:internal/fs/promises:858:10)
npm error The operation was rejected by your operating system.
npm error A complete log of this run can be found in: /root/.npm/_logs/x-debug-0.log
""",
        "npm error Error: EACCES: permission denied, mkdir '/usr/lib/node_modules/x'",
    ),
    "uvx: an unknown package": (
        """
  × No solution found when resolving tool dependencies:
  ╰─▶ Because mcp-nope was not found in the package registry and you require
      mcp-nope, we can conclude that your requirements are unsatisfiable.
""",
        "Because mcp-nope was not found in the package registry and you require mcp-nope, we can conclude "
        "that your requirements are unsatisfiable.",
    ),
    "uvx: a package without this command": (
        """
Installed 12 packages in 18ms
An executable named `mcp-x` is not provided by package `mcp-y`.
The following executables are available:
- mcp-z
""",
        "An executable named `mcp-x` is not provided by package `mcp-y`.",
    ),
    "uvx: a certificate": (
        """
error: Request failed after 3 retries
  Caused by: Failed to fetch: `https://pypi.org/simple/mcp-x/`
  Caused by: error sending request for url (https://pypi.org/simple/mcp-x/)
  Caused by: client error (Connect)
  Caused by: invalid peer certificate: UnknownIssuer
""",
        "error: Request failed after 3 retries; caused by: invalid peer certificate: UnknownIssuer",
    ),
    "python: an exception": (
        """
Traceback (most recent call last):
  File "/srv/server.py", line 8, in <module>
    main()
  File "/srv/server.py", line 4, in main
    token = os.environ["GITHUB_TOKEN"]
            ~~~~~~~~~~^^^^^^^^^^^^^^^^
  File "<frozen os>", line 714, in __getitem__
KeyError: 'GITHUB_TOKEN'
""",
        "KeyError: 'GITHUB_TOKEN'",
    ),
    "python: one exception after another": (
        """
Traceback (most recent call last):
  File "/srv/server.py", line 2, in <module>
    int("x")
ValueError: invalid literal for int() with base 10: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/server.py", line 4, in <module>
    raise RuntimeError("PORT must be a number")
RuntimeError: PORT must be a number
""",
        "RuntimeError: PORT must be a number",
    ),
    "python: a group of exceptions": (
        """
  + Exception Group Traceback (most recent call last):
  |   File "/srv/server.py", line 9, in <module>
  |     anyio.run(main)
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/srv/server.py", line 5, in main
    |     raise ValueError("no API key")
    | ValueError: no API key
    +------------------------------------
""",
        "ValueError: no API key",
    ),
    "python: pydantic's many lines": (
        """
Traceback (most recent call last):
  File "/srv/server.py", line 12, in <module>
    settings = Settings()
pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings
api_key
  Field required [type=missing, input_value={}, input_type=dict]
    For further information visit https://errors.pydantic.dev/2.11/v/missing
""",
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings",
    ),
    "python: a missing module": (
        "/usr/bin/python3: No module named mcp_server_time",
        "/usr/bin/python3: No module named mcp_server_time",
    ),
    "python: a missing file": (
        "python: can't open file '/srv/server.py': [Errno 2] No such file or directory",
        "python: can't open file '/srv/server.py': [Errno 2] No such file or directory",
    ),
    "python: argparse": (
        """
usage: server.py [-h] --token TOKEN
server.py: error: the following arguments are required: --token
""",
        "server.py: error: the following arguments are required: --token",
    ),
    "python: click": (
        """
Usage: server [OPTIONS]
Try 'server --help' for help.

Error: Missing option '--token'.
""",
        "Error: Missing option '--token'.",
    ),
    "python: an interrupt": (
        'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\nKeyboardInterrupt\n',
        "KeyboardInterrupt",
    ),
    "a shell": ("sh: 1: mcp-nope: not found", "sh: 1: mcp-nope: not found"),
    "bash": (
        "bash: line 1: uvx: command not found\nexit status 127\n",
        "bash: line 1: uvx: command not found",
    ),
    "env": (
        "/usr/bin/env: ‘node’: No such file or directory",
        "/usr/bin/env: ‘node’: No such file or directory",
    ),
    "Windows' shell": (
        "'npx' is not recognized as an internal or external command,\noperable program or batch file.",
        "'npx' is not recognized as an internal or external command,",
    ),
    "docker: an unknown image": (
        """
Unable to find image 'mcp/nope:latest' locally
docker: Error response from daemon: pull access denied for mcp/nope, repository does not exist

Run 'docker run --help' for more information
""",
        "docker: Error response from daemon: pull access denied for mcp/nope, repository does not exist",
    ),
    "docker: no daemon": (
        """
docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?
See 'docker run --help'.
""",
        "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon "
        "running?",
    ),
    "docker: no such command in the image": (
        """
docker: Error response from daemon: failed to create: exec: "x": executable file not found in $PATH: unknown
Run 'docker run --help' for more information
""",
        'docker: Error response from daemon: failed to create: exec: "x": executable file not found in '
        "$PATH: unknown",
    ),
    "go: a panic": (
        """
panic: TOKEN is not set

goroutine 1 [running]:
main.main()
\t/src/main.go:5 +0x25
exit status 2
""",
        "panic: TOKEN is not set",
    ),
    "go: log.Fatal": (
        "2026/11/24 02:37:05 INFO starting\n"
        "2026/11/24 02:37:05 listen tcp :8080: bind: address already in use\nexit status 1\n",
        "2026/11/24 02:37:05 listen tcp :8080: bind: address already in use",
    ),
    "go: cobra": (
        """
Error: GITHUB_PERSONAL_ACCESS_TOKEN not set
Usage:
  server stdio [flags]

Flags:
  -h, --help   help for stdio

""",
        "Error: GITHUB_PERSONAL_ACCESS_TOKEN not set",
    ),
    "go: structured logs": (
        "time=2026-11-24T02:37:05Z level=info msg=start\n"
        'time=2026-11-24T02:37:05Z level=error msg="no token"\n'
        "time=2026-11-24T02:37:06Z level=info msg=bye\n",
        'time=2026-11-24T02:37:05Z level=error msg="no token"',
    ),
    "rust: a panic": (
        """
thread 'main' (2659) panicked at src/main.rs:1:46:
called `Result::unwrap()` on an `Err` value: NotPresent
stack backtrace:
   0: __rustc::rust_begin_unwind
             at /rustc/5980/library/std/src/panicking.rs:689:5
   1: core::panicking::panic_fmt
note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.
""",
        "called `Result::unwrap()` on an `Err` value: NotPresent",
    ),
    "rust: a panic before 1.73": (
        "thread 'main' panicked at 'TOKEN is not set', src/main.rs:2:5\n"
        "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
        "thread 'main' panicked at 'TOKEN is not set', src/main.rs:2:5",
    ),
    "rust: main returned an error": (
        'Error: Os { code: 98, kind: AddrInUse, message: "Address already in use" }',
        'Error: Os { code: 98, kind: AddrInUse, message: "Address already in use" }',
    ),
    "rust: clap": (
        "error: the following required arguments were not provided:\n  --token <TOKEN>\n\n"
        "Usage: server --token <TOKEN>\n\nFor more information, try '--help'.\n",
        "error: the following required arguments were not provided:",
    ),
    "java: an exception with a cause": (
        """
Exception in thread "main" java.lang.IllegalStateException: API_KEY is not a number
\tat B.main(B.java:1)
Caused by: java.lang.NumberFormatException: For input string: "x"
\tat java.base/java.lang.Integer.parseInt(Integer.java:668)
\t... 10 more
""",
        'Exception in thread "main" java.lang.IllegalStateException: API_KEY is not a number; caused by: '
        'java.lang.NumberFormatException: For input string: "x"',
    ),
    "java: a missing jar": (
        "Error: Unable to access jarfile server.jar",
        "Error: Unable to access jarfile server.jar",
    ),
    "colours": (
        "\x1b[1m\x1b[31merror\x1b[0m\x1b[1m:\x1b[0m no token\n\x1b[2mexit status 1\x1b[0m",
        "error: no token",
    ),
    "only noise": ("\nNode.js v20.20.2\n", "Node.js v20.20.2"),
    "nothing": ("\n \n", ""),
}


@pytest.mark.parametrize("program", SAID)
def test_the_line_that_says_why(program: str) -> None:
    stderr, telling = SAID[program]
    assert error_line(stderr.split("\n")) == telling


def test_an_older_error_is_not_shown_for_a_newer_one() -> None:
    lines = ["Error: connect ECONNREFUSED, trying again", "connected", "Error: the token has expired", "bye"]
    assert error_line(lines) == "Error: the token has expired"


@given(st.lists(st.text(max_size=300), max_size=10))
def test_any_text_has_a_line_of_itself(lines: list[str]) -> None:
    found = error_line(lines)
    assert bool(found) <= any(map(str.strip, lines))


@pytest.mark.parametrize(
    "unit", ["a.", "at ", "Error", "  ", "x: ", "|", "[cause]: ", "\x1b[", "A", "main.f("]
)
def test_a_long_line_takes_no_time(unit: str) -> None:
    """Regular expressions with nested repetitions would need minutes for it."""
    error_line([unit * 2_000] * 100)
