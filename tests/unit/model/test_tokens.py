"""The estimate of tokens: rather too many than too few, and lines add up."""

import pytest
from helpers.tokenizer import tokens
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.tokens import estimate


@pytest.mark.parametrize(
    "text",
    [
        "slack__send_message: Post a message to a channel [channel:string*, text:string*, thread_ts:string]",
        "github__create_or_update_pull_request_review [owner:string*, repo:string*, pullNumber:number]",
        "aws__DescribeEC2InstanceTypeOfferings",
        "db__run: Führt eine Abfrage über die größte Tabelle aus [größe:integer*]",
        "天气__查询天气预报: 查询某个城市的天气预报 [城市:string*]",
        "日程__予定を作成する: 新しい予定をカレンダーに作成します [タイトル:string*]",
        "календарь__создать: Создать новое событие в календаре",
        "تقويم__إنشاء: إنشاء حدث جديد في التقويم",
        "calendario__crear 🎉🚀👩‍👩‍👧",
        "hash__a1b2c3d4e5f6: Look up a commit [sha:string*]",
    ],
)
def test_it_is_no_less_than_a_tokenizer_says(text: str) -> None:
    assert tokens(text) <= estimate(text) <= 4 * tokens(text)


@given(st.text(), st.text())
def test_lines_add_up(one: str, other: str) -> None:
    assert estimate(f"{one}\n{other}") == estimate(one) + 1 + estimate(other)


@given(st.text(st.characters()), st.text())
def test_more_text_is_no_fewer_tokens_and_any_text_has_some(text: str, more: str) -> None:
    assert estimate(text) <= estimate(text + more) <= 3 * len(text + more)
    assert estimate(text) > 0 or not text.strip(" ")
