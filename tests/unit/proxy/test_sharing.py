"""Who uses a server together with whom, by what is known of it."""

import json
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpzip.config import Config, load
from mcpzip.proxy.client_capabilities import declared
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.exchange import Client
from mcpzip.proxy.sharing import Sharing, Use
from mcpzip.wire import Era

QUESTIONS = {"sampling": "sampling/createMessage", "elicitation": "elicitation/create", "roots": "roots/list"}
CAPABILITIES = st.dictionaries(
    st.sampled_from([*QUESTIONS, "tasks", "experimental"]), st.sampled_from([{}, {"listChanged": True}])
)
ASKED = st.sets(st.sampled_from([*QUESTIONS]))
IN_FOLDER = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def config_of(folder: Path, **keys: object) -> Config:
    path = folder / "config.json"
    path.write_text(json.dumps({"mcpServers": {"up": {"command": "up", **keys}}}))
    return load(path, {})


def sharing(config: Config, asked: set[str]) -> Sharing:
    found = Sharing(CurrentConfig(config))
    found._asked = {}  # not those of the file
    found._saving.want = lambda after: None  # type: ignore[method-assign]
    for name in asked:
        assert found.asked("up", QUESTIONS[name], None)
        assert not found.asked("up", QUESTIONS[name], None)
    return found


def client(capabilities: object, **more: object) -> Client:
    return Client(Era.LEGACY, json.dumps(capabilities).encode(), **more)  # type: ignore[arg-type]


@IN_FOLDER
@given(CAPABILITIES, CAPABILITIES, ASKED)
def test_clients_share_only_if_they_differ_in_nothing_that_matters(
    tmp_path: Path, one: dict[str, object], other: dict[str, object], asked: set[str]
) -> None:
    known = sharing(config_of(tmp_path), asked)
    uses = [known.use(client(each), "up") for each in (one, other)]
    for has, use in zip((one, other), uses, strict=True):
        assert use.kind != "own"
        if (has.keys() & asked) - {"roots"}:
            assert use == Use("usual")
        if use.kind in ("shared", "any roots"):
            said = json.loads(use.capabilities)
            assert ("roots" in said) == (use.kind == "any roots") == ("roots" not in asked)
            assert said.keys() - {"roots"} == has.keys() - {"roots", "tasks"}
        assert (use.otherwise is None) == (use.kind != "any roots" or "roots" in has)
        if use.otherwise is not None:
            assert "roots" not in json.loads(use.otherwise.capabilities)
        assert (use.kind == "equal roots") == (
            "roots" in asked and "roots" in has and not (has.keys() & asked) - {"roots"}
        )
    if uses[0][:3] == uses[1][:3] != Use("usual")[:3]:
        without = [{key: each[key] for key in each if key not in ("roots", "tasks")} for each in (one, other)]
        assert without[0] == without[1]
        if "roots" in asked:
            assert one.get("roots") == other.get("roots")


@IN_FOLDER
@given(CAPABILITIES, ASKED, st.sampled_from(["never", "always", "per-cwd"]))
def test_the_config_decides(tmp_path: Path, has: dict[str, object], asked: set[str], share: str) -> None:
    known = sharing(config_of(tmp_path, share=share), asked)
    here, there = (client(has, folder=folder) for folder in ("/a", "/b"))
    if share == "never":
        assert known.use(here, "up") == Use("own")
    elif share == "always":
        can = declared(here.capabilities).can_be_asked
        assert known.use(here, "up") == (Use("shared", here.capabilities) if can else Use("usual"))
    else:
        use = known.use(here, "up")
        assert use.kind == "own" or (use != known.use(there, "up") and use.folder == "/a")


@IN_FOLDER
@given(CAPABILITIES, ASKED)
def test_one_that_set_a_log_level_or_comes_alone_shares_nothing(
    tmp_path: Path, has: dict[str, object], asked: set[str]
) -> None:
    known = sharing(config_of(tmp_path), asked)
    for more in ({"log_level": "error"}, {"is_only_client": True}, {"has_session": False}):
        assert known.use(client(has, **more), "up") == Use("usual")
    assert known.use(client(has), "gone") == Use("usual")
    command = Client(None, json.dumps(has).encode())
    assert known.use(command, "up") == Use("usual")


@given(CAPABILITIES)
def test_the_order_of_capabilities_means_nothing(has: dict[str, object]) -> None:
    one, other = (declared(json.dumps(said).encode()) for said in (has, dict(reversed(has.items()))))
    assert one == other


def _is_object(text: bytes) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


@given(st.binary(max_size=20).filter(lambda text: not _is_object(text)))
def test_capabilities_that_cannot_be_read_are_none(text: bytes) -> None:
    """Random bytes can be an object too: ``{"":""}`` failed here."""
    has = declared(text)
    assert (has.can_be_asked, has.has_roots, has.announces_roots) == (False, False, False)
    assert has.without_roots == b"{}"


def test_a_word_is_a_path_for_those_whose_folder_has_it(tmp_path: Path) -> None:
    known = sharing(config_of(tmp_path, args=["serve", "data"]), set())
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder in folders:
        folder.mkdir()
    (folders[0] / "data").mkdir()
    (folders[1] / "data").write_text("")

    def folder_of(folder: Path | None, name: str = "up") -> str | None:
        return known.use(client({}, folder=None if folder is None else str(folder)), name).folder

    assert [folder_of(folder) for folder in folders] == [str(folders[0]), str(folders[1]), None]
    (folders[2] / "data").mkdir()  # too late: the process it uses serves others too
    assert folder_of(folders[2]) is None
    assert folder_of(None) is None


def test_a_server_with_a_folder_of_its_own_looks_nothing_up(tmp_path: Path) -> None:
    known = sharing(config_of(tmp_path, args=["data"], cwd=str(tmp_path)), set())
    (tmp_path / "data").mkdir()
    assert known.use(client({}, folder=str(tmp_path)), "up").folder is None
